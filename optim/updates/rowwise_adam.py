"""The rowwise Adam update: the momentum of a row over the root mean square of its gradients.

    x_i = a_i / r_i,   u = x, or the right polar factor of x

Row normalisation divides by the length of the momentum, which makes a row whose gradients cancel
as long as one whose gradients agree. `r_i`, the root mean square of the lengths of the gradients,
leaves the first one short, as Adam's second moment does entry by entry; one number for a row is the
partial rowwise Adam of FBGEMM (pytorch.org/FBGEMM).
"""

import torch
from torch import Tensor

from optim.updates.right_polar import right_polar
from optim.updates.rows import NOISE, as_rows, on_rows


def rowwise_adam(
    momentum: Tensor,
    row_rms: Tensor,
    *,
    polar: bool = True,
    num_steps: int = 5,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the rows of the centred momentum over `row_rms`, centred, made orthogonal if asked.

    Equivariant under permutation of the rows and rotation of the space. The scale of the result is
    not fixed without `polar`: bring it to a diameter.

    Args:
        momentum: shape (V, d), or (d, V) with `vocab_dim=1`, any floating dtype.
        row_rms: `r_i`, shape (V,), nonnegative, at any common scale; see `followed_row_rms`.
        polar: take the right polar factor of the rows (`optim.updates.right_polar`, alpha 0).
        num_steps: its polynomials.
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others come back as zero.

    Returns:
        Shape, dtype and device of `momentum`; rows with `r_i = 0` count as zero before they are
        centred.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    rms = row_rms if mask is None else row_rms[mask]
    largest = rms.max() if len(rms) else rms.sum()

    def divided(rows: Tensor, scale: float) -> Tensor:
        del scale
        relative = (rms / largest).to(rows)[:, None]
        return torch.where(relative > 0, rows / relative, 0.0)

    scaled = on_rows(divided, momentum, vocab_dim=vocab_dim, mask=mask)
    if not polar:
        return scaled
    return right_polar(scaled, alpha=0.0, num_steps=num_steps, vocab_dim=vocab_dim, mask=mask)


def followed_row_rms(
    row_rms: Tensor,
    grad: Tensor,
    beta: float,
    *,
    vocab_dim: int = 0,
    mask: Tensor | None = None,
) -> Tensor:
    """Return `r_i` after one more gradient: `r_i^2 <- beta r_i^2 + (1 - beta) ||g_i - mean(g)||^2`.

    To the length of a centred row its rounding is added, so that a row which is nothing but
    rounding does not get the length of a signal. Without underflow at any scale of the gradients.

    Args:
        row_rms: shape (V,), float32 or float64.
        grad: shape (V, d), or (d, V) with `vocab_dim=1`.
        beta: decay of the average of squares, in [0, 1).
        vocab_dim: the axis that counts tokens.
        mask: bool, shape (V,), True for the rows that take part; the others keep `r_i`.
    """
    rows = as_rows(grad, vocab_dim).to(row_rms.dtype)
    rows = rows if mask is None else rows[mask]
    scale = rows.abs().max() if rows.numel() else rows.sum()
    if not scale > 0:  # NaN too, which the momentum refuses
        return row_rms * beta**0.5
    rows = rows / scale
    mean = rows.mean(dim=0)
    noise = NOISE * torch.finfo(rows.dtype).eps * (rows.norm(dim=1) + mean.norm())
    lengths = torch.hypot((rows - mean).norm(dim=1), noise) * scale
    made = row_rms.clone()
    place = slice(None) if mask is None else mask
    made[place] = torch.hypot(beta**0.5 * row_rms[place], (1 - beta) ** 0.5 * lengths)
    return made
