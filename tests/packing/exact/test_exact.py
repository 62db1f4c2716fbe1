"""`solve(solver="exact")`: small clouds, with a floor on what they share with a momentum."""

import math

import pytest
import torch

from rowsep.packing import FloorNotMet, solve, steepest_step
from rowsep.packing.cloud import alignment, cosine, ratio


def momentum(generator, V=7, d=2):
    return torch.randn(V, d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("measure", "held"), [("decrease", alignment), ("cosine", cosine)])
def test_conditions_hold_and_the_heuristic_is_not_better(generator, measure, held):
    A = momentum(generator)
    floor = 0.9 * held(A, steepest_step(A).update)
    exact = solve(A, solver="exact", alignment=floor, measure=measure, starts=64)
    assert exact.met
    assert floor <= held(A, exact.update) < floor + 0.5
    assert ratio(exact.update).value == pytest.approx(exact.rho, rel=1e-14)
    assert exact.diameter == pytest.approx(1.0, rel=1e-14) and exact.diameter <= 1.0
    told = exact.optimality
    assert told.solved and exact.agreeing >= 1 and exact.starts == 64
    other = solve(A, alignment=floor, measure=measure, passes=60)
    assert exact.rho >= other.rho - 1e-9


def test_multiplier_of_the_floor_is_the_slope(generator):
    """`d rho^2 / d floor = -multiplier` at an isolated optimum."""
    # nearly on a line, where no pentagon comes near the largest alignment: the floor binds
    A = momentum(generator, 5, 2) * torch.tensor([1.0, 0.1])
    floor = 0.97 * alignment(A, steepest_step(A).update)
    at = solve(A, solver="exact", alignment=floor, starts=64)
    step = 1e-6
    near = solve(A, solver="exact", alignment=floor - step, starts=64, state=at.state)
    assert at.optimality.floor > 0
    slope = (near.rho**2 - at.rho**2) / step
    assert slope == pytest.approx(at.optimality.floor, rel=1e-3)


def test_a_floor_that_does_not_bind_gives_the_least_diameter(generator):
    """Five points in the plane: the regular pentagon, whatever the momentum."""
    found = solve(momentum(generator, 5), solver="exact", alignment=0.0, starts=64)
    assert found.rho**-2 == pytest.approx((3 + math.sqrt(5)) / 2, rel=1e-12)
    assert found.optimality.floor == 0.0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_shift_and_order(generator, scale):
    A = momentum(generator, 5)
    rows = torch.randperm(5, generator=generator)
    a = solve(A, solver="exact", alignment=0.6, starts=128)
    b = solve(scale * A[rows] + scale, solver="exact", alignment=0.6, starts=128)
    assert b.rho == pytest.approx(a.rho, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_short_dtypes_meet_the_floor(generator, dtype):
    A = momentum(generator, 6).to(dtype)
    found = solve(A, solver="exact", alignment=0.7, starts=64)
    assert found.update.dtype == dtype
    assert found.met and alignment(A, found.update) >= 0.7
    assert found.diameter <= 1.0


def test_mask(generator):
    A = momentum(generator, 7)
    mask = torch.tensor([True, False, True, True, False, True, True])
    found = solve(A, solver="exact", alignment=0.0, mask=mask, starts=64)
    assert not found.update[~mask].any()
    assert found.rho**-2 == pytest.approx((3 + math.sqrt(5)) / 2, rel=1e-12)


def test_a_floor_above_the_steepest_step(generator):
    A = momentum(generator)
    most = alignment(A, steepest_step(A).update)
    found = solve(A, solver="exact", alignment=0.5 + 0.5 * most)
    assert not found.met and found.optimality is None
    assert found.alignment == pytest.approx(most, rel=1e-5)
    with pytest.raises(FloorNotMet):
        solve(A, solver="exact", alignment=0.5 + 0.5 * most, throw=True)


def test_equal_rows_of_the_momentum_part(generator):
    A = momentum(generator, 6)
    A[3] = A[4]
    found = solve(A, solver="exact", alignment=0.5, starts=64)
    assert found.delta > 0.1 and found.met


def test_zero_in_zero_out():
    found = solve(torch.ones(5, 2), solver="exact", alignment=0.0)
    assert not found.update.any()


def test_too_large_is_refused_before_any_work():
    with pytest.raises(ValueError, match="more than the 512 that the exact solver takes"):
        solve(torch.randn(300, 2), solver="exact")


def test_the_mask_decides_what_is_too_large():
    A = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    found = solve(A, solver="exact", alignment=0.0, mask=torch.arange(300) < 3, starts=64)
    assert found.rho == pytest.approx(1.0)
