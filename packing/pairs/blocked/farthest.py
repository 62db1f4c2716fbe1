"""The diameter alone: only rows far from the middle can be an end of a longest pair.

About any point c, `||s_i - s_j|| <= r_i + r_j` with `r_i = ||s_i - c||`. So once some pair has been
found at distance L, rows with `r_i < L - max r` are out. That leaves few where lengths differ
much, and all where they are one.
"""

import torch
from torch import Tensor

from ..rows import Rows

SWEEPS = 3
"""A first pair: the row farthest from the mean, the row farthest from that, and so on."""


def ends(rows: Rows) -> Tensor:
    """Return which of the participating rows may be an end of a longest pair, shape (n,), bool.

    About `4 n d` float64 operations. Both ends of every longest pair are among them: the mean is a
    float64 number, so radii and distances are off by rounding relative to themselves alone, but for
    squares that underflow: of rows scaled to one, those below 1e-150.
    """
    radii = rows.squares.sqrt()
    everyone = torch.arange(len(rows), device=radii.device)
    end, largest, longest = radii.argmax(), radii.max(), radii.new_zeros(())
    for _ in range(SWEEPS):
        distances = rows.distances(end.expand(len(rows)), everyone).sqrt()
        end, longest = distances.argmax(), torch.maximum(longest, distances.max())
    doubt = (rows.dim + 64) * 2**-50 * (longest + 2 * largest) + 1e-150
    return radii >= longest - largest - doubt
