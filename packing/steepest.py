"""The steepest step: of all updates of bounded diameter, the one that decreases the loss most.

    N(A) = max <A, S>  subject to  D(S) <= 1

is a norm of the centred momentum and convex; it says nothing of separation. Its alignment is the
largest floor that `rowsep.packing.solve` can meet. Proofs: docs/explanation/mathematics.md;
figures: docs/results/steepest_step.md.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from . import checks
from .bounds import steepest_upper_bound
from .bounds.certify import certify
from .cloud import jung_radius
from .metric import Metric, as_metric, momentum_in_metric
from .rows import CentredRows, times_power_of_two
from .solvers.steepest.first_order import Candidate, first_order
from .solvers.steepest.flow import Flow
from .solvers.steepest.interior_point import interior_point

SOLVERS = ("auto", "first_order", "interior_point", "cone")
SMALL = 300
"""Up to this many rows "auto" solves exactly."""
EXACT = 1e-6
NEAR = 1e-2
LIGHT = 1e-12
"""Rows with less than this part of the momentum are left to the residual."""


@dataclass(frozen=True)
class SteepestStep:
    """A feasible update, and a dual flow that proves how far any other could exceed it."""

    update: Tensor
    """`S`, shape (V, d), centred, dtype and device of the momentum, `D(S) <= diameter`."""
    value: float
    """`<A,S>` of the update as returned, summed in float64."""
    upper: float
    """No update of this diameter has more, up to float64 rounding of the sums."""
    gap: float
    """`(upper - value)/upper`; 0.0 for a zero update."""
    alignment: float
    """`value / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`."""
    diameter: float
    """`D(S)` of the update as returned, in the metric if there is one."""
    flow: Flow = field(repr=False)
    """`f_ij` with `sum_j f_ij = a_i` but for the rounding or the residual that `upper` pays for.
    Rows are numbered as in `A`; pass it as `start=` with the next momentum."""
    passes: int
    """All-pairs passes spent, those that certify the result included."""
    stop: str
    """Why the solver stopped."""


@torch.no_grad()
def steepest_step(
    A: Tensor,
    *,
    diameter: float = 1.0,
    mask: Tensor | None = None,
    solver: str = "auto",
    tolerance: float | None = None,
    passes: int = 48,
    start: Flow | None = None,
    metric: Tensor | Metric | None = None,
) -> SteepestStep:
    """Maximise `<A,S>` over all updates whose rows lie within `diameter` of one another.

    The upper bound is `diameter (sum_{i<j} ||f_ij|| + J sum_i ||r_i||)` with the residual
    `r_i = a_i - sum_j f_ij` and Jung's radius `J = sqrt(r/(2(r+1)))`, `r = min(d, V-1)`, or
    `rowsep.packing.bounds.steepest_upper_bound` where that is less. It holds for any flow.

    The result does not depend on the scale of `A` or a shift common to its rows; permuting and
    rotating `A` does the same to the optimum, which need not be unique.

    Args:
        A: momentum, shape (V, d), float16, bfloat16, float32 or float64; centred here.
        diameter: largest row distance of the update, positive.
        mask: rows that take part, shape (V,), bool. The others come back as zero.
        solver: "first_order" (full vocabularies, O(V d + pairs) memory, pairs about 20 V),
            "interior_point" (V up to about 500, gap 1e-6), "cone" (a reference: cvxpy and Clarabel,
            V up to about 50) or "auto": "interior_point" up to 300 rows, "first_order" beyond.
        tolerance: relative gap at which to stop; by default 0.01 for "first_order", 1e-6 for the
            others. float16 and bfloat16 updates lose up to a rounding of their dtype besides.
        passes: most all-pairs passes of "first_order", at least 2; two or three that certify the
            result come on top.
        start: flow of a similar momentum of the same shape, from which "first_order" starts.
        metric: a `rowsep.packing.metric.Metric`, or the second moment Sigma of the hidden states,
            shape (d, d): the diameter is that of `S Sigma^(1/2)`, and the flow and its residual
            are of `a_i Sigma^(-1/2)`.

    Returns:
        A feasible update, at worst the row-normalised momentum, with its certificate. A momentum
        of equal rows, or fewer than two, gives a zero update.

    Raises:
        TypeError, ValueError: an argument is not as above.
        RuntimeError: the conic solver of "cone" failed.
    """
    _check(A, diameter, mask, solver, tolerance, passes, start)
    blocks = CentredRows(A, mask)
    # one row per row that takes part, in float64: norms below sum to 1
    momentum = torch.cat([*blocks, A.new_empty((0, A.shape[1]), dtype=torch.float64)])
    rows = torch.arange(len(A), device=A.device)
    if mask is not None:
        rows = rows[mask]
    metric = as_metric(metric, A)
    if blocks.count < 2 or blocks.only_rounding(A.dtype):
        return _zero(A, rows)
    exponent = blocks.exponent
    if metric is not None:
        momentum, taken_out = momentum_in_metric(momentum, metric)
        exponent += taken_out
    norms = momentum.norm(dim=1)
    total = float(norms.sum())
    momentum /= total
    heavy = (norms > LIGHT * total).nonzero()[:, 0]
    made = _solve(momentum[heavy], A.dtype, solver, tolerance, passes, _on(start, rows[heavy]))

    flow = _over(made.flow, heavy, len(momentum))
    residual = float((momentum - flow.divergence()).norm(dim=1).sum())
    upper = flow.cost() + jung_radius(min(A.shape[1], len(momentum) - 1)) * residual
    # a row with hardly any momentum sits on the heaviest one
    cloud = made.rows[norms[heavy].argmax()].expand(len(momentum), -1).clone()
    cloud[heavy] = made.rows
    certified = certify(cloud, A, mask, diameter, metric)
    spread = certified.exact.diameter
    unit = times_power_of_two(total, exponent)
    value = certified.alignment * spread * jung_radius(A.shape[1]) * unit
    if metric is None:
        closed = steepest_upper_bound(A, diameter, mask).value
    else:
        closed = steepest_upper_bound(momentum, diameter).value * unit
    upper = min(upper * diameter * unit, closed)
    return SteepestStep(
        update=certified.update(A, mask),
        value=value,
        upper=upper,
        gap=(upper - value) / upper,
        alignment=certified.alignment,
        diameter=spread,
        flow=_over(flow._replace(weights=flow.weights * unit), rows, len(A)),
        passes=made.passes + certified.passes,
        stop=made.stop,
    )


def _solve(
    momentum: Tensor,
    dtype: torch.dtype,
    solver: str,
    tolerance: float | None,
    passes: int,
    start: Flow | None,
) -> Candidate:
    if solver == "auto":
        solver = "interior_point" if len(momentum) <= SMALL else "first_order"
    if tolerance is None:
        tolerance = NEAR if solver == "first_order" else EXACT
    if solver == "first_order":
        working = torch.promote_types(dtype, torch.float32)
        return first_order(momentum.to(working), tolerance=tolerance, passes=passes, start=start)
    if solver == "interior_point":
        return interior_point(momentum, tolerance=tolerance)
    # imported here, as cvxpy takes seconds
    from .solvers.steepest.cone import cone

    return cone(momentum, tolerance=tolerance)


def _over(flow: Flow, rows: Tensor, num_rows: int) -> Flow:
    """The flow, numbered within `rows`, as one in float64 on all `num_rows`."""
    positions = flow.positions.new_zeros((num_rows, flow.positions.shape[1]), dtype=torch.float64)
    positions[rows] = flow.positions.double()
    return Flow(rows[flow.pairs], flow.weights.double(), positions)


def _on(flow: Flow | None, rows: Tensor) -> Flow | None:
    """The part of a flow between `rows`, numbered within them, its weights summing to 1/2."""
    if flow is None:
        return None
    place = torch.full((len(flow.positions),), -1, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    pairs = place[flow.pairs]
    inside = (pairs >= 0).all(dim=1) & (flow.weights > 0)
    if not bool(inside.any()):
        return None
    w = flow.weights[inside]
    return Flow(pairs[inside], w / (2 * w.sum()), flow.positions[rows])


def _zero(A: Tensor, rows: Tensor) -> SteepestStep:
    """The zero update, for a momentum without a direction."""
    why = "the rows of the momentum are equal up to rounding"
    if len(rows) < 2:
        why = f"{len(rows)} rows take part, fewer than two"
    flow = Flow(rows.new_zeros((0, 2)), rows.new_zeros(0).double(), torch.zeros_like(A).double())
    update = torch.zeros_like(A, memory_format=torch.contiguous_format)
    return SteepestStep(update, 0.0, 0.0, 0.0, 0.0, 0.0, flow, 0, f"{why}: no direction to follow")


def _check(
    A: Tensor,
    diameter: float,
    mask: Tensor | None,
    solver: str,
    tolerance: float | None,
    passes: int,
    start: Flow | None,
) -> None:
    checks.check_cloud(A, "A")
    checks.check_mask(mask, A)
    checks.check_diameter(diameter, A.dtype)
    checks.check_choice(solver, "solver", SOLVERS)
    if tolerance is not None:
        checks.check_size(tolerance, "tolerance")
    checks.check_count(passes, "passes", 2)
    if start is not None and start.positions.shape != A.shape:
        raise ValueError(
            f"start is a flow on a momentum of shape {tuple(start.positions.shape)}, expected "
            f"{tuple(A.shape)}: pass SteepestStep.flow of an earlier step of the same head"
        )
