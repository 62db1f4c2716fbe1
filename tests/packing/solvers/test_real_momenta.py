"""Real momenta are separated."""

import pytest

from rowsep.packing import baselines, solve
from rowsep.packing.io import demo_momentum
from rowsep.packing.solve import SOLVERS


def head():
    """A thousand rows of the momentum that ships with the package, all of them distinct."""
    return demo_momentum()[::4].float()


@pytest.mark.parametrize("solver", ["smoothed", "projected_gradient"])
def test_a_real_momentum_is_separated_in_eight_passes(solver):
    A = head()
    row = baselines.quality(A, baselines.row_norm(A))
    polar = baselines.quality(A, baselines.polar_then_row(A))
    solution = solve(A, solver=solver, alignment=0.6, passes=8)
    assert solution.alignment >= 0.6 > polar.alignment
    assert solution.rho >= 10 * max(row.rho, polar.rho)
    # half of what no cloud of this size can exceed; row normalisation has a fortieth
    assert solution.rho >= solution.bound / 2
    assert row.rho <= solution.bound / 40


def test_guttman_evens_a_real_momentum_out():
    A = head()
    row = baselines.quality(A, baselines.row_norm(A))
    assert solve(A, solver="guttman", alignment=0.6, passes=8).rho >= 3 * row.rho


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_real_momentum_is_separated_at_a_high_cosine(solver):
    A = head()
    momentum = baselines.quality(A, A)
    solution = solve(A, solver=solver, measure="cosine", alignment=0.7, passes=8)
    assert solution.cosine >= 0.7
    assert solution.rho >= 100 * momentum.rho


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_passes_do_not_hurt(solver):
    """A schedule follows the number of passes, so longer runs are other runs: 5 % is allowed."""
    A = head()[:512]
    rhos = [solve(A, solver=solver, passes=n).rho for n in (2, 4, 8, 16, 32)]
    assert all(after >= 0.95 * before for before, after in zip(rhos, rhos[1:], strict=False))
    assert rhos[-1] > 1.2 * rhos[0]
