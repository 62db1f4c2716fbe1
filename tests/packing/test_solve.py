"""The front door: what it refuses, when it stops, and the certificate it hands back."""

import math
import sys

import pytest
import torch

from rowsep.packing import FloorNotMet, Progress, Solution, bounds, cloud, solve
from rowsep.packing.io import demo_momentum
from rowsep.packing.rows import BLOCK_ENTRIES
from rowsep.packing.solve import MEASURES, SOLVERS
from tests.packing.clouds import DTYPES, gaussian, heavy

MODULE = sys.modules["rowsep.packing.solve"]


@pytest.fixture
def A(generator):
    """A momentum of forty rows in eight dimensions."""
    return gaussian(40, 8, generator)


def nan_at(shape, place):
    S = torch.zeros(shape)
    S[place] = math.nan
    return S


SHAPE = (6, 3)
REFUSED = [
    ("A", [[1.0, 2.0]], TypeError, "A is a list"),
    ("A", torch.zeros(SHAPE, dtype=torch.int64), TypeError, "int64"),
    ("A", torch.zeros(SHAPE, dtype=torch.complex64), TypeError, "complex64"),
    ("A", torch.eye(6).to_sparse(), TypeError, "to_dense"),
    ("A", torch.zeros(6), ValueError, "(6,)"),
    ("A", torch.zeros(2, 3, 4), ValueError, "(2, 3, 4)"),
    ("A", torch.zeros(6, 0), ValueError, "at least one dimension"),
    ("A", nan_at(SHAPE, (4, 1)), ValueError, "(4, 1)"),
    ("A", torch.full(SHAPE, math.inf), ValueError, "18 of 18"),
    ("diameter", 0, ValueError, "diameter is 0"),
    ("diameter", -1.0, ValueError, "diameter is -1.0"),
    ("diameter", math.inf, ValueError, "finite"),
    ("diameter", math.nan, ValueError, "finite"),
    ("diameter", 1e-40, ValueError, "torch.float32 cannot express"),
    ("diameter", 1e38 * 2, ValueError, "torch.float32 cannot express"),
    ("diameter", None, TypeError, "diameter is None"),
    ("diameter", True, TypeError, "diameter is True"),
    ("alignment", 1.0001, ValueError, "alignment is 1.0001"),
    ("alignment", -2, ValueError, "between -1 and 1"),
    ("alignment", math.nan, ValueError, "alignment is nan"),
    ("alignment", "0.5", TypeError, "alignment is '0.5'"),
    ("alignment", None, TypeError, "alignment is None"),
    ("alignment", True, TypeError, "alignment is True"),
    ("measure", "cos", ValueError, "'decrease', 'cosine'"),
    ("measure", None, ValueError, "measure is None"),
    ("solver", "adam", ValueError, "solver is 'adam'"),
    ("solver", ["smoothed"], ValueError, "solver is ['smoothed']"),
    ("passes", 0, ValueError, "at least 1"),
    ("passes", -3, ValueError, "passes is -3"),
    ("passes", 2.0, TypeError, "passes is 2.0 (float)"),
    ("passes", True, TypeError, "passes is True"),
    ("tolerance", -1e-3, ValueError, "tolerance is -0.001"),
    ("tolerance", math.nan, ValueError, "tolerance is nan"),
    ("tolerance", "small", TypeError, "tolerance is 'small'"),
    ("time_limit", -1, ValueError, "time_limit is -1"),
    ("time_limit", math.inf, ValueError, "time_limit is inf"),
    ("time_limit", "1", TypeError, "time_limit is '1'"),
    ("seed", -1, ValueError, "seed is -1"),
    ("seed", 2**64, ValueError, "less than 2**63"),
    ("seed", 0.5, TypeError, "seed is 0.5"),
    ("mask", [True] * 6, TypeError, "mask is list"),
    ("mask", torch.ones(6), TypeError, "mask is torch.float32"),
    ("mask", torch.ones(5, dtype=torch.bool), ValueError, "expected (6,)"),
    ("mask", torch.ones(6, 3, dtype=torch.bool), ValueError, "(6, 3)"),
    ("state", [[0.0]], TypeError, "state is a list"),
    ("state", torch.zeros(5, 3), ValueError, "state has shape (5, 3), expected (6, 3)"),
    ("state", torch.zeros(18), ValueError, "state has shape (18,)"),
    ("state", nan_at(SHAPE, (0, 0)), ValueError, "1 of 18"),
    ("on_pass", 3, TypeError, "on_pass is 3"),
]


@pytest.mark.parametrize(
    "name, value, error, text", REFUSED, ids=[f"{r[0]}-{r[3]}" for r in REFUSED]
)
def test_bad_arguments_are_refused_before_any_work(name, value, error, text, monkeypatch):
    def work(*args, **kwargs):
        raise AssertionError("work has begun")

    for function in ("separate", "certify", "part_ties"):
        monkeypatch.setattr(MODULE, function, work)
    arguments = {"A": torch.arange(18.0).view(SHAPE).sin(), name: value}
    with pytest.raises(error) as caught:
        solve(arguments.pop("A"), **arguments)
    assert text in str(caught.value)


