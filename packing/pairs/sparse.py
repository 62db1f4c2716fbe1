"""Lists of pairs, and the sparse matrices in compressed rows that sum over them."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from packing.pairs.tiles import order_of


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
    """The listed pairs of one tile, row by row, ready for sparse products within the cache."""

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

    def matrix(self, values: Tensor) -> Tensor:
        """The values at (i, j), sparse."""
        return compressed(self.i, self.j, values, self._shape)

    def transposed(self, values: Tensor) -> Tensor:
        """The values at (j, i), sparse."""
        heads, tails = self.j[self.order], self.i[self.order]
        height, width = self._shape
        return compressed(heads, tails, values[self.order], (width, height))

    def pairs(self, which: Tensor, q: Tensor) -> Pairs:
        """The pairs at positions `which`, numbered in the cloud, with their q."""
        i = self.i[which].long() + self.block.start
        j = self.j[which].long() + self.columns.start
        return Pairs(i, j, q[which])

    @property
    def _shape(self) -> tuple[int, int]:
        return self.block.stop - self.block.start, self.columns.stop - self.columns.start


def part_of(block: slice, columns: slice, flat: Tensor) -> Part:
    """The pairs at ascending flat indices of a tile."""
    place, width = flat.int(), columns.stop - columns.start
    i, j = place // width, place % width
    return Part(block, columns, i, j, order_of(j))


def symmetric(pairs: Pairs, w: Tensor, n: int) -> Tensor:
    """The sparse matrix with `w` at (i, j) and (j, i), shape (n, n)."""
    heads, order = torch.sort(torch.cat([pairs.i, pairs.j]).int(), stable=True)
    tails = torch.cat([pairs.j, pairs.i])[order]
    return compressed(heads, tails, torch.cat([w, w])[order], (n, n))


def compressed(heads: Tensor, tails: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The sparse matrix with `values` at rows `heads`, ascending, and columns `tails`."""
    ends = torch.zeros(shape[0] + 1, dtype=tails.dtype, device=tails.device)
    ends[1:] = torch.bincount(heads, minlength=shape[0]).cumsum(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(ends, tails, values, shape, check_invariants=False)
