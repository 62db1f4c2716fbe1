"""The left polar factor: the momentum with its left Gram matrix whitened.

    u = nu^alpha L M,   L ~ (M M^T)^(-1/2) of shape (V, V),   nu = tr(M M^T L) ~ ||M||_*

As in Lau and Su, arXiv 2605.18106 (LeftPolarGradM), meant for routers: few rows, many dimensions.
"""

from torch import Tensor

from .right_polar import scaled_polar
from .rows import on_rows


def left_polar(
    momentum: Tensor,
    *,
    alpha: float = 1.0,
    num_steps: int = 5,
    center: bool = True,
    eps: float = 1e-8,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return `nu^alpha L M` of the centred momentum M, centred.

    In exact arithmetic the same matrix as `right_polar`, as `(M M^T)^(-1/2) M = M (M^T M)^(-1/2)`
    and the polynomials keep that; it costs V^3 in place of d^3 and memory for V^2 numbers. With
    more rows than dimensions the Gram matrix is singular and, past five steps, float32 rounding in
    its null space grows (12 % of the update after 8 steps at 96 x 24). Prefer `right_polar` for a
    head, this one for a router.

    Args, result and errors: as for `right_polar`.
    """
    return on_rows(
        lambda rows, scale: scaled_polar(rows.T, scale, alpha, num_steps, eps).T,
        momentum,
        center=center,
        vocab_dim=vocab_dim,
        mask=mask,
    )