def test_work_would_have_begun(monkeypatch):
    """The table above would pass for nothing if the good arguments were refused, too."""

    def work(*args, **kwargs):
        raise AssertionError("work has begun")

    monkeypatch.setattr(MODULE, "separate", work)
    with pytest.raises(AssertionError, match="work has begun"):
        solve(torch.arange(18.0).view(SHAPE).sin())


def test_a_state_has_the_rows_that_take_part(A):
    mask = torch.arange(40) < 30
    state = solve(A, mask=mask, passes=2).state
    assert state.shape == (30, 8)
    assert solve(A, mask=mask, state=state, passes=2).met
    with pytest.raises(ValueError, match="rows that take part"):
        solve(A, state=state)


def test_numbers_of_other_kinds_are_taken(A):
    expected = solve(A, diameter=2.0, alignment=0.0, passes=3).update
    assert torch.equal(solve(A, diameter=2, alignment=0, passes=3).update, expected)
    tensor = torch.tensor
    assert torch.equal(
        solve(A, diameter=tensor(2.0), alignment=tensor(0.0), passes=3).update, expected
    )


def test_the_figures_are_plain_numbers(A):
    solution = solve(A, passes=3)
    assert isinstance(solution, Solution)
    for name in ("delta", "diameter", "rho", "alignment", "cosine", "bound"):
        assert type(getattr(solution, name)) is float, name
    assert type(solution.passes) is int and type(solution.met) is bool
    assert all(type(k) is int for k in solution.closest + solution.farthest)
    assert solution.bound == bounds.rho_upper_bound(40, 8)


def test_the_figures_are_those_of_the_cloud_module(A):
    for dtype in DTYPES:
        M = A.to(dtype)
        solution = solve(M, passes=3)
        assert solution.rho == cloud.ratio(solution.update).value
        assert solution.alignment == cloud.alignment(M, solution.update)
        assert solution.cosine == cloud.cosine(M, solution.update)


def test_the_passes_asked_for_are_made(A):
    for passes in (1, 2, 7):
        solution = solve(A, passes=passes)
        assert len(solution.history) == passes
        assert f"the {passes} passes" in solution.stop


def test_a_loose_tolerance_stops_early(A):
    solution = solve(A, passes=200, tolerance=0.5)
    assert 8 < len(solution.history) < 60
    assert "gained less than 0.5" in solution.stop
    rhos = [p.rho for p in solution.history]
    assert max(rhos) <= max(rhos[:-8]) * 1.5
    assert len(solve(A, passes=40, tolerance=0.0).history) > len(solution.history)


def test_no_pass_begins_after_the_time_limit(A):
    solution = solve(A, passes=10**9, time_limit=1e-9)
    assert len(solution.history) == 1
    assert "time limit" in solution.stop and "1 passes" in solution.stop
    assert solution.met and 0 < solution.diameter <= 1
    assert len(solve(A, passes=5, time_limit=3600).history) == 5


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("after", [1, 4])
def test_an_interrupt_returns_the_best_so_far(solver, measure, after, A):
    told = []

    def interrupt(progress):
        told.append(progress)
        if len(told) == after:
            raise KeyboardInterrupt

    options = {"solver": solver, "measure": measure, "alignment": 0.5}
    solution = solve(A, passes=1000, on_pass=interrupt, **options)
    assert solution.history == tuple(told) and len(told) == after
    assert f"interrupted after {after} passes" in solution.stop
    assert 0 < solution.diameter <= 1 and solution.met
    held = [p.rho for p in told if (p.alignment if measure == "decrease" else p.cosine) >= 0.5]
    assert solution.rho >= max(held, default=0.0) * (1 - 1e-4)


