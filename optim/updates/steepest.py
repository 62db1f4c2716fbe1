"""The steepest step: the update of diameter one that decreases the loss most to first order.

    maximise  <momentum, u>  subject to  max_{i<j} ||u_i - u_j|| <= 1

`rowsep.packing.steepest_step` with a few passes. It says nothing of the smallest distance: rows
with the same direction of momentum end on the same point.
"""

from torch import Tensor

from rowsep.packing import SteepestStep, checks, steepest_step
from rowsep.packing.metric import Metric
from rowsep.packing.solvers.steepest.flow import Flow

from .rows import as_rows


def steepest(
    momentum: Tensor,
    *,
    passes: int = 8,
    start: Flow | None = None,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    metric: Metric | None = None,
) -> tuple[Tensor, SteepestStep]:
    """Return the first-order solution, centred, and its certificate.

    The optimum is equivariant under permutation of the rows and rotation of the space where it is
    unique; beyond 300 rows `passes` leave a gap (`SteepestStep.gap`).

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, float16, bfloat16, float32 or
            float64.
        passes: most all-pairs passes, at least 2; two or three that certify come on top. Up to
            300 rows the step is exact to 1e-6 instead.
        start: `SteepestStep.flow` of the step before, from which the next one goes on.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.
        metric: of dimension d, in which the diameter is measured, or None for the plain one.

    Returns:
        The update, of the shape, dtype and device of `momentum`, zero if its rows are equal up to
        rounding; and the `rowsep.packing.SteepestStep`, whose `update` has one row per token.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    checks.check_cloud(momentum, "momentum")
    step = steepest_step(
        as_rows(momentum, vocab_dim), mask=mask, passes=passes, start=start, metric=metric
    )
    return as_rows(step.update, vocab_dim), step
