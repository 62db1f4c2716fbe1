"""All inner products of the sign sets, exactly, in integers.

Rows with one form are a diagonal of signs times the Walsh functions, so a Walsh-Hadamard transform
of the product of two such diagonals gives all inner products between two bases at once.
"""

import pytest
import torch

from rowsep.packing.codes.binary.signs import Gold, Kerdock


def walsh(signs):
    """Walsh-Hadamard transform of each row, integers."""
    d = signs.shape[1]
    values, width = signs.clone(), 1
    while width < d:
        pairs = values.view(len(signs), d // (2 * width), 2, width)
        values = torch.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2)
        values, width = values.view(len(signs), d), 2 * width
    return values


def diagonals(code, forms):
    """The first row of each of the given forms, columns in the order of the Walsh functions."""
    d = code.dim
    linear = code.rows(range(d), dtype=torch.float64).sign().int()
    assert torch.equal(linear @ linear.T, d * torch.eye(d, dtype=torch.int32))
    # a column is told by the signs of as many independent Walsh functions as it has bits
    column, chosen = torch.zeros(d, dtype=torch.int64), 0
    for row in linear:
        trial = 2 * column + (row < 0)
        if len(trial.unique()) == 2 * len(column.unique()):
            column, chosen = trial, chosen + 1
    assert 2**chosen == d
    order = column.argsort()
    assert set(map(tuple, linear[:, order].tolist())) == set(
        map(tuple, walsh(torch.eye(d, dtype=torch.int32)).tolist())
    )
    return code.rows(d * forms, dtype=torch.float64).sign().short()[:, order]


@pytest.mark.parametrize("dim", [4, 16, 64])
def test_all_pairs_one_by_one(dim):
    rows = Kerdock(dim).rows(dtype=torch.int32)
    assert len(rows) == dim * (dim // 2 + 1)
    products = (rows @ rows.T).abs()
    assert bool((products.diagonal() == dim).all())
    products.fill_diagonal_(0)
    root = int(dim**0.5)
    assert set(products.unique().tolist()) == {0, root}
    # d/2 + 1 orthonormal bases: each row is orthogonal to d - 1 others
    assert bool(((products == 0).sum(dim=1) == dim).all())


@pytest.mark.parametrize("dim", [256, 1024])
def test_every_pair_of_bases(dim):
    code = Kerdock(dim)
    signs = diagonals(code, torch.arange(dim // 2))
    for a in range(dim // 2 - 1):
        products = walsh(signs[a] * signs[a + 1 :])
        assert bool((products.abs() == int(dim**0.5)).all())


@pytest.mark.parametrize("dim", [16, 256])
def test_rows_of_a_form_are_its_diagonal_times_walsh_functions(dim):
    code = Kerdock(dim)
    rows = code.rows(range(dim * dim // 2), dtype=torch.int8).view(dim // 2, dim, dim)
    assert torch.equal(rows, rows[:, :1] * rows[0])


def test_4096_dimensions_sampled(generator):
    code = Kerdock(4096)
    assert code.num_rows == 4096 * 2049
    rows = code.rows(torch.randint(code.num_rows, (700,), generator=generator), dtype=torch.float64)
    basis = torch.randperm(2048, generator=generator)[:1] * 4096
    rows = torch.cat([rows, code.rows(basis + torch.arange(64), dtype=torch.float64)])
    products = (64 * (rows @ rows.T)).round().long().fill_diagonal_(0)
    same = torch.pdist(rows) == 0
    assert not bool(same.any())
    assert set(products.abs().unique().tolist()) <= {0, 1}


def test_delsarte_goethals_forms():
    """Two forms (a, c), (a', c') differ like (a, 0), (a', c + c'), so these pairs are all."""
    code = Kerdock(64, 1)
    # form number a + 32 c
    signs = diagonals(code, torch.arange(32 * 32))
    for a in range(32):
        others = torch.arange(32 * 32) != a
        products = walsh(signs[a] * signs[others])
        assert int(products.abs().max()) == 2 * 8


@pytest.mark.parametrize("dim, degree, largest", [(32, 2, 8), (128, 2, 16), (128, 3, 32)])
def test_gold_forms(dim, degree, largest):
    """Forms are linear in their coefficients: every difference is a form."""
    code = Gold(dim, degree)
    assert code.num_rows == dim**degree + dim
    products = walsh(diagonals(code, torch.arange(1, dim ** (degree - 1))))
    assert int(products.abs().max()) == largest
    assert code.coherence == pytest.approx(largest / dim, rel=1e-15)


def test_gold_forms_are_linear(generator):
    code = Gold(32, 3)
    b, c, d = torch.randint(32, (3, 50), generator=generator)
    whole = code.rows(b + 32 * c + 32**2 * d, dtype=torch.float64).sign()
    parts = [code.rows(x, dtype=torch.float64).sign() for x in (b, 32 * c, 32**2 * d)]
    assert torch.equal(whole, parts[0] * parts[1] * parts[2])
