"""The sign of the momentum, entry by entry.

As in signSGD with momentum, Signum (Bernstein, Wang, Azizzadenesheli and Anandkumar, ICML 2018);
Scion takes it for heads, divided by d (Pethick et al., arXiv 2502.07529).
"""

from torch import Tensor

from .rows import on_rows


def sign(
    momentum: Tensor, *, center: bool = True, vocab_dim: int = 0, mask: Tensor | None = None
) -> Tensor:
    """Return the signs of the centred momentum, centred.

    Equivariant under permutation of the rows and of the coordinates, not under rotation. Rows have
    norm `sqrt(d)` before the second centring, so the diameter is at most `2 sqrt(d)`.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, any floating dtype.
        center: subtract the mean row before and after.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.

    Returns:
        Shape, dtype and device of `momentum`; zero if its rows are equal up to rounding.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    return on_rows(
        lambda rows, scale: rows.sign(), momentum, center=center, vocab_dim=vocab_dim, mask=mask
    )
