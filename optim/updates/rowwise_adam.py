"""The rowwise Adam update: the momentum of a row over the root mean square of its gradients.

    x_i = a_i / r_i,   u = x, or x (x^T x)^(-1/2), or x C^(-1/2)

Row normalisation divides by the length of the momentum, which makes a row whose gradients cancel
as long as one whose gradients agree. `r_i`, the root mean square of the lengths of the gradients,
leaves the first one short, as Adam's second moment does entry by entry; one number for a row is the
partial rowwise Adam of FBGEMM (pytorch.org/FBGEMM). The Gram matrix that whitens is that of the
step (the right polar factor) or an average C over steps, as one side of Shampoo (Gupta, Koren and
Singer, arXiv 1802.09568).
"""

import torch
from torch import Tensor

from rowsep.packing import checks
from rowsep.packing.metric import Metric

from .in_metric import in_metric, whitened_as
from .right_polar import DAMPING, inverse_root, scaled_polar
from .rows import as_rows, on_rows


def rowwise_adam(
    momentum: Tensor,
    row_rms: Tensor,
    *,
    polar: bool = True,
    num_steps: int = 5,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    metric: Metric | None = None,
    gram: Tensor | None = None,
) -> Tensor:
    """Return the rows of the centred momentum over `row_rms`, centred, whitened if asked.

    Equivariant under permutation of the rows and rotation of the space. The scale of the result is
    not fixed without `polar`: bring it to a diameter. The polar factor is that of
    `rowsep.optim.updates.right_polar` with alpha 0, damped as said there, and so is `C^(-1/2)`.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, any floating dtype.
        row_rms: `r_i`, shape (V,), nonnegative, at any common scale; see `followed_row_rms`.
        polar: whiten the rows, by the Gram matrix of their own or by `gram`.
        num_steps: polynomials of the inverse root, at least 1.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.
        metric: take `a_i Sigma^(-1/2)` for `a_i`, and `u Sigma^(-1/2)` for u.
        gram: C, shape (d, d), at any scale; see `followed_gram`. None for the rows' own.

    Returns:
        Shape, dtype and device of `momentum`; rows with `r_i = 0` count as zero before they are
        centred.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    checks.check_count(num_steps, "num_steps", 1)
    count = as_rows(momentum, vocab_dim).shape[0]
    if row_rms.shape != (count,):
        raise ValueError(f"row_rms has shape {tuple(row_rms.shape)}, expected ({count},)")
    if not bool((row_rms.isfinite() & (row_rms >= 0)).all()):
        raise ValueError("row_rms has entries that are NaN, infinite or negative")
    rms = row_rms if mask is None else row_rms[mask]

    def divided(rows: Tensor, scale: float) -> Tensor:
        del scale
        relative = (rms / rms.max()).to(rows)[:, None]
        scaled = torch.where(relative > 0, rows / relative, 0.0)
        if not polar or not scaled.any():
            return scaled
        scaled = scaled - scaled.mean(dim=0)
        if gram is None:
            return scaled_polar(scaled, 1.0, 0.0, num_steps, DAMPING)
        average = gram.to(scaled) / gram.trace().to(scaled)
        return scaled @ inverse_root(average, num_steps, DAMPING)

    return on_rows(in_metric(divided, metric), momentum, vocab_dim=vocab_dim, mask=mask)


def followed_row_rms(
    row_rms: Tensor,
    grad: Tensor,
    beta: float,
    *,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    metric: Metric | None = None,
) -> Tensor:
    """Return `r_i` after one more gradient: `r_i^2 <- beta r_i^2 + (1 - beta) ||g_i - mean(g)||^2`.

    Lengths are kept in place of their squares, which underflow for gradients of 1e-20.

    Args:
        row_rms: shape (V,), float32 or float64.
        grad: shape (V, d), or (d, V) with `vocab_dim=1`.
        beta: decay of the average of squares, in [0, 1).
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others keep `r_i`.
        metric: take the lengths of `(g_i - mean(g)) Sigma^(-1/2)`.

    Raises:
        TypeError, ValueError: the gradient is no floating matrix, an entry is NaN or infinite, or
            the length of a row overflows.
    """
    checks.check_cloud(grad, "gradient")
    rows, scale = _centred(grad, row_rms.dtype, vocab_dim, mask)
    if not rows.numel():
        return row_rms.clone()
    lengths = (rows if metric is None else whitened_as(rows, metric)).norm(dim=1) * scale
    made, place = row_rms.clone(), slice(None) if mask is None else mask
    made[place] = torch.hypot(beta**0.5 * row_rms[place], (1 - beta) ** 0.5 * lengths)
    if not bool(made.isfinite().all()):
        raise ValueError(
            f"the length of a row of the gradient is beyond {rows.dtype}, whose largest number is "
            f"{torch.finfo(rows.dtype).max:.3g}; skip this step, or scale the loss down"
        )
    return made


def followed_gram(
    gram: Tensor,
    grad: Tensor,
    row_rms: Tensor,
    beta: float,
    *,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
    metric: Metric | None = None,
) -> Tensor:
    """Return C after one more gradient: `C <- beta C + (1 - beta) z^T z / ||z||_F^2`.

    Here `z_i = (g_i - mean(g)) / r_i`, or `(g_i - mean(g)) Sigma^(-1/2) / r_i`, centred again. Each
    step counts alike, as the first `r_i` are too short by a factor that all rows share.

    Args:
        gram: C, shape (d, d), float32 or float64.
        grad: shape (V, d), or (d, V) with `vocab_dim=1`, finite.
        row_rms: `r_i` with this gradient in it, shape (V,).
        beta: decay of the average, in [0, 1).
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part.
        metric: of dimension d, or None for the plain one.
    """
    rows, _ = _centred(grad, gram.dtype, vocab_dim, mask)
    rms = row_rms if mask is None else row_rms[mask]
    if not rms.any():
        return gram.clone()
    if metric is not None:
        rows = whitened_as(rows, metric)
    relative = (rms / rms.max()).to(rows)[:, None]
    rows = torch.where(relative > 0, rows / relative, 0.0)
    rows = rows - rows.mean(dim=0)
    size = rows.norm()
    if not bool(size > 0):
        return gram.clone()
    rows = rows / size
    return gram.lerp(rows.T @ rows, 1 - beta)


def _centred(
    grad: Tensor, dtype: torch.dtype, vocab_dim: int, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The rows that take part less their mean, over the largest entry, and that entry."""
    rows = as_rows(grad, vocab_dim).to(dtype)
    rows = rows if mask is None else rows[mask]
    if not rows.numel():
        return rows, rows.new_zeros(())
    scale = rows.abs().max().clamp_min(torch.finfo(rows.dtype).tiny)
    rows = rows / scale
    return rows - rows.mean(dim=0), scale
