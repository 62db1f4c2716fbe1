"""Codes with their negatives, lattices and records: known counts, and their use by best_code."""

import pytest
import torch

from rowsep.packing.codes import best_code
from rowsep.packing.codes.binary.golay import Golay, words
from rowsep.packing.codes.binary.signs import Kerdock
from rowsep.packing.codes.lattices.minimal_vectors import MinimalVectors
from rowsep.packing.codes.polytopes.icosians import Icosians
from rowsep.packing.codes.polytopes.negatives import WithNegatives
from rowsep.packing.codes.recorded import Recorded
from rowsep.packing.point_sets.records import records


def test_the_golay_code_is_linear_with_its_weights(generator):
    """1 + 759 x^8 + 2576 x^12 + 759 x^16 + x^24 (Conway and Sloane, chapter 3)."""
    W = torch.from_numpy(words()).long()
    assert W.sum(dim=1).bincount().nonzero()[:, 0].tolist() == [0, 8, 12, 16, 24]
    assert W.sum(dim=1).bincount()[[0, 8, 12, 16, 24]].tolist() == [1, 759, 2576, 759, 1]
    place = 2 ** torch.arange(23, -1, -1)
    numbers = set((W @ place).tolist())
    pairs = torch.randint(4096, (500, 2), generator=generator)
    assert {a ^ b for a, b in (W @ place)[pairs].tolist()} <= numbers


@pytest.mark.parametrize(
    ("dim", "kissing", "neighbours"), [(8, 240, 56), (16, 4320, 280), (24, 196560, 4600)]
)
def test_minimal_vectors_have_their_kissing_number_and_neighbours(
    dim, kissing, neighbours, generator
):
    """Numbers at cosine 1/2 from one: 56, 280, 4600 (Conway and Sloane, chapter 14)."""
    both = WithNegatives(MinimalVectors(dim))
    assert both.num_rows == kissing
    some = torch.randint(kissing, (3,), generator=generator)
    inner = both.rows(some, dtype=torch.int64) @ both.rows(dtype=torch.int64).T
    norm = round(both.norm**2)
    assert set(inner.unique().tolist()) <= {k * norm // 4 for k in range(-4, 5)} - {3 * norm // 4}
    assert (inner == norm // 2).sum(dim=1).tolist() == [neighbours] * 3
    assert (inner == -norm).sum(dim=1).tolist() == [1] * 3


def test_the_600_cell_has_twelve_neighbours_a_vertex():
    """At cosine phi/2, and 20 at 1/2 (Coxeter, Regular Polytopes, table V)."""
    both = WithNegatives(Icosians()).rows(dtype=torch.float64)
    cosines = both @ both.T
    for value, count in (((1 + 5**0.5) / 4, 12), (0.5, 20), ((5**0.5 - 1) / 4, 12), (0.0, 30)):
        assert ((cosines - value).abs() < 1e-12).sum(dim=1).tolist() == [count] * 120


def test_what_has_opposite_rows_already_is_not_doubled():
    with pytest.raises(ValueError, match="opposite rows"):
        WithNegatives(WithNegatives(Kerdock(4)))


def test_names_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="dim is 12, expected one of 8, 16, 24"):
        MinimalVectors(12)
    with pytest.raises(ValueError, match="dim is 25, expected at most 24"):
        Golay(25)
    with pytest.raises(KeyError):
        Recorded(200, 2)


def test_the_best_code_is_no_worse_than_any_record():
    for one in records():
        if one.found is not None:
            rho = float(one.found) ** -0.5
            assert best_code(one.n, one.dim).rho >= rho * (1 - 1e-12)


@pytest.mark.parametrize(
    ("num_rows", "dim", "rho"),
    [
        (2048, 23, 0.5**0.5),
        (4096, 24, 3**-0.5),
        (120, 4, (5**0.5 - 1) / 4),
        (240, 8, 0.5),
        (2160, 16, 3**-0.5),
        (98280, 24, 3**-0.5),
        (196560, 24, 0.5),
        (8448, 64, (7 / 16) ** 0.5),  # Kerdock and its negatives, (1 - 1/8)/2
    ],
)
def test_the_best_code_knows_the_classics(num_rows, dim, rho):
    assert best_code(num_rows, dim).rho >= rho * (1 - 1e-12)
