"""best_code at the sizes of real heads, and the inverse questions."""

import math
import random

import numpy as np
import pytest
import torch

from rowsep.packing import bounds
from rowsep.packing.codes.best import best_code
from rowsep.packing.codes.binary.signs import Gold, Kerdock
from rowsep.packing.codes.code import Stored
from rowsep.packing.codes.complex.paley import Paley
from rowsep.packing.codes.complex.phases import Phases
from rowsep.packing.codes.gaussian import Gaussian
from rowsep.packing.codes.inverse import least_dimension, most_rows
from rowsep.packing.codes.lattices.balls import LatticeBall
from rowsep.packing.codes.lattices.grid import Grid
from rowsep.packing.codes.polish import polish
from rowsep.packing.codes.polytopes.reed_solomon import ReedSolomon
from rowsep.packing.codes.polytopes.simplices import Midpoints, Orthoplex, Simplices

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
        assert code.rho * (1 - 1e-12) <= code.measured_rho() <= code.bound * (1 + 1e-12)
        assert len(code.origin.split()) >= 2


def test_more_rows_or_fewer_dimensions_are_no_better(generator):
    seed = int(torch.randint(2**31, (), generator=generator))
    draw = random.Random(seed)
    for _ in range(60):
        dim = draw.randint(1, 300)
        rows = round(math.exp(draw.uniform(math.log(2), math.log(100000))))
        rho = best_code(rows, dim).rho
        most = best_code(rows, dim + 1).rho * (1 + 1e-12)  # another formula may round otherwise
        assert best_code(rows + 1, dim).rho <= rho <= most


@pytest.mark.parametrize("dim", range(2, 12))
def test_crowds_in_few_dimensions_are_pieces_of_a_lattice(dim, generator):
    for rows in torch.randint(50 + 20 * dim, 2**18, (3,), generator=generator).tolist():
        assert best_code(rows, dim).rho >= LatticeBall(rows, dim).rho > 1.1 * Grid(rows, dim).rho


def test_midpoints_of_fewer_dimensions_are_asked_for():
    assert best_code(130, 11).rho <= best_code(130, 12).rho
    assert least_dimension(130, 0.545).dim <= 11


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 10, 64, 101])
def test_known_optima(dim):
    assert best_code(1, dim).rho == best_code(1, dim).measured_rho() == 0  # cloud.ratio
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
    with pytest.raises(ValueError, match="rho is .*, expected a ratio above 0 and at most 1"):
        most_rows(5, rho)


@pytest.mark.parametrize("bad", ["0.9", None, True, [0.9]])
def test_a_ratio_that_is_no_number_is_refused(bad):
    with pytest.raises(TypeError, match="rho is .*expected a number"):
        least_dimension(5, bad)
    with pytest.raises(TypeError, match="rho is .*expected a number"):
        most_rows(5, bad)


def test_crowds_have_a_least_dimension():
    found = least_dimension(10**12, 0.5)
    assert found.code.rho >= 0.5 > best_code(10**12, found.dim - 1).rho


FRONT_DOORS = [
    (best_code, (50, 5)),
    (best_code, (200, 100)),
    (lambda v: least_dimension(v, 0.9).code, (50,)),
    (lambda d: most_rows(d, 0.9).code, (50,)),
    (Simplices, (14, 12)),
    (Midpoints, (60,)),
    (Orthoplex, (100,)),
    (Kerdock, (64, 0)),
    (Gold, (32, 2)),
    (Phases, (25, 2, 23)),
    (Paley, (125,)),
    (ReedSolomon, (9, 10, 3)),
    (Gaussian, (100, 3, 7)),
    (Grid, (200, 3)),
    (LatticeBall, (200, 3)),
]


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.int8, torch.tensor])
@pytest.mark.parametrize("make, sizes", FRONT_DOORS)
def test_integers_of_any_kind_are_the_same(make, sizes, kind):
    if kind is np.int8 and max(sizes) > 127:
        kind = np.int16
    code, plain = make(*map(kind, sizes)), make(*sizes)
    assert repr(code) == repr(plain)
    assert (code.rho, code.cosines, code.norm) == (plain.rho, plain.cosines, plain.norm)
    assert {type(code.num_rows), type(code.dim), type(code.rho)} <= {int, float}
    few = range(min(code.num_rows, 40))
    assert torch.equal(code.rows(few), plain.rows(few))


NO_INTEGERS = [
    5.0,
    "5",
    True,
    np.bool_(True),
    np.float32(5),
    torch.tensor(5.0),
    torch.tensor(True),
    torch.tensor([5, 6]),
    torch.tensor(5, device="meta"),
]


@pytest.mark.parametrize("bad", NO_INTEGERS, ids=repr)
@pytest.mark.parametrize("make, sizes", FRONT_DOORS)
def test_what_is_no_integer_is_refused(make, sizes, bad):
    for place in range(len(sizes)):
        with pytest.raises(TypeError, match=r"is .*, expected an integer"):
            make(*sizes[:place], bad, *sizes[place + 1 :])


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


def test_polish_takes_a_code_and_a_seed_of_64_bits():
    code = Simplices(5, 3)
    with pytest.raises(TypeError, match="code is a Tensor, expected a Code.*Stored"):
        polish(code.rows())
    with pytest.raises(ValueError, match="seed is 1180591620717411303424, expected at most"):
        polish(code, seed=2**70)
    stored = Stored(code.rows(), "its rows")
    assert polish(stored, 1, seed=np.uint64(2**64 - 1)).rho >= stored.rho


def test_a_record_of_a_rational_ratio_is_met_exactly():
    """Seven points of the plane have the squared ratio 4, which is proved."""
    assert most_rows(2, 0.5).num_rows == 7 and least_dimension(7, 0.5).dim == 2
