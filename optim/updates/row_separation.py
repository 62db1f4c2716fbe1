"""Row separation: the update of diameter one that keeps the tokens apart.

    maximise  min_{i<j} ||u_i - u_j||
    subject to  max_{i<j} ||u_i - u_j|| <= 1  and  alignment(momentum, u) >= floor

`rowsep.packing.solve` with a few passes, started at the momentum or at the rows of the step before.
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from rowsep.packing import Solution, checks, solve
from rowsep.packing.metric import Metric
from rowsep.packing.solvers.separation import MET

from .hybrid import hybrid
from .left_polar import left_polar
from .right_polar import right_polar
from .row_norm import row_norm
from .rows import as_rows

PRECONDITIONERS: dict[str, Callable[..., Tensor] | None] = {
    "none": None,
    "right_polar": right_polar,
    "left_polar": left_polar,
    "row_norm": row_norm,
    "row_then_polar": partial(hybrid, order="row_then_polar"),
}


def row_separation(
    momentum: Tensor,
    *,
    alignment: float = 0.65,
    measure: str = "decrease",
    passes: int = 4,
    solver: str = "projected_gradient",
    precondition: str = "none",
    start: Tensor | None = None,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    seed: int = 0,
    metric: Metric | None = None,
) -> tuple[Tensor, Solution]:
    """Return a centred update of diameter at most one with well-separated rows.

    The diameter is exact: no pair of rows of the update, as returned, is farther apart than 1, and
    the farthest one is within 1e-5 of it in float32 and float64. A step of `lr` times the update
    changes no pair's log-odds by more than `lr` times the norm of the hidden state.

    Equivariant under permutation of the rows and rotation of the space up to rounding, if no two
    rows of the momentum are equal. Equal rows are parted by noise from `seed` in the order in which
    they stand, which both break.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, float16, bfloat16, float32 or
            float64.
        alignment: least agreement with the momentum, -1 to 1; see `rowsep.packing.solve`.
        measure: of the agreement, "decrease" or "cosine".
        passes: all-pairs passes of the solver; two or more that certify come on top.
        solver: "projected_gradient", "smoothed" or "guttman".
        precondition: what the update agrees with: the momentum ("none"), or its "right_polar"
            or "left_polar" factor, or "row_norm", or "row_then_polar", see
            `rowsep.optim.updates.hybrid`.
        start: `Solution.state` of an earlier step with as many rows that take part (warm start),
            or None to start from the momentum (cold).
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero and
            count nowhere.
        seed: parts equal rows.
        metric: of dimension d, in which distances and agreement are measured, see
            `rowsep.packing.solve`; what `precondition` makes of the momentum is made in the plain
            one.

    Returns:
        The update, of the shape, dtype and device of `momentum`, zero if its rows are equal up to
        rounding; and the `rowsep.packing.Solution` with its exact figures, whose `update` has one
        row per token and whose alignment and cosine are with what `precondition` made of the
        momentum.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
        KeyboardInterrupt: it came while solving, where `rowsep.packing.solve` would return the best
        so
            far.
    """
    checks.check_choice(precondition, "precondition", tuple(PRECONDITIONERS))
    checks.check_cloud(momentum, "momentum")
    rows = as_rows(momentum, vocab_dim)
    change = PRECONDITIONERS[precondition]
    solution = solve(
        rows if change is None else change(rows, mask=mask),
        alignment=alignment,
        measure=measure,
        passes=passes,
        solver=solver,
        state=start,
        mask=mask,
        seed=seed,
        metric=metric,
    )
    # with neither a tolerance nor a time limit solve stops early at the bound or if interrupted
    history = solution.history
    if 0 < len(history) < passes and history[-1].rho < solution.bound * (1 - MET):
        raise KeyboardInterrupt
    return as_rows(solution.update, vocab_dim), solution
