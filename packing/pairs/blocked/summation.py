"""Pairwise forces in one pass over the tiles, `f_i = sum_j w(q_ij) (s_i - s_j)`.

A tile with many active pairs is summed by two dense products (`W x_J` for its rows and `W^T x_I`
for its columns), one with few by two sparse ones. Each product runs over `[x, ||x||^2, 1]`: the
last column of the result is `sum_j w_ij`, so `f = sum_j w_ij x_i - sum_j w_ij x_j`. Pairs that
nearly coincide are summed by their differences instead.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..results import Forces
from ..rows import Rows, prepare
from ..sparse import Pairs, Part, add_symmetric, part_of
from ..tiles import count, locate, outside, positions
from .sweep import SMALL, Tile, sweep

Weight = Callable[[Tensor], Tensor]
DENSE = 0.12
"""Fraction of active pairs above which a tile is summed densely."""


def forces(S: Tensor, weight: Weight, *, near: float = math.inf, far: float = 0.0) -> Forces:
    """Pairwise forces; see `rowsep.packing.pairs.forces`."""
    return accumulate(prepare(S, exponent=0), weight, near, far)


def accumulate(rows: Rows, weight: Weight, near: float, far: float) -> Forces:
    """`forces` of prepared rows, in their scale."""
    total = Total(rows)
    nearest = rows.augmented.new_full((len(rows),), math.inf)
    farthest = rows.augmented.new_zeros(len(rows))
    pairs = 0
    for tile in sweep(rows):
        tile.record(nearest, farthest)
        if tile.exact is not None:
            pairs += total.add_exactly(tile, weight, near, far)
        elif near >= min(far, math.inf):
            pairs += tile.pairs
            total.add_densely(tile, weight)
        else:
            marks = active(tile, near, far)
            size = count(marks)
            if size > DENSE * tile.pairs:
                total.add_densely(tile, weight)
            elif size:
                found = positions(marks)
                part = part_of(tile.block, tile.columns, found)
                total.add_sparsely(part, tile.at(found), among(found, tile.close), weight)
            pairs += size
    return Forces(total.force(), nearest, farthest, pairs)


def active(tile: Tile, near: float, far: float) -> Tensor:
    """Marks of the pairs `i < j` of a tile with `q <= near` or `q >= far`, its shape or empty."""
    least, greatest = torch.stack([tile.nearest[0].min(), tile.farthest[0].max()]).tolist()
    low, high = least <= near, greatest >= far
    if not low and not high:
        return torch.zeros(0, dtype=torch.bool, device=tile.q.device)
    marks = outside(tile.q, near if low else -math.inf, far if high else math.inf)
    return marks.triu_(1) if tile.diagonal else marks


class Total:
    """The running sums `sum_j w_ij [x_j, ||x_j||^2, 1]` of every row i."""

    def __init__(self, rows: Rows):
        """Start at zero."""
        self.rows = rows
        self.sums = torch.zeros_like(rows.augmented)
        self.pushes = self.sums[:, : rows.dim]  # forces known by themselves go here, negated

    def force(self) -> Tensor:
        """`f`, shape (n, d), in place of the sums: a view of them, to save a copy of the rows."""
        d = self.rows.dim
        return self.sums[:, :d].neg_().addcmul_(self.rows.x, self.sums[:, d + 1 : d + 2])

    def add_densely(self, tile: Tile, weight: Weight) -> None:
        """Sum a whole tile; inactive pairs rely on a weight that vanishes there."""
        close = tile.close
        if close is not None:
            pairs = Pairs(*locate(close, tile.block, tile.columns), tile.at(close))
            self.add_differences(pairs, weight(pairs.q))
        W = weight(tile.q)
        if close is not None:
            W.view(-1)[close] = 0
        if tile.diagonal:
            if close is not None:
                width = W.shape[1]
                W.view(-1)[close % width * width + close // width] = 0
            W.fill_diagonal_(0)
        self._product(tile.block, W, tile.columns)
        if not tile.diagonal:
            self._product(tile.columns, W.T, tile.block)

    def add_sparsely(self, part: Part, q: Tensor, lost: Tensor, weight: Weight) -> None:
        """Sum the pairs of a part with their q; those at positions `lost` by their differences."""
        w = weight(q)
        if len(lost):
            self.add_differences(part.pairs(lost, q), w[lost])
            w[lost] = 0
        part.add_to(self.sums, w, self.rows.augmented)

    def _product(self, block: slice, W: Tensor, columns: slice) -> None:
        sums = self.sums[block]
        torch.addmm(sums, W, self.rows.augmented[columns], out=sums)

    def add_listed(self, pairs: Pairs, weight: Weight) -> None:
        """Sum a list of pairs from anywhere, those that nearly coincide apart."""
        w = weight(pairs.q)
        lost = lost_digits(self.rows, pairs.i, pairs.j, pairs.q)
        if len(lost):
            self.add_differences(Pairs(pairs.i[lost], pairs.j[lost], pairs.q[lost]), w[lost])
            w[lost] = 0
        add_symmetric(self.sums, pairs, w, self.rows.augmented)

    def add_differences(self, pairs: Pairs, w: Tensor) -> None:
        """Sum pairs by the differences of the rows given; equal rows exert nothing."""
        step = self.rows.step
        w = torch.where(pairs.q > 0, w, 0)
        for i, j, c in zip(pairs.i.split(step), pairs.j.split(step), w.split(step), strict=True):
            push = self.rows.differences(i, j).mul_(c[:, None]).to(self.sums.dtype)
            self.pushes.index_add_(0, i, push, alpha=-1).index_add_(0, j, push)

    def add_exactly(self, tile: Tile, weight: Weight, near: float, far: float) -> int:
        """Sum a crowded tile in float64; the count of the active pairs."""
        assert tile.exact is not None
        live = ((tile.exact <= near) | (tile.exact >= far)) & (tile.exact > 0)
        if tile.diagonal:
            live.fill_diagonal_(False)
        W = torch.where(live, weight(tile.q).double(), 0.0)
        x, y = self.rows.centred(tile.block), self.rows.centred(tile.columns)
        self.pushes[tile.block] -= x * W.sum(1, keepdim=True) - W @ y
        if not tile.diagonal:
            self.pushes[tile.columns] -= y * W.sum(0)[:, None] - W.T @ x
        size = live.sum()
        if near >= 0 or far <= 0:
            size += (tile.exact == 0).sum()
        return int(size) // (2 if tile.diagonal else 1)


def among(found: Tensor, close: Tensor | None) -> Tensor:
    """Positions in `found` of what is in `close`."""
    if close is None:
        return found[:0]
    return torch.isin(found, close).nonzero()[:, 0]


def lost_digits(rows: Rows, i: Tensor, j: Tensor, q: Tensor) -> Tensor:
    """Positions of the pairs whose q is so small against the norms that products lose it."""
    norms = rows.norms.contiguous()
    small = SMALL[norms.dtype] * (norms[i] + norms[j])
    return (q < small).nonzero()[:, 0]
