"""Boxes of the grid and pieces of lattices: crowds in few dimensions."""

import math
from fractions import Fraction
from itertools import accumulate

import pytest
import torch

from rowsep.packing.codes.best import best_code
from rowsep.packing.codes.code import Part
from rowsep.packing.codes.lattices.balls import LatticeBall, _within
from rowsep.packing.codes.lattices.grid import Grid


@pytest.mark.parametrize(
    ("num_rows", "dim", "sides"),
    [
        (1, 4, (1, 1, 1, 1)),
        (8, 2, (3, 3)),
        (9, 2, (3, 3)),
        (10, 2, (4, 3)),
        (10**12, 1, (10**12,)),
        (10**30 + 1, 3, (10**10 + 1, 10**10, 10**10)),
    ],
)
def test_the_least_box_at_once(num_rows, dim, sides):
    """Billions of points are laid out without counting up to them."""
    grid = Grid(num_rows, dim)
    assert grid.num_rows == math.prod(sides)
    diameter = math.hypot(*(n - 1 for n in sides))
    assert grid.rho == pytest.approx(1 / diameter if diameter else 0)


@pytest.mark.parametrize(
    ("num_rows", "dim", "dtype"),
    [
        (4 * 10**16, 2, torch.float64),
        (2**53, 1, torch.float64),
        (2**24, 1, torch.float32),
        (2**22, 2, torch.float16),
        (2**8, 1, torch.bfloat16),
    ],
)
def test_grid_rows_are_told_apart(num_rows, dim, dtype):
    code = best_code(num_rows, dim)
    assert isinstance(code, Grid)
    rows = code.rows(range(num_rows // 2 - 128, num_rows // 2 + 128), dtype=dtype)
    ends = code.rows([*range(128), *range(num_rows - 128, num_rows)], dtype=dtype)
    assert len(rows.unique(dim=0)) == len(ends.unique(dim=0)) == 256


@pytest.mark.parametrize("num_rows", [5, 10**6, 4 * 10**16, 2**62, 2**63 - 1])
def test_grid_rows_are_integers_over_the_diameter(num_rows):
    """2 i - (V - 1) over V - 1, in exact arithmetic up to the two roundings."""
    code = Grid(num_rows, 1)
    numbers = [0, 1, num_rows // 3, num_rows // 2, num_rows - 2, num_rows - 1]
    for i, x in zip(numbers, code.rows(numbers, dtype=torch.float64)[:, 0].tolist(), strict=True):
        exact = Fraction(2 * i - (num_rows - 1), num_rows - 1)
        assert abs(Fraction(x) - exact) <= abs(exact) * Fraction(1, 2**51)


def test_grid_rows_beyond_int64():
    code = Grid(10**30, 3)
    assert torch.equal(code.rows([2**62]), Part(code, 2**63, 3).rows([2**62]))
    with pytest.raises(ValueError, match=f"rows 0 to {2**63 - 1}"):
        code.rows([2**63])
    with pytest.raises(ValueError, match=f"{2**63} points, expected below 2\\^63"):
        Grid(2**63, 1).rows([0])


@pytest.mark.parametrize(
    ("dim", "unit", "shells"),
    [
        # theta series about a point, by norm over the least one; OEIS
        (2, 4, [1, 6, 0, 6, 6, 0, 0, 12, 0, 6, 0, 0, 6, 12]),  # A004016
        (3, 8, [1, 12, 6, 24, 12, 24, 8, 48, 6]),  # A004015
        (4, 8, [1, 24, 24, 96, 24, 144, 96]),  # A004011
        (8, 8, [1, 240, 2160, 6720, 17520, 30240]),  # A004009
        (16, 4, [1, 0, 4320, 61440]),  # A008409
        # contact numbers of the laminated lattices, Sphere Packings, table 1.5
        (15, 8, [1, 2340]),
        (20, 8, [1, 17400]),
        (21, 8, [1, 27720]),
    ],
)
def test_shells_of_lattices_have_the_known_sizes(dim, unit, shells):
    within = _within(dim, 0)
    found = [int(within[unit * k]) for k in range(len(shells))]
    assert found == list(accumulate(shells))


@pytest.mark.parametrize("dim", [2, 3, 5, 8, 9, 12])
def test_more_points_of_a_lattice_reach_farther(dim, generator):
    counts = torch.randint(2, 3000, (6,), generator=generator).sort().values.tolist()
    codes = [LatticeBall(count, dim) for count in counts]
    assert [code.rho for code in codes] == sorted((code.rho for code in codes), reverse=True)
    rows = codes[-1].rows(dtype=torch.float64)
    norms = rows.norm(dim=1)
    assert float((norms[1:] - norms[:-1]).min()) > -1e-12, "nearest first"


def test_the_best_centre_is_taken():
    """A simplex about the deep hole of D_3, two points about their midpoint."""
    assert LatticeBall(2, 2).rho == LatticeBall(2, 5).rho == 1.0
    assert LatticeBall(6, 3).rho == pytest.approx(0.5**0.5)  # the octahedron
    assert "midpoint of two" in LatticeBall(2, 2).origin


def test_lattice_balls_refuse_what_they_cannot_hold():
    with pytest.raises(ValueError, match="num_rows is 262145"):
        LatticeBall(2**18 + 1, 3)
    for dim in (1, 25):
        with pytest.raises(ValueError, match=f"dim is {dim}"):
            LatticeBall(9, dim)
