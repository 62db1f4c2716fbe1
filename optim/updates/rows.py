"""From a parameter's momentum to rows that a rule can act on, and back.

    rows = c (M - 1 mean(M)),  c > 0 such that entries are at most about one
    update = rule(rows) - 1 mean(rule(rows))

The scale is taken out before any rule adds an `eps`, so gradients of any scale give the same
update. A centred row that is rounding noise of `M` counts as zero: normalised, it would be noise
of full size.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rowsep.packing import checks

NOISE = 64
"""A centred row counts as zero up to this many roundings of the rows that it is a difference of."""


def on_rows(
    rule: Callable[[Tensor, float], Tensor],
    momentum: Tensor,
    *,
    center: bool = True,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Apply a rule to the rows of a momentum that take part, centred before and after.

    Args:
        rule: called with `rows`, shape (n, d), float32 or float64, largest entry one before
            centring, and with the factor that they were divided by; returns shape (n, d).
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, float16, bfloat16, float32 or
            float64.
        center: subtract the mean row before and after the rule.
        vocab_dim: the axis that counts tokens, 0 or 1.
        mask: bool, shape (V,), True for the rows that take part.

    Returns:
        Shape, dtype and device of `momentum`; zero in rows left out; zero altogether if the rows
        are zero or, with `center`, equal up to rounding.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    checks.check_cloud(momentum, "momentum")
    oriented = as_rows(momentum, vocab_dim)
    checks.check_mask(mask, oriented)
    rows, scale = _prepared(oriented if mask is None else oriented[mask], center)
    update = torch.zeros_like(oriented, memory_format=torch.contiguous_format)
    if scale > 0:
        made = rule(rows, scale)
        if center:
            made = made - made.mean(dim=0)
        update[... if mask is None else mask] = made.to(update.dtype)
    return as_rows(update, vocab_dim)


def as_rows(matrix: Tensor, vocab_dim: int) -> Tensor:
    """The matrix with one row per token: itself or its transpose, which undoes itself.

    Raises:
        ValueError: `vocab_dim` is neither 0 nor 1.
    """
    if vocab_dim not in (0, 1):
        raise ValueError(f"vocab_dim is {vocab_dim!r}, expected 0 or 1")
    return matrix if vocab_dim == 0 else matrix.T


def _prepared(rows: Tensor, center: bool) -> tuple[Tensor, float]:
    """Rows at unit scale in the working dtype and the scale, 0.0 if nothing is left of them."""
    rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
    scale = float(rows.abs().max()) if rows.numel() else 0.0
    if scale == 0:
        return rows, 0.0
    rows = rows / scale
    if center:
        mean = rows.mean(dim=0)
        before = rows.norm(dim=1) + mean.norm()
        rows = rows - mean
        noise = NOISE * torch.finfo(rows.dtype).eps * before
        rows = rows * (rows.norm(dim=1) > noise)[:, None]
    return rows, scale if bool(rows.any()) else 0.0
