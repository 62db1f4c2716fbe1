"""Tiles of squared distances, accurate also for rows that nearly coincide.

A tile is the product `[-2x, 1, ||x||^2] [x, ||x||^2, 1]^T`. Where an entry is small against the
norms the product has lost its digits, and the entry is computed again by direct differences of the
rows given: pair by pair where there are few, the whole tile where rows cluster.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..rows import Rows
from ..tiles import above_diagonal, block_size, locate, triangle

SMALL = {torch.float32: 2.0**-10, torch.float64: 2.0**-20}
"""Below this fraction of `||x_i||^2 + ||x_j||^2` an entry is computed again."""
CROWD = 64
"""One such entry in this many makes a tile crowded."""


@dataclass(frozen=True)
class Tile:
    """Squared distances between two blocks of rows."""

    block: slice
    """Rows of the tile."""
    columns: slice
    """Columns of the tile."""
    q: Tensor
    """`q_ij`, working dtype; on the diagonal, where i = j, `inf`."""
    nearest: tuple[Tensor, Tensor]
    """Least entry of each row and of each column."""
    farthest: tuple[Tensor, Tensor]
    """Greatest entry of each row and of each column, the diagonal left out."""
    close: Tensor | None
    """Flat indices of the entries computed again pair by pair (`i < j` only), or None."""
    exact: Tensor | None
    """The whole tile by direct differences, float64, when it is crowded, else None."""

    @property
    def diagonal(self) -> bool:
        """Whether the tile's rows are its columns."""
        return self.block == self.columns

    @property
    def pairs(self) -> int:
        """Count of its pairs `i < j`."""
        height, width = self.q.shape
        return height * (height - 1) // 2 if self.diagonal else height * width

    def record(self, nearest: Tensor, farthest: Tensor) -> None:
        """Lower and raise each row's nearest and farthest q by the tile's, shape (n,) each."""
        for k, part in enumerate((self.block, self.columns)):
            torch.minimum(nearest[part], self.nearest[k], out=nearest[part])
            torch.maximum(farthest[part], self.farthest[k], out=farthest[part])

    def at(self, flat: Tensor) -> Tensor:
        """Entries at flat indices."""
        return self.q.view(-1).index_select(0, flat)


def sweep(rows: Rows) -> Iterator[Tile]:
    """Every tile of the upper triangle; a tile's tensors are valid until the next one."""
    block = block_size(rows.source.device)
    left, start = rows.augmented[:0], -1
    buffer = rows.augmented.new_zeros(min(block, len(rows)) ** 2)
    for part, columns in triangle(len(rows), block):
        if part.start != start:
            left, start = rows.left(part), part.start
        right = rows.augmented[columns]
        q = buffer[: len(left) * len(right)].view(len(left), len(right))
        torch.mm(left, right.T, out=q)
        if part == columns:
            q.fill_diagonal_(math.inf)
        nearest = q.amin(1)
        norms = rows.norms[part], rows.norms[columns]
        close = _lost(q, nearest, *norms, part == columns)
        exact = None
        if close is not None:
            close, exact = _repair(rows, q, close, part, columns)
            nearest = q.amin(1)
        if part == columns:
            q.fill_diagonal_(0)
            farthest = q.amax(1)
            q.fill_diagonal_(math.inf)
            yield Tile(part, columns, q, (nearest, nearest), (farthest, farthest), close, exact)
        else:
            least, greatest = (nearest, q.amin(0)), (q.amax(1), q.amax(0))
            yield Tile(part, columns, q, least, greatest, close, exact)


def _lost(q: Tensor, nearest: Tensor, n: Tensor, m: Tensor, diagonal: bool) -> Tensor | None:
    """Flat indices of the entries that are small against their norms, or None."""
    small = SMALL[q.dtype]
    some = (nearest < small * (n + m.max())).nonzero()[:, 0]
    if not len(some):
        return None
    entries = (q[some] - small * m < small * n[some, None]).nonzero()
    flat = some[entries[:, 0]] * q.shape[1] + entries[:, 1]
    if diagonal:
        flat = above_diagonal(flat, q.shape[1])
    return flat if len(flat) else None


def _repair(
    rows: Rows, q: Tensor, close: Tensor, part: slice, columns: slice
) -> tuple[Tensor | None, Tensor | None]:
    """Write the direct values of the `close` entries, or of all, into `q`."""
    if len(close) > max(256, q.numel() // CROWD):
        exact = torch.cdist(
            rows.scaled(part),
            rows.scaled(columns),
            compute_mode="donot_use_mm_for_euclid_dist",
        ).square_()
        if part == columns:
            exact.fill_diagonal_(math.inf)
        q.copy_(exact)
        return None, exact
    i, j = locate(close, part, columns)
    values = rows.distances(i, j).to(q.dtype)
    q.view(-1)[close] = values
    if part == columns:
        q[j - columns.start, i - part.start] = values
    return close, None
