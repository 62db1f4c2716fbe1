"""Row normalisation and the right polar factor together, in either order.

    row_then_polar   nu^alpha polar(C row_norm(A))    nu the nuclear norm of C row_norm(A)
    polar_then_row   row_norm(polar(A))               alpha cancels

with A the centred momentum and C the centring; the result is centred. As in Lau and Su, arXiv
2605.18106 (HybridPolarGradM): their class defaults to polar_then_row, their experiments use
row_then_polar.
"""

from torch import Tensor

from rowsep.packing import checks

from .right_polar import scaled_polar
from .row_norm import unit_rows
from .rows import on_rows

ORDERS = ("row_then_polar", "polar_then_row")


def hybrid(
    momentum: Tensor,
    *,
    order: str,
    alpha: float = 1.0,
    num_steps: int = 5,
    center: bool = True,
    eps: float = 1e-8,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the update of the order named above.

    Equivariant under permutation of the rows and rotation of the space; it does not depend on the
    scale of the momentum.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, any floating dtype.
        order: "row_then_polar" or "polar_then_row".
        alpha: power of the nuclear norm in the scale of row_then_polar; without effect on
            polar_then_row.
        num_steps: of the Polar Express; see `right_polar`.
        center: subtract the mean row before, between and after.
        eps: as in `right_polar` and in `row_norm`, both relative.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.

    Returns:
        Shape, dtype and device of `momentum`; zero if its rows are equal up to rounding.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    checks.check_choice(order, "order", ORDERS)

    def row_then_polar(rows: Tensor, scale: float) -> Tensor:
        del scale  # lost in the normalisation
        rows = unit_rows(rows, eps)
        if center:
            rows = rows - rows.mean(dim=0)
        return scaled_polar(rows, 1.0, alpha, num_steps, eps)

    def polar_then_row(rows: Tensor, scale: float) -> Tensor:
        return unit_rows(scaled_polar(rows, scale, 0.0, num_steps, eps), eps)

    return on_rows(
        row_then_polar if order == "row_then_polar" else polar_then_row,
        momentum,
        center=center,
        vocab_dim=vocab_dim,
        mask=mask,
    )
