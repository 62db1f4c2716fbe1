"""best_code at the sizes of real heads, and the inverse questions."""

import math
import random

import pytest
import torch

from packing import bounds
from packing.codes.best import best_code
from packing.codes.inverse import least_dimension, most_rows
from packing.codes.polish import polish
from packing.codes.simplices import Simplices

HEADS = [64, 100, 128, 256, 576, 768, 896, 1024, 1152, 1536, 2048]
HEADS += [2304, 2560, 2880, 3072, 3584, 4096, 5120, 7168, 8192]


@pytest.mark.parametrize("dim", HEADS)
def test_every_head_has_a_code_near_the_bound(dim, generator):
    """rho/bound of 0.97 from 256 dimensions on, up to d^2/2 rows; a sample bears rho out."""
    some = torch.randint(dim + 1, 262144, (3,), generator=generator).tolist()
    for rows in (dim + 1, dim + 2, dim + 40, 2 * dim, *some, 50257, 262144):
        if rows <= dim:
            continue
        code = best_code(rows, dim)
        assert (code.num_rows, code.dim) == (rows, dim)
        assert 0 < code.rho <= code.bound * (1 + 1e-12)
        assert code.bound == bounds.rho_upper_bound(rows, dim)
        if dim >= 256 and rows <= dim * dim // 2:
            assert code.rho >= 0.97 * code.bound, code
    distances = torch.pdist(code.rows(torch.arange(60) * (rows // 60), dtype=torch.float64))
    assert float(distances.min()) >= code.rho * float(distances.max()) * (1 - 1e-9)


def test_large_heads_are_nearly_solved():
    for rows, dim in [(33024, 256), (50257, 1024)]:
        code = best_code(rows, dim)
        assert code.rho >= 0.999 * code.bound


def test_the_guarantee_holds_for_all_pairs_at_any_size(generator):
    seed = int(torch.randint(2**31, (), generator=generator))
    draw = random.Random(seed)
    for _ in range(40):
        dim = draw.randint(1, 60)
        rows = draw.randint(1, 700)
        code = best_code(rows, dim)
        made = code.rows(dtype=torch.float64)
        assert made.shape == (rows, dim)
        assert float(made.norm(dim=1).max()) <= 1 + 1e-12
        if rows > 1:
            assert code.rho * (1 - 1e-12) <= code.measured_rho() <= code.bound * (1 + 1e-12)
        assert len(code.origin.split()) >= 2


def test_more_rows_or_fewer_dimensions_are_no_better(generator):
    seed = int(torch.randint(2**31, (), generator=generator))
    draw = random.Random(seed)
    for _ in range(60):
        dim = draw.randint(1, 300)
        rows = round(math.exp(draw.uniform(0, math.log(100000))))
        rho = best_code(rows, dim).rho
        assert best_code(rows + 1, dim).rho <= rho <= best_code(rows, dim + 1).rho


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 10, 64, 101])
def test_known_optima(dim):
    assert best_code(1, dim).rho == 1
    assert best_code(dim + 1, dim).rho == 1
    # Schuette, Math. Ann. 150 (1963)
    assert best_code(dim + 2, dim).rho == pytest.approx(bounds.radon_bound(dim), rel=1e-12)


def test_known_optima_of_more_rows():
    """The pentagon, and the two-distance sets of 10 points in R^4 and 16 in R^5."""
    assert best_code(5, 2).rho == pytest.approx((math.sqrt(5) - 1) / 2, rel=1e-12)
    assert best_code(10, 4).rho == pytest.approx(math.sqrt(0.5), rel=1e-12)
    assert best_code(16, 5).rho == pytest.approx(math.sqrt(0.5), rel=1e-12)
    assert best_code(9, 1).rho == pytest.approx(1 / 8, rel=1e-15)


@pytest.mark.parametrize("rows, rho", [(5, 1.0), (5, 0.6), (700, 0.9), (50257, 0.95), (2, 0.1)])
def test_least_dimension(rows, rho):
    found = least_dimension(rows, rho)
    assert found.bound <= found.dim == found.code.dim
    assert found.code.num_rows == rows and found.code.rho >= rho
    assert bounds.rho_upper_bound(rows, found.bound) >= rho
    if found.dim > 1:
        assert best_code(rows, found.dim - 1).rho < rho
    if found.bound > 1:
        assert bounds.rho_upper_bound(rows, found.bound - 1) < rho


@pytest.mark.parametrize("dim, rho", [(1, 0.1), (4, 0.7), (64, 0.88), (768, 0.95), (16, 1.0)])
def test_most_rows(dim, rho):
    found = most_rows(dim, rho)
    assert found.code.num_rows == found.num_rows <= found.bound
    assert found.code.rho >= rho > best_code(found.num_rows + 1, dim).rho
    if found.bound < math.inf:
        bound = int(found.bound)
        assert bounds.rho_upper_bound(bound, dim) >= rho > bounds.rho_upper_bound(bound + 1, dim)


def test_known_answers_of_the_inverse_questions():
    # 11 points on a line at a tenth of its length; d+1 points at one distance
    assert most_rows(1, 0.1)[:2] == (11, 11)
    assert most_rows(16, 1.0)[:2] == (17, 17)
    assert least_dimension(30, 1.0)[:2] == (29, 29)
    assert most_rows(4, 0.7071)[:2] == (10, 10)


@pytest.mark.parametrize("rho", [0, 1.5, -1, math.nan])
def test_a_ratio_out_of_range_is_refused(rho):
    with pytest.raises(ValueError, match="rho is"):
        least_dimension(5, rho)
    with pytest.raises(ValueError, match="rho is"):
        most_rows(5, rho)


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="num_rows is 0"):
        best_code(0, 3)
    with pytest.raises(TypeError, match="dim is 2.5"):
        best_code(3, 2.5)  # pyright: ignore[reportArgumentType]


def test_polish_raises_what_is_loose_and_keeps_what_is_tight():
    loose = best_code(19, 12)
    polished = polish(loose, 60)
    assert polished.evidence == "measured"
    assert loose.rho < polished.rho <= polished.bound
    assert polished.measured_rho() == pytest.approx(polished.rho, rel=1e-12)
    tight = Simplices(14, 12)
    assert polish(tight, 5) is tight


def test_a_bound_that_is_attained_is_not_exceeded_by_rounding():
    for V, d in [(4, 2), (5, 3), (6, 4), (16, 9), (17, 15), (56, 54), (65, 63), (100, 98)]:
        code = best_code(V, d)
        assert code.rho <= code.bound == pytest.approx(code.rho, rel=1e-14)
        least, most = least_dimension(V, code.rho), most_rows(d, code.rho)
        assert least.bound <= least.dim == d and V == most.num_rows <= most.bound
