"""Lists of pairs, and the weighted sums of rows over them."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from .tiles import order_of

ROWS = 1024
"""Rows that a list of pairs is summed for at a time."""


@dataclass(frozen=True)
class Pairs:
    """A list of pairs `i < j`, shape (k,) each, with their squared distances."""

    i: Tensor
    j: Tensor
    q: Tensor


def join(parts: list[Pairs]) -> Pairs:
    """One list of several."""
    i, j, q = (torch.cat([getattr(p, name) for p in parts]) for name in ("i", "j", "q"))
    return Pairs(i, j, q)


@dataclass(frozen=True)
class Part:
    """The listed pairs of one tile, row by row, and the order that goes column by column."""

    block: slice
    """Rows of the tile."""
    columns: slice
    """Columns of the tile."""
    i: Tensor
    """Row of each pair within the tile, shape (k,), int32, ascending."""
    j: Tensor
    """Column of each pair within the tile, shape (k,), int32."""
    order: Tensor
    """Stable order that sorts the columns, shape (k,), int64."""

    def __len__(self) -> int:
        """Count of the pairs."""
        return len(self.i)

    def add_to(self, sums: Tensor, w: Tensor, x: Tensor) -> None:
        """Add `sum_j w_ij x_j` to row i of `sums` and `sum_i w_ij x_i` to row j.

        Args:
            sums: Shape (n, m), as long as the cloud.
            w: A weight for each pair, shape (k,).
            x: Shape (n, m).
        """
        block, columns, order = self.block, self.columns, self.order
        sums[block] += weighted_sums(self.i, self.j, w, x[columns], _size(block))
        heads, tails = self.j.index_select(0, order), self.i.index_select(0, order)
        w = w.index_select(0, order)
        sums[columns] += weighted_sums(heads, tails, w, x[block], _size(columns))

    def pairs(self, which: Tensor, q: Tensor) -> Pairs:
        """The pairs at positions `which`, numbered in the cloud, with their q."""
        i = self.i[which].long() + self.block.start
        j = self.j[which].long() + self.columns.start
        return Pairs(i, j, q[which])


def part_of(block: slice, columns: slice, flat: Tensor) -> Part:
    """The pairs at ascending flat indices of a tile."""
    place, width = flat.int(), _size(columns)
    i = place // width
    j = place - i * width
    return Part(block, columns, i, j, order_of(j))


def _size(part: slice) -> int:
    return part.stop - part.start


def weighted_sums(heads: Tensor, tails: Tensor, w: Tensor, x: Tensor, n: int) -> Tensor:
    """`sum of w x_tail` over the pairs of each head 0 ... n-1, shape (n, m).

    This is the product of a sparse matrix in compressed rows with `x`; `embedding_bag` is torch's
    fastest on a CPU, adds in a fixed order on a GPU and wants no matrix object.

    Args:
        heads: Shape (k,), ascending.
        tails: Rows of `x`, shape (k,), int32.
        w: Weights, shape (k,), dtype of `x`.
        x: Shape (r, m).
        n: Count of the heads.
    """
    numbers = torch.arange(n, dtype=heads.dtype, device=heads.device)
    starts = torch.searchsorted(heads, numbers, out_int32=True)
    return embedding_bag(tails, x, starts, mode="sum", per_sample_weights=w)


def both_ways(pairs: Pairs, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Heads, ascending, tails and weights of the pairs (i, j) and (j, i): int32, int32, as `w`."""
    heads, order = torch.sort(torch.cat([pairs.i, pairs.j]).int(), stable=True)
    tails = torch.cat([pairs.j, pairs.i]).int()[order]
    return heads, tails, torch.cat([w, w])[order]


def add_symmetric(sums: Tensor, pairs: Pairs, w: Tensor, x: Tensor) -> None:
    """Add `sum_j w_ij x_j` over the listed pairs to every row of `sums`, both shape (n, m)."""
    heads, tails, w = both_ways(pairs, w)
    edges = torch.arange(0, len(sums) + ROWS, ROWS, dtype=heads.dtype, device=heads.device)
    cuts = torch.searchsorted(heads, edges).tolist()
    for start, a, b in zip(edges.tolist(), cuts, cuts[1:], strict=False):
        if a < b:
            part = sums[start : start + ROWS]
            part += weighted_sums(heads[a:b] - start, tails[a:b], w[a:b], x, len(part))
