"""Row normalisation: every token moves by the same length.

    u_i = a_i / (||a_i|| + eps)

As in Lau and Su, arXiv 2605.18106 (RowNormM), centred before and after. In a metric
(`rowsep.packing.metric`), where `||s_i Sigma^(1/2)||` is the length of a row,

    u_i = a_i Sigma^-1 / (||a_i Sigma^(-1/2)|| + eps)
"""

from torch import Tensor

from rowsep.packing.metric import Metric

from .in_metric import in_metric
from .rows import on_rows


def row_norm(
    momentum: Tensor,
    *,
    center: bool = True,
    eps: float = 1e-8,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    metric: Metric | None = None,
) -> Tensor:
    """Return the rows of the centred momentum divided by their norms, centred again.

    Equivariant under permutation of the rows and rotation of the space. Row norms are one before
    the second centring, so the diameter of the update is at most 2, and its Frobenius norm about
    `sqrt(V)`, both in the metric if there is one.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, any floating dtype.
        center: subtract the mean row before and after.
        eps: added to the norms, relative to their root mean square (the published code adds it to
            the norms as they are, so its update depends on the scale of the gradient).
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.
        metric: of dimension d, or None for the plain one.

    Returns:
        Shape, dtype and device of `momentum`. Rows that are rounding noise of the momentum, and
        zero rows, get the direction zero.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    return on_rows(
        in_metric(lambda rows, scale: unit_rows(rows, eps), metric),
        momentum,
        center=center,
        vocab_dim=vocab_dim,
        mask=mask,
    )


def unit_rows(rows: Tensor, eps: float) -> Tensor:
    """`x_i / (||x_i|| + eps rms)`, rms that of the row norms; zero for a zero row."""
    norms = rows.norm(dim=1, keepdim=True)
    return rows / (norms + eps * norms.square().mean().sqrt()).clamp_min(1e-30)
