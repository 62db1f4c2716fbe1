"""The semidefinite bound: attained for d >= V-1, never beaten below."""

import pytest
import torch

from rowsep.packing import cloud, solve, steepest_step
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.bounds.semidefinite import aligned_bound

SOLVED = 1e-6


def gaussian(generator, num_rows, dim):
    return torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("num_rows", "dim"), [(2, 1), (4, 3), (5, 8), (9, 8)])
@pytest.mark.parametrize("part", [0.9, 0.99])
def test_it_is_attained_in_enough_dimensions(num_rows, dim, part, generator):
    A = gaussian(generator, num_rows, dim)
    floor = part * steepest_step(A).alignment
    found = aligned_bound(A, floor)
    assert found.exact
    assert found.update.shape == A.shape
    assert cloud.ratio(found.update).value == pytest.approx(found.value, abs=SOLVED)
    assert cloud.alignment(A, found.update) >= floor - SOLVED


def test_without_a_floor_the_simplex_is_left(generator):
    A = gaussian(generator, 6, 5)
    found = aligned_bound(A, -1.0)
    assert found.value == pytest.approx(1.0, abs=SOLVED)
    assert cloud.ratio(found.update).value == pytest.approx(1.0, abs=SOLVED)


@pytest.mark.parametrize(("num_rows", "dim"), [(8, 2), (12, 4)])
def test_no_solution_exceeds_it_in_few_dimensions(num_rows, dim, generator):
    A = gaussian(generator, num_rows, dim)
    last = 1.0
    for floor in (0.3, 0.7, 0.8):
        found = aligned_bound(A, floor)
        assert not found.exact
        assert found.value <= min(last + SOLVED, rho_upper_bound(num_rows, dim))
        solution = solve(A, alignment=floor, passes=40)
        assert solution.rho <= aligned_bound(A, min(1.0, solution.alignment)).value + SOLVED
        last = found.value


def test_a_floor_beyond_the_steepest_step_is_refused(generator):
    A = gaussian(generator, 5, 6)
    with pytest.raises(ValueError, match="no update reaches"):
        aligned_bound(A, min(1.0, 1.02 * steepest_step(A).alignment))
    with pytest.raises(ValueError, match="equal"):
        aligned_bound(torch.ones(4, 3), 0.5)
    with pytest.raises(ValueError, match="alignment is 2"):
        aligned_bound(A, 2.0)
