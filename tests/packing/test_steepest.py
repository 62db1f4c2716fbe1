"""The steepest step: feasible, never above its certificate, exact where the answer is known."""

import math

import pytest
import torch

from rowsep.packing import steepest_step
from rowsep.packing.bounds import max_alignment_bounds, steepest_lower_bound, steepest_upper_bound
from rowsep.packing.cloud import alignment, diameter, jung_radius
from rowsep.packing.io import demo_momentum
from rowsep.packing.pairs import extremes
from rowsep.packing.solve import solve
from rowsep.packing.solvers.steepest import first_order as steepest_first_order
from rowsep.packing.solvers.steepest.flow import Flow, Laplacian
from rowsep.packing.solvers.steepest.groups import grouped

SOLVERS = ["first_order", "interior_point", "cone"]
REACHED = {"first_order": 0.01, "interior_point": 1e-6, "cone": 1e-6}
"""Relative gap that each is tested to reach on clouds of a few dozen rows."""


def random_momentum(generator, num_rows=30, dim=5, decay=2.0):
    """Rows of very different norms in a spectrum that falls, centred, float64."""
    A = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    A *= torch.rand(num_rows, 1, generator=generator).double() ** decay
    A *= 0.7 ** torch.arange(dim)
    return A - A.mean(dim=0)


