"""The one front door: `solve(A, ...)` checks, centres, runs a solver and certifies the result."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from . import checks
from .bounds import alignment_upper_bound, closed_form_bound, rho_upper_bound, volume_bound
from .bounds.certify import Certified, certify
from .metric import Metric, as_metric, momentum_in_metric
from .rows import CentredRows
from .solution import FloorNotMet, Progress, Solution
from .solvers.geometry import Ball, Geometry, Onion, Shell
from .solvers.guttman import Guttman
from .solvers.projected_gradient import ProjectedGradient
from .solvers.separation import Limits, Method, Run, agreement, separate
from .solvers.simplex import nearest_simplex
from .solvers.smoothed import Smoothed
from .solvers.ties import part_ties
from .steepest import steepest_step

SOLVERS: dict[str, type[Method]] = {
    "smoothed": Smoothed,
    "projected_gradient": ProjectedGradient,
    "guttman": Guttman,
}
EXACT = "exact"
MEASURES = ("decrease", "cosine")
REPAIRS = 4


@torch.no_grad()
def solve(
    A: Tensor,
    *,
    diameter: float = 1.0,
    alignment: float = 0.5,
    measure: str = "decrease",
    solver: str = "projected_gradient",
    passes: int = 24,
    starts: int = 256,
    tolerance: float | None = None,
    time_limit: float | None = None,
    state: Tensor | None = None,
    seed: int = 0,
    mask: Tensor | None = None,
    metric: Tensor | Metric | None = None,
    on_pass: Callable[[Progress], None] | None = None,
    throw: bool = False,
) -> Solution:
    """Separate the rows of an update that agrees with a momentum.

        maximise  delta(S) = min_{i<j} ||s_i - s_j||
        subject to  D(S) = max_{i<j} ||s_i - s_j|| <= diameter  and  agreement(A, S) >= alignment

    With a `metric` Sigma, the second moment of the hidden states, the rows are those of
    `T = S Sigma^(1/2)` and the momentum is `A Sigma^(-1/2)`: delta, D and the agreement are theirs,
    and `diameter` bounds the change of a pair's log-odds at any h with `h^T Sigma^-1 h <= 1`.

    The problem is not convex and the solution is a local one; `bound` says how far `rho` is from
    what no cloud of this size can exceed. Up to d+1 rows the start is the regular simplex that
    agrees best with the momentum, of `rho` 1, and is returned where it meets the floor. The result
    does not depend on the scale of `A`, on a shift common to its rows, on the order of the rows or
    on a rotation of the space, but for rounding and for rows of `A` that are equal, which `seed`
    parts.

    Args:
        A: momentum, shape (V, d), float16, bfloat16, float32 or float64, one row per token; its
            mean over the rows that take part is subtracted here.
        diameter: largest row distance of the update; positive.
        alignment: least agreement, between -1 and 1. Up to `sqrt((d+1)/(2d))` (0.707) it can be
            met in the measure "decrease" for every `A`.
        measure: "decrease", `<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`, the share of the
            largest first-order decrease; or "cosine", `<A,S> / (||A|| ||S||)`, which keeps the
            proportions of the rows.
        solver: "projected_gradient", "smoothed" or "guttman"; docs/explanation/solvers.md compares
            them. Or "exact" for small clouds, V d at most 512: the best of many local optima, with
            the conditions of optimality in `Solution.optimality`.
        passes: most all-pairs passes of the solver, at least 1. Two exact passes that certify the
            result come on top; two more if an earlier iterate was better, up to ten to repair a
            missed floor, and one each time that rounding to a short dtype carried the diameter
            over. `Solution.passes` counts all of them. They also pace the run, so more of them
            need not end higher, above all with few rows. Not used by "exact".
        starts: of "exact", rounded up to batches of 64; the others have one.
        tolerance: stop as soon as `rho` gained less than this part of itself in eight passes.
            Not used by "exact".
        time_limit: seconds after which no new pass of the solver, or batch of "exact", begins.
        state: `Solution.state` of an earlier call, shape (rows that take part, d): start from
            there and not from the momentum.
        seed: parts rows that are equal, and draws the starts of "exact"; no global random state
            is read or changed.
        mask: rows that take part, shape (V,), bool. The others come back as zero, the mean of
            those that do, and count nowhere.
        metric: a `rowsep.packing.metric.Metric`, or Sigma of shape (d, d); None for the plain
            metric. Figures and the bound are those of the update as returned, multiplied by the
            root again in float64; `state` is in the metric.
        on_pass: called after each pass of the solver; not by "exact".
        throw: raise `FloorNotMet` instead of returning a Solution that misses the floor.

    Returns:
        The update in the dtype and on the device of `A`, with its exact figures. Ctrl-C ends the
        solver and returns the best so far. `A` of equal rows, or equal up to rounding (64
        roundings of the working dtype relative to the largest row of `A` before centring), gives
        a zero update. Working precision is float64 for float64 momenta and float32 for the rest.

    Raises:
        TypeError, ValueError: an argument is not as above.
        FloorNotMet: the floor was missed and `throw` is set; it carries the solution.
    """
    began = time.monotonic()
    _check(
        A, diameter, alignment, measure, solver, passes, starts, tolerance, time_limit, seed, mask
    )
    if on_pass is not None and not callable(on_pass):
        raise TypeError(f"on_pass is {on_pass!r}, expected a function of a Progress")
    metric = as_metric(metric, A)
    momentum = _centred(A, mask)
    _check_state(state, momentum)
    if not bool(momentum.any()):
        return _told(_zero(A, momentum, alignment), throw)
    if metric is not None:
        momentum = momentum_in_metric(momentum, metric)[0]
    problem = _Problem(A, mask, metric, diameter, measure, alignment)

    deadline = None if time_limit is None else began + time_limit
    if solver == EXACT:
        return _told(
            _exactly(problem, momentum, starts, seed, deadline, state),
            throw,
        )
    geometry = _geometry(momentum, measure, alignment)
    run = Run(_start(geometry, momentum, state, seed), math.inf)
    limits = Limits(passes, tolerance, deadline, on_pass, rho_upper_bound(*momentum.shape))
    try:
        separate(
            geometry,
            alignment,
            SOLVERS[solver](),
            run,
            limits,
            agreement(momentum, measure),
        )
    except KeyboardInterrupt:
        run.stop = f"interrupted after {len(run.history)} passes: this is the best so far"
    chosen, passes_spent = _finish(run, geometry, momentum, problem)
    return _told(_solution(chosen, run, passes_spent, problem), throw)


class _Problem(NamedTuple):
    """What was asked, and how a candidate is judged."""

    A: Tensor
    mask: Tensor | None
    metric: Metric | None
    diameter: float
    measure: str
    floor: float

    def certify(self, rows: Tensor) -> Certified:
        return certify(rows, self.A, self.mask, self.diameter, self.metric)

    def held(self, made: Certified) -> float:
        return made.alignment if self.measure == "decrease" else made.cosine

    def most(self) -> float:
        """No update reaches a larger alignment."""
        if self.metric is None:
            return alignment_upper_bound(self.A, self.mask)
        rows = CentredRows(self.A, self.mask).of(self.A)
        return alignment_upper_bound(self.metric.whitened(rows), self.mask)


def _exactly(
    problem: _Problem,
    momentum: Tensor,
    starts: int,
    seed: int,
    deadline: float | None,
    state: Tensor | None,
) -> Solution:
    """Solve a small problem, aiming higher where rounding to the dtype costs the floor."""
    from .exact.separate import separate_exactly  # of an extra

    measure, floor = problem.measure, problem.floor
    towards = momentum if measure == "cosine" else steepest_step(momentum).update
    made = separate_exactly(
        momentum, measure, floor, towards, starts=starts, seed=seed, deadline=deadline, state=state
    )
    chosen = problem.certify(made.rows.to(momentum))
    spent = chosen.passes
    for attempt in range(REPAIRS):
        missing = floor - problem.held(chosen)
        if missing <= 0 or made.optimality is None:
            break
        made = made.raised(floor + 2.0**attempt * 2.0 * missing)
        chosen = problem.certify(made.rows.to(momentum))
        spent += chosen.passes
    run = Run(chosen.rows, chosen.rows_diameter, stop=made.stop)
    solution = _solution(chosen, run, spent, problem)
    agreeing = made.found.basins[0].starts if made.found.basins else 0
    return dataclasses.replace(
        solution, optimality=made.optimality, starts=made.found.starts, agreeing=agreeing
    )


def _start(geometry: Geometry, momentum: Tensor, state: Tensor | None, seed: int) -> Tensor:
    if state is not None:
        rows = state.to(momentum, copy=True)
    elif len(momentum) <= momentum.shape[1] + 1:
        rows = nearest_simplex(momentum)  # of largest rho already
    else:
        rows = geometry.start()
    return geometry.retract_(part_ties(geometry.retract_(rows), seed))


def _told(solution: Solution, throw: bool) -> Solution:
    if throw and not solution.met:
        raise FloorNotMet(solution)
    return solution


def _finish(
    run: Run,
    geometry: Geometry,
    momentum: Tensor,
    problem: _Problem,
) -> tuple[Certified, int]:
    """Certify the newest iterate, repair a missed floor, or take the best iterate.

    The last resort is the momentum, its rows normalised in the measure "decrease".
    """

    floor = problem.floor

    def merit(made: Certified) -> tuple[bool, float]:
        held = problem.held(made)
        return (True, made.rho) if held >= floor else (False, held)

    chosen = problem.certify(run.rows)
    spent = len(run.history) + chosen.passes
    for attempt in range(REPAIRS):
        if problem.held(chosen) >= floor:
            break
        aim = floor + 4.0**attempt * 1e-4 * (1 - abs(floor))
        rows = geometry.restore_(chosen.rows.clone(), chosen.rows_diameter, aim, strain=0.999)
        if torch.equal(rows, chosen.rows):
            continue
        other = problem.certify(rows)
        spent += other.passes
        chosen = max(chosen, other, key=merit)
        run.rows = chosen.rows
        del rows, other  # the one that lost need not be held while the next is made
    if run.best is not None and merit(chosen) < (True, run.best_rho * (1 - 1e-5)):
        other = problem.certify(run.best)
        spent += other.passes
        chosen = max(chosen, other, key=merit)
    if problem.held(chosen) < floor:
        # of cosine 1, or of alignment sqrt((d+1)/(2d)) and more
        rows = momentum if problem.measure == "cosine" else Shell(momentum).start()
        other = problem.certify(rows)
        spent += other.passes
        chosen = max(chosen, other, key=merit)
    return chosen, spent


def _solution(chosen: Certified, run: Run, spent: int, problem: _Problem) -> Solution:
    measure, floor = problem.measure, problem.floor
    held = problem.held(chosen)
    met = held >= floor
    stop = run.stop
    if not met:
        stop = f"the floor {floor:g} on {measure} was missed, {held:.6g} was reached"
        if measure == "decrease":
            most = problem.most()
            can = "no update reaches more than" if most < floor else "no update is known to exceed"
            stop += f" ({can} {most:.6g}); lower the floor: the alignment "
            stop += "of packing.steepest_step is what can be had"
        stop += f"; {run.stop}"
    num_rows, dim = chosen.rows.shape
    return Solution(
        update=chosen.update(problem.A, problem.mask),
        delta=chosen.exact.delta,
        diameter=chosen.exact.diameter,
        rho=chosen.rho,
        alignment=chosen.alignment,
        cosine=chosen.cosine,
        bound=rho_upper_bound(num_rows, dim),
        closest=chosen.exact.closest,
        farthest=chosen.exact.farthest,
        passes=spent,
        met=met,
        stop=stop,
        state=chosen.rows.contiguous(),
        history=tuple(run.history),
    )


def _zero(A: Tensor, momentum: Tensor, floor: float) -> Solution:
    """The zero update for a momentum without a direction."""
    num_rows, dim = momentum.shape
    why = "the rows of the momentum are equal up to rounding"
    if num_rows < 2:
        why = f"{num_rows} rows take part, fewer than two"
    met = floor <= 0
    return Solution(
        update=torch.zeros_like(A, memory_format=torch.contiguous_format),
        delta=0.0 if num_rows > 1 else math.inf,
        diameter=0.0,
        rho=0.0,
        alignment=0.0,
        cosine=0.0,
        bound=rho_upper_bound(num_rows, dim),
        closest=(-1, -1),
        farthest=(-1, -1),
        passes=0,
        met=met,
        stop=f"{why}: no direction to follow, so the update is zero",
        state=momentum,
        history=(),
    )


def _geometry(momentum: Tensor, measure: str, floor: float) -> Geometry:
    if measure == "cosine":
        return Onion(momentum, floor)
    if volume_bound(*momentum.shape) < closed_form_bound(*momentum.shape):
        return Ball(momentum)
    return Shell(momentum)


def _centred(A: Tensor, mask: Tensor | None) -> Tensor:
    """`A` less its mean at unit scale in the working dtype, or zeros if that is rounding noise."""
    dtype = torch.float64 if A.dtype == torch.float64 else torch.float32
    blocks = CentredRows(A, mask)
    momentum = A.new_empty((blocks.count, A.shape[1]), dtype=dtype)
    at = 0
    for block in blocks:
        momentum[at : at + len(block)] = block
        at += len(block)
    return momentum.zero_() if blocks.count < 2 or blocks.only_rounding(dtype) else momentum


def _check(
    A: Tensor,
    diameter: float,
    alignment: float,
    measure: str,
    solver: str,
    passes: int,
    starts: int,
    tolerance: float | None,
    time_limit: float | None,
    seed: int,
    mask: Tensor | None,
) -> None:
    checks.check_cloud(A, "A")
    checks.check_mask(mask, A)
    checks.check_diameter(diameter, A.dtype)
    checks.check_floor(alignment, "alignment")
    checks.check_choice(measure, "measure", MEASURES)
    checks.check_choice(solver, "solver", (*SOLVERS, EXACT))
    checks.check_count(passes, "passes", 1)
    checks.check_count(starts, "starts", 1)
    if solver == EXACT:
        checks.check_small(len(A) if mask is None else int(mask.sum()), A.shape[1])
    checks.check_count(seed, "seed", 0)
    if seed >= 2**63:
        raise ValueError(f"seed is {seed}, expected less than 2**63")
    for value, name in ((tolerance, "tolerance"), (time_limit, "time_limit")):
        if value is not None:
            checks.check_size(value, name)


def _check_state(state: Tensor | None, momentum: Tensor) -> None:
    if state is None:
        return
    checks.check_cloud(state, "state")
    if state.shape != momentum.shape:
        raise ValueError(
            f"state has shape {tuple(state.shape)}, expected {tuple(momentum.shape)}: the state "
            f"of a solution for as many rows that take part"
        )
    if state.numel() and float(state.abs().max()) > 1e15:
        raise ValueError(
            f"state has an entry of magnitude {float(state.abs().max()):.3g}, expected rows near "
            f"unit scale: pass Solution.state as it was returned"
        )
