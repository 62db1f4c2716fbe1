"""Equal rows are parted by noise, as no force acts between them.

Unseen tokens and padding make blocks of equal rows in real momenta, and normalising rows makes
more. The first of equal rows keeps its place. Zero rows have no direction and get one at random.
"""

import torch
from torch import Tensor

from .geometry import ROWS

SIZE = 0.1
"""Noise relative to the largest row; small against the distances aimed at, large enough that one
pass can tell the directions apart."""


def part_ties(rows: Tensor, seed: int) -> Tensor:
    """Add noise of norm about `SIZE * max ||x_i||` to rows equal to an earlier row, and to zeros.

    Args:
        rows: shape (n, d); not changed.
        seed: of the noise; the global random state is neither read nor changed.
    """
    keys = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    for part, block in zip(keys.split(ROWS), rows.split(ROWS), strict=True):
        part.copy_(_hash(block + 0.0, seed))
    order = torch.sort(keys, stable=True).indices
    again = torch.zeros_like(keys, dtype=torch.bool)
    again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    again |= ~rows.any(dim=1)
    if not bool(again.any()):
        return rows
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(int(again.sum()), rows.shape[1], generator=generator, dtype=torch.float64)
    noise *= SIZE * float(rows.norm(dim=1).max().clamp_min(1e-30)) / rows.shape[1] ** 0.5
    parted = rows.clone()
    parted[again] += noise.to(rows)
    return parted


def _hash(rows: Tensor, seed: int) -> Tensor:
    """A 64-bit key per row, equal for equal rows wherever they stand."""
    words = rows.contiguous().view(torch.int32).to(torch.int64)
    generator = torch.Generator().manual_seed(seed)
    factors = torch.randint(-(2**62), 2**62, words.shape[1:], generator=generator)
    return (words * (2 * factors + 1).to(rows.device)).sum(dim=1)