def check_certificate(A, found, size=1.0):
    """The update is feasible and centred, its value its own, and the flow proves the bound."""
    assert found.diameter <= size
    assert found.diameter == pytest.approx(diameter(found.update).value, rel=1e-12)
    centred = A.double() - A.double().mean(dim=0)
    value = float((centred * found.update.double()).sum())
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.value <= found.upper * (1 + 1e-12)
    assert found.gap == pytest.approx(1 - found.value / found.upper, abs=1e-12)
    i, j = found.flow.pairs.T
    assert bool((i < j).all()) and bool((found.flow.weights >= 0).all())
    f = found.flow.vectors().double()
    sums = torch.zeros_like(centred).index_add_(0, i, f).index_add_(0, j, -f)
    residual = float((centred - sums).norm(dim=1).sum())
    radius = jung_radius(min(A.shape[1], len(A) - 1))
    proved = size * (float(f.norm(dim=1).sum()) + radius * residual)
    closed = steepest_upper_bound(A, size).value
    assert found.upper == pytest.approx(min(proved, closed), rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_rows_move_apart_by_the_diameter(solver):
    A = torch.tensor([[3.0, 4.0], [-3.0, -4.0]], dtype=torch.float64)
    found = steepest_step(A, diameter=2.0, solver=solver)
    assert found.value == pytest.approx(10.0, rel=1e-6)
    expected = torch.tensor([[0.6, 0.8], [-0.6, -0.8]]).double()
    assert torch.allclose(found.update, expected, atol=1e-5)
    check_certificate(A, found, 2.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dim", [2, 3, 8])
def test_a_simplex_is_its_own_steepest_step(dim, solver):
    A = torch.eye(dim + 1, dtype=torch.float64) - 1 / (dim + 1)
    A = A @ torch.linalg.eigh(A).eigenvectors[:, 1:]  # dim + 1 rows in dim dimensions
    found = steepest_step(A, solver=solver, tolerance=1e-6)
    # every row at Jung's radius along its own a_i: alignment one
    assert found.value == pytest.approx(jung_radius(dim) * float(A.norm(dim=1).sum()), rel=2e-6)
    assert found.alignment == pytest.approx(1.0, rel=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_on_a_line_the_halves_part(solver):
    A = torch.tensor([[5.0], [1.0], [-2.0], [-4.0]], dtype=torch.float64)
    assert steepest_step(A, solver=solver).value == pytest.approx(6.0, rel=1e-6)  # sum |a_i| / 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_certificate_holds_and_no_step_exceeds_it(solver, generator):
    A = random_momentum(generator)
    found = steepest_step(A, solver=solver)
    check_certificate(A, found)
    assert found.gap <= REACHED[solver]
    for _ in range(50):
        S = A + A.norm() * torch.randn(A.shape, generator=generator).double()
        assert float((A * S).sum()) / extremes(S).diameter <= found.upper
    assert steepest_lower_bound(A).value <= found.upper
    assert found.value <= steepest_upper_bound(A).value


def test_the_solvers_agree(generator):
    A = random_momentum(generator, 24, 4)
    low = {solver: steepest_step(A, solver=solver) for solver in SOLVERS}
    exact = low["cone"].value
    assert low["interior_point"].value == pytest.approx(exact, rel=2e-6)
    assert low["first_order"].value <= exact * (1 + 1e-6) <= low["first_order"].upper * (1 + 2e-6)


def test_wide_and_disconnected_momenta_are_solved_exactly(generator):
    pairs = torch.zeros(6, 9, dtype=torch.float64)
    for k in range(3):  # three pairs on axes of their own: each parts by the diameter
        pairs[2 * k, k], pairs[2 * k + 1, k] = k + 1.0, -k - 1.0
    found = steepest_step(pairs, solver="interior_point")
    assert found.value == pytest.approx(6.0, rel=2e-6)
    check_certificate(pairs, found)
    wide = random_momentum(generator, 12, 40)
    assert steepest_step(wide).gap <= 1e-6


@pytest.mark.parametrize("solver", ["first_order", "interior_point"])
def test_it_moves_with_the_momentum(solver, generator):
    A = random_momentum(generator)
    found = steepest_step(A, solver=solver)
    turn = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64)).Q
    order = torch.randperm(30, generator=generator)
    moved = steepest_step((64 * A[order] + 3.0) @ turn, diameter=0.5, solver=solver)
    tolerance = 2 * REACHED[solver]
    assert moved.value == pytest.approx(32 * found.value, rel=tolerance)
    assert moved.upper == pytest.approx(32 * found.upper, rel=tolerance)
    again = steepest_step(A, solver=solver)
    assert torch.equal(again.update, found.update)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_real_rows_within_their_bounds(scale):
    A = demo_momentum()[::200, :8].double() * scale
    found = steepest_step(A)
    assert diameter(found.update).value <= 1 + 1e-12
    assert float(found.update.mean(dim=0).abs().max()) < 1e-12
    check_certificate(A, found)
    assert found.gap <= 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_dtypes_give_a_feasible_update_of_their_own(dtype, generator):
    A = random_momentum(generator).to(dtype)
    found = steepest_step(A)
    assert found.update.dtype == dtype and found.diameter <= 1.0
    assert found.gap <= 4 * torch.finfo(dtype).eps + 1e-6


def test_a_full_head_is_solved_to_a_percent():
    A = demo_momentum()[:1100, :32].float()
    assert len(A) > steepest_first_order.COARSEST  # groups are solved first
    found = steepest_step(A, passes=8)
    check_certificate(A, found)
    assert found.passes <= 8 + 4
    assert found.gap < 0.01
    low, high = max_alignment_bounds(A)
    assert low <= found.alignment <= high
    again = steepest_step(A, passes=2, start=found.flow)
    assert again.upper <= 1.02 * found.upper


@pytest.mark.parametrize("dim", [2, 12])
def test_more_passes_never_leave_a_larger_gap(dim, generator):
    A = random_momentum(generator, 120, dim)
    found = [
        steepest_step(A, solver="first_order", passes=passes, tolerance=1e-4)
        for passes in (2, 4, 8, 16)
    ]
    values, uppers = [one.value for one in found], [one.upper for one in found]
    assert values == sorted(values) and uppers == sorted(uppers, reverse=True)
    assert found[-1].gap < 5e-3


@pytest.mark.parametrize("draw", range(2))
def test_rows_that_no_pair_holds_do_not_stop_it(draw, generator):
    """In most draws some row starts without a pair at the full distance."""
    found = steepest_step(random_momentum(generator, 300, 20, decay=1.0), solver="first_order")
    assert found.stop.startswith("relative gap")
    assert found.gap <= REACHED["first_order"]


def test_many_rows_of_the_plane_are_solved_exactly():
    """Rows fall together at a few places, so that hundreds of pairs share each weight."""
    A = demo_momentum()[::40, :2].double()
    found = steepest_step(A)
    check_certificate(A, found)
    assert found.gap <= 1e-6


def test_few_passes_are_never_worse_than_row_normalisation(generator):
    A = random_momentum(generator, 400, 10)
    found = steepest_step(A, solver="first_order", passes=2)
    assert found.value >= float(A.norm(dim=1).sum()) / 2 * (1 - 1e-12)


def test_masked_rows_take_no_part(generator):
    A = random_momentum(generator)
    mask = torch.rand(30, generator=generator) < 0.6
    mask[:3] = True
    found = steepest_step(A, mask=mask)
    alone = steepest_step(A[mask])
    assert found.value == pytest.approx(alone.value, rel=2e-6)
    assert not found.update[~mask].any()
    assert bool(mask[found.flow.pairs].all())


def test_rows_without_momentum_cost_nothing(generator):
    A = torch.cat([random_momentum(generator, 20, 4), torch.zeros(5, 4).double()])
    found = steepest_step(A)
    assert found.value == pytest.approx(steepest_step(A[:20]).value, rel=2e-6)
    assert found.diameter <= 1.0


def test_no_solver_exceeds_its_alignment(generator):
    A = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    most = alignment(A, steepest_step(A).update)
    low, high = max_alignment_bounds(A)
    assert low <= most + 1e-7 and most <= high + 1e-7
    assert solve(A, alignment=0.999 * most, passes=60).alignment <= most + 1e-6
    missed = solve(A, alignment=min(1.0, 1.01 * most), passes=10)
    assert not missed.met and missed.alignment <= most + 1e-6


@pytest.mark.parametrize("A", [torch.ones(5, 3), torch.ones(1, 3), torch.ones(0, 3)])
def test_equal_rows_have_no_step(A):
    found = steepest_step(A)
    assert found.value == found.upper == found.gap == 0.0 and not found.update.any()
    assert "no direction" in found.stop


def test_bad_arguments_are_refused():
    A = torch.randn(5, 3)
    with pytest.raises(ValueError, match="NaN"):
        steepest_step(torch.full((3, 2), math.nan))
    with pytest.raises(ValueError, match="solver is 'simplex'"):
        steepest_step(A, solver="simplex")
    with pytest.raises(ValueError, match="diameter is 0"):
        steepest_step(A, diameter=0.0)
    with pytest.raises(ValueError, match="passes is 1"):
        steepest_step(A, passes=1)
    flow = Flow(torch.zeros(0, 2).long(), torch.zeros(0), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="start is a flow"):
        steepest_step(A, start=flow)


def test_the_laplacian_is_that_of_its_definition(generator):
    pairs = torch.triu_indices(7, 7, 1).T
    pairs = pairs[torch.randperm(21, generator=generator)[:15]]
    w = torch.rand(15, generator=generator).double()
    X = torch.randn(7, 3, generator=generator).double()
    dense = torch.zeros(7, 7).double()
    for (i, j), weight in zip(pairs.tolist(), w, strict=True):
        dense[i, j] = dense[j, i] = -weight
    dense -= torch.diag(dense.sum(dim=1))
    L = Laplacian(pairs, w, 7)
    torch.testing.assert_close(L.times(X), dense @ X)
    solved, left = L.solve(dense @ X, torch.zeros_like(X), 20, 1e-12)
    torch.testing.assert_close(dense @ solved, dense @ X)
    assert left < 1e-10


def test_groups_keep_the_momentum_and_spread_their_flow(generator):
    A = random_momentum(generator, 200, 4)
    groups = grouped(A, A.norm(dim=1))
    assert len(groups.rows) == 50
    torch.testing.assert_close(groups.rows.sum(dim=0), A.sum(dim=0))
    S = torch.randn(50, 4, generator=generator).double()
    assert float((groups.rows * S).sum()) == pytest.approx(float((A * S[groups.owner]).sum()))
    pairs = torch.triu_indices(50, 50, 1).T
    w = torch.rand(len(pairs), generator=generator).double()
    spread = groups.spread(Flow(pairs, w, S))
    i, j = spread.pairs.T
    assert bool((i < j).all())
    assert len(torch.unique(i * 200 + j)) == len(i)
    assert torch.equal(spread.positions, S[groups.owner])
    assert 0 < float(spread.weights.sum()) <= float(w.sum()) * (1 + 1e-9)
