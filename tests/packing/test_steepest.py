"""The steepest step: feasible, never above its certificate, exact where the answer is known."""

import math

import pytest
import torch

from packing.bounds import max_alignment_bounds, steepest_lower_bound, steepest_upper_bound
from packing.cloud import alignment, diameter, jung_radius
from packing.io import demo_momentum
from packing.solve import solve
from packing.steepest import steepest_step


def test_two_rows_move_apart_by_the_diameter():
    A = torch.tensor([[3.0, 4.0], [-3.0, -4.0]], dtype=torch.float64)
    found = steepest_step(A, diameter=2.0)
    assert found.value == pytest.approx(10.0, rel=1e-6)
    assert torch.allclose(
        found.update, torch.tensor([[0.6, 0.8], [-0.6, -0.8]]).double(), atol=1e-5
    )


@pytest.mark.parametrize("dim", [2, 3, 8])
def test_a_simplex_is_its_own_steepest_step(dim):
    A = torch.eye(dim + 1, dtype=torch.float64) - 1 / (dim + 1)
    A = A @ torch.linalg.eigh(A).eigenvectors[:, 1:]  # dim + 1 rows in dim dimensions
    found = steepest_step(A)
    # every row at Jung's radius along its own a_i: alignment one
    assert found.value == pytest.approx(jung_radius(dim) * float(A.norm(dim=1).sum()), rel=1e-6)


def test_on_a_line_the_halves_part():
    A = torch.tensor([[5.0], [1.0], [-2.0], [-4.0]], dtype=torch.float64)
    assert steepest_step(A).value == pytest.approx(6.0, rel=1e-6)  # sum |a_i| / 2


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_real_rows_within_their_bounds(scale):
    A = demo_momentum()[::200, :8].double() * scale
    found = steepest_step(A)
    assert diameter(found.update).value <= 1 + 1e-12
    assert float(found.update.mean(dim=0).abs().max()) < 1e-12
    assert found.value <= found.upper * (1 + 1e-7)
    assert found.value >= found.upper * (1 - 1e-6)
    assert steepest_lower_bound(A).value <= found.value * (1 + 1e-7)
    assert found.value <= steepest_upper_bound(A).value * (1 + 1e-7)
    centred = A - A.mean(dim=0)
    assert math.isclose(found.value, float((centred * found.update).sum()), rel_tol=1e-9)


def test_no_solver_exceeds_its_alignment(generator):
    A = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    most = alignment(A, steepest_step(A).update)
    low, high = max_alignment_bounds(A)
    assert low <= most + 1e-7 and most <= high + 1e-7
    assert solve(A, alignment=0.999 * most, passes=60).alignment <= most + 1e-7
    missed = solve(A, alignment=min(1.0, 1.01 * most), passes=10)
    assert not missed.met and missed.alignment <= most + 1e-7


def test_equal_rows_have_no_step():
    found = steepest_step(torch.ones(5, 3))
    assert found.value == 0.0 and not found.update.any()
    with pytest.raises(ValueError, match="NaN"):
        steepest_step(torch.full((3, 2), math.nan))
