"""NorMuon's update: the polar factor of the momentum, over the RMS of each of its rows.

    x_i = p_i / sqrt(v_i),  P ~ M (M^T M)^(-1/2);   u = 0.2 sqrt(V d) X / ||X||_F

Li, Liu, Liang, Chen and Zhao, arXiv 2510.05491. The polar factor is that of `right_polar` where the
authors have Newton and Schulz's; the scale is the paper's.
"""

import torch
from torch import Tensor

from rowsep.packing import checks

from .rows import as_rows

SCALE = 0.2
"""Root mean square of an update's entries, so that a learning rate of AdamW carries over."""
EPS = 1e-10


def normuon(
    polar: Tensor,
    row_squares: Tensor,
    *,
    center: bool = True,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the rows of a polar factor over `sqrt(v_i)`, at root mean square 0.2.

    Equivariant under permutation of the rows and rotation of the space.

    Args:
        polar: shape (V, d), or (d, V) with `vocab_dim=1`, floating, from
            `rowsep.optim.updates.right_polar` with alpha 0.
        row_squares: `v_i`, shape (V,), see `followed_row_squares`.
        center: subtract the mean row; the authors do not.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.

    Returns:
        Shape, dtype and device of `polar`; the mean is over the entries that take part.

    Raises:
        TypeError, ValueError: `row_squares` or `mask` has another shape, or `vocab_dim` is neither
            0 nor 1.
    """
    rows = as_rows(polar, vocab_dim)
    if row_squares.shape != rows.shape[:1]:
        raise ValueError(
            f"row_squares has shape {tuple(row_squares.shape)}, expected ({len(rows)},)"
        )
    checks.check_mask(mask, rows)
    scaled = rows / (row_squares.sqrt() + EPS)[:, None]
    kept = scaled if mask is None else scaled[mask]
    if center:
        kept = kept - kept.mean(dim=0)
    kept = kept * (SCALE * kept.numel() ** 0.5 / kept.norm().clamp_min(1e-30))
    if mask is None:
        return as_rows(kept, vocab_dim)
    update = torch.zeros_like(scaled)
    update[mask] = kept
    return as_rows(update, vocab_dim)


def followed_row_squares(
    row_squares: Tensor, polar: Tensor, beta: float, *, vocab_dim: int = 0
) -> Tensor:
    """Return `v_i` after one more step: `v_i <- beta v_i + (1 - beta) ||p_i||^2 / d`.

    Args:
        row_squares: shape (V,), floating.
        polar: shape (V, d), or (d, V) with `vocab_dim=1`.
        beta: decay of the average, in [0, 1).
        vocab_dim: the axis that counts tokens.
    """
    squares = as_rows(polar, vocab_dim).square().mean(dim=1)
    return torch.lerp(row_squares, squares.to(row_squares.dtype), 1 - beta)