def test_an_interrupt_before_the_first_pass_returns_the_start(A, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(SOLVERS["projected_gradient"], "visit", interrupt)
    solution = solve(A, solver="projected_gradient")
    assert solution.history == () and "after 0 passes" in solution.stop
    assert solution.met and 0 < solution.diameter <= 1


def test_other_errors_of_a_callback_are_not_swallowed(A):
    def fail(progress):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        solve(A, on_pass=fail)


def test_progress_is_told_once_per_pass(A):
    told = []
    solution = solve(A, passes=6, on_pass=told.append)
    assert all(isinstance(p, Progress) for p in told)
    assert [p.passes for p in told] == [1, 2, 3, 4, 5, 6]
    assert solution.history == tuple(told)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_floor_out_of_reach_is_reported(solver, generator):
    """Two rows of R^d have alignment `sqrt((d+1)/(2d))` at most, 0.77 in R^5."""
    A = gaussian(2, 5, generator)
    most = math.sqrt(6 / 10)
    solution = solve(A, solver=solver, alignment=0.95, passes=6)
    assert not solution.met and solution.alignment == pytest.approx(most, rel=1e-4)
    for part in ("floor 0.95 on decrease", f"no update reaches more than {most:.6g}", "lower the"):
        assert part in solution.stop
    assert "the 6 passes" in solution.stop
    with pytest.raises(FloorNotMet) as caught:
        solve(A, solver=solver, alignment=0.95, passes=6, throw=True)
    assert torch.equal(caught.value.solution.update, solution.update)
    assert str(caught.value) == solution.stop


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_floor_that_is_missed_is_come_close_to(solver, A):
    solution = solve(A, solver=solver, alignment=0.95, passes=6)
    assert not solution.met and "no update is known to exceed" in solution.stop
    # the better of row normalisation and the momentum itself
    assert solution.alignment >= 0.95 * bounds.max_alignment_bounds(A).lower


def test_a_zero_update_misses_a_positive_floor(A):
    assert not solve(torch.zeros_like(A)).met
    assert solve(torch.zeros_like(A), alignment=0.0, throw=True).met
    with pytest.raises(FloorNotMet, match="equal up to rounding") as caught:
        solve(torch.zeros_like(A), throw=True)
    assert not caught.value.solution.update.any()


def test_a_floor_that_is_met_raises_nothing(A):
    assert solve(A, alignment=0.6, passes=6, throw=True).met


@pytest.mark.parametrize("measure", MEASURES)
def test_the_full_floor_keeps_the_momentum(measure, A):
    """At floor 1 nothing but the momentum's own direction is left in the measure "cosine"."""
    solution = solve(A, alignment=1.0, measure=measure, passes=3)
    if measure == "cosine":
        assert solution.cosine == pytest.approx(1.0, abs=1e-6)
    else:
        assert not solution.met and solution.alignment > 0.7


@pytest.mark.parametrize("floor", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_floor_that_every_momentum_allows_is_met(solver, floor, generator):
    """Up to `sqrt((d+1)/(2d))`, whatever the spread of the norms, in one pass as in twenty."""
    for decades in (0.0, 3.0, 6.0):
        M = heavy(60, 6, generator, decades)
        for passes in (1, 2, 20):
            solution = solve(M, solver=solver, alignment=floor, passes=passes)
            assert solution.met, (decades, passes, solution.stop)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_row_normalisation_is_the_last_resort(solver, d, generator):
    """In few dimensions the solvers end up far from the best alignment; the floor is met still."""
    floor = math.sqrt((d + 1) / (2 * d)) * (1 - 1e-6)
    for V in (4, 40):
        M = heavy(V, d, generator).double()
        for passes in (1, 6):
            assert solve(M, solver=solver, alignment=floor, passes=passes).met
            assert solve(M, solver=solver, measure="cosine", alignment=1 - 1e-6, passes=passes).met


def test_a_higher_floor_costs_separation():
    M = demo_momentum()[:400].float()
    rhos = [solve(M, alignment=floor, passes=24).rho for floor in (0.7, 0.78, 0.8)]
    assert rhos[0] > 1.05 * rhos[1] and rhos[1] > 1.05 * rhos[2]


def test_a_mask_may_leave_out_whole_blocks(generator):
    """The rows are read in blocks; one with no row that takes part is no error."""
    d = 2048
    V = 3 * (BLOCK_ENTRIES // d) + 5
    mask = torch.zeros(V, dtype=torch.bool)
    mask[-7:] = True
    M = torch.zeros(V, d, dtype=torch.float16)
    M[mask] = gaussian(7, d, generator, torch.float16)
    solution = solve(M, mask=mask, passes=2)
    assert solution.met and solution.rho > 0.5
    assert not solution.update[~mask].any()
    mask[:] = False
    assert not solve(M, mask=mask, alignment=0.0).update.any()


def test_padding_does_not_bring_the_separation_down(generator):
    M = torch.cat([gaussian(60, 8, generator), torch.zeros(4, 8)])
    mask = torch.arange(64) < 60
    assert solve(M, mask=mask, passes=8).rho == solve(M[:60], passes=8).rho


def test_a_row_of_nan_in_padding_is_refused(A):
    M = A.clone()
    M[5] = math.nan
    mask = torch.arange(40) != 5
    with pytest.raises(ValueError, match="NaN"):
        solve(M, mask=mask)


@pytest.mark.parametrize(("num_rows", "dim"), [(2, 1), (3, 2), (10, 64), (33, 32)])
@pytest.mark.parametrize("measure", ["decrease", "cosine"])
def test_up_to_d_plus_1_rows_are_the_nearest_regular_simplex(num_rows, dim, measure, generator):
    """No rotation of the simplex agrees better: the polar factor of the momentum is optimal."""
    A = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    solution = solve(A, measure=measure, alignment=0.5)
    assert solution.rho >= 1 - 1e-9 and solution.met and len(solution.history) == 1
    assert "bound" in solution.stop
    U, _, Wt = torch.linalg.svd(A - A.mean(dim=0), full_matrices=False)
    rank = num_rows - 1
    polar = U[:, :rank] @ Wt[:rank]
    assert solution.alignment == pytest.approx(cloud.alignment(A, polar), rel=1e-9)
    assert solve(A.half(), measure=measure, alignment=0.5).rho > 0.99


def test_a_momentum_of_one_direction_has_a_simplex_too(generator):
    A = torch.randn(6, 1, generator=generator) * torch.randn(1, 8, generator=generator)
    assert solve(A, alignment=0.3).rho > 1 - 1e-5
