"""A list of the pairs that matter, kept while the rows move less than a skin.

One pass lists every pair within `sqrt(near) (1 + skin)` or beyond `sqrt(far) (1 - skin)`. While the
two largest row displacements together stay below `skin` times the smaller of the two radii, no
unlisted pair can have become active, so forces need the list alone (Verlet, Phys. Rev. 159, 1967).
"""

import math
import warnings

import torch
from torch import Tensor

from ..results import Forces
from ..rows import prepare
from ..sparse import Part, part_of
from ..tiles import locate, positions
from .screen import ROUNDOFF, bound
from .summation import Total, Weight, active
from .sweep import SMALL, Tile, sweep


class TooManyPairs(ValueError):
    """The list would hold more pairs than allowed; sum all pairs with `forces` instead."""


class PairList:
    """Active pairs of a cloud and those that a small move can make active.

    Args:
        S: Rows, shape (V, d), any floating dtype.
        near: Pairs with `q <= near` are active, finite, in the units of `S` squared.
            Zero for none: equal rows exert nothing.
        far: Pairs with `q >= far` are active; `inf` for none.
        skin: Relative width of the shell listed in advance, 0 <= skin < 1. A wider shell lasts
            longer and lists more: 1 or 2 % is usual.
        max_pairs: Most pairs to list.

    Raises:
        TooManyPairs: More than `max_pairs` pairs qualify; found out without listing them.
        ValueError: An argument is out of its range.
    """

    def __init__(
        self, S: Tensor, *, near: float, far: float, skin: float, max_pairs: int = 1 << 24
    ):
        """Visit all pairs once, O(V^2 d) time and O(V d + pairs) memory."""
        if not (0 <= near < math.inf and far > near and 0 <= skin < 1):
            raise ValueError(
                f"PairList needs 0 <= near < far, near finite and 0 <= skin < 1, "
                f"got near={near}, far={far}, skin={skin}"
            )
        rows = prepare(S, exponent=0)
        self.near = near
        self.far = far
        radii = [math.sqrt(q) for q in (near, far) if 0 < q < math.inf]
        self.reach = skin * min(radii, default=0.0)
        """Sum of two row displacements that the list survives."""
        self.start = S.detach().clone()
        low, high = near * (1 + skin) ** 2, far * (1 - skin) ** 2
        self.pairs = 0
        """Pairs listed."""
        self.nearest = rows.augmented.new_full((len(rows),), math.inf)
        """Each row's nearest q over all pairs where the list was built."""
        self.farthest = rows.augmented.new_zeros(len(rows))
        """Each row's farthest q over all pairs where the list was built."""
        self._parts: list[Part] = []
        u = ROUNDOFF[rows.augmented.dtype]
        slack = bound(
            rows.squares, u * rows.squares.sqrt(), u, rows.dim, rows.x.dtype, rows.x.dtype
        )
        for tile in sweep(rows):
            tile.record(self.nearest, self.farthest)
            flat = _qualified(tile, slack, low, high)
            self.pairs += len(flat)
            if self.pairs > max_pairs:
                raise TooManyPairs(
                    f"more than {max_pairs} pairs qualify: lower near, raise far, narrow the "
                    f"skin, or sum all pairs with forces()"
                )
            if len(flat):
                self._parts.append(part_of(tile.block, tile.columns, flat))

    def covers(self, S: Tensor) -> bool:
        """Whether every active pair of `S` is certainly listed, O(V d)."""
        if S.shape != self.start.shape or len(S) < 2:
            return S.shape == self.start.shape
        moved = S.new_zeros(len(S), dtype=torch.float64)
        blocks = zip(moved.split(1024), S.detach().split(1024), self.start.split(1024), strict=True)
        for part, a, b in blocks:
            part.copy_((a.double() - b.double()).norm(dim=1))
        return float(moved.topk(2).values.sum()) * (1 + 2.0**-40) <= self.reach

    def forces(self, S: Tensor, weight: Weight) -> Forces:
        """Forces at `S` from the listed pairs alone, O(pairs d).

        Equal to `rowsep.packing.pairs.forces(S, weight, near=near, far=far)` as long as
        `covers(S)`; `nearest` and `farthest` are taken over the listed pairs, `inf` and 0 where a
        row has none.

        Args:
            S: Rows, shape (V, d), moved from where the list was built.
            weight: Elementwise function of q that vanishes for `near < q < far`.
        """
        rows = prepare(S, exponent=0)
        total = Total(rows)
        nearest = torch.full_like(self.nearest, math.inf)
        farthest = torch.zeros_like(self.farthest)
        left, start = rows.augmented[:0], -1
        norms = rows.norms.contiguous()
        count = 0
        for part in self._parts:
            if part.block.start != start:
                left, start = rows.left(part.block), part.block.start
            q = _distances(part, left, rows.augmented[part.columns])
            places = (part.block, part.i.long()), (part.columns, part.j.long())
            size = sum(norms[block][at] for block, at in places)
            lost = (q < SMALL[q.dtype] * size).nonzero()[:, 0]
            if len(lost):
                pairs = part.pairs(lost, q)
                q[lost] = rows.distances(pairs.i, pairs.j).to(q.dtype)
            for block, at in places:
                nearest[block].scatter_reduce_(0, at, q, "amin")
                farthest[block].scatter_reduce_(0, at, q, "amax")
            count += int(((q <= self.near) | (q >= self.far)).sum())
            total.add_sparsely(part, q, lost, weight)
        return Forces(total.force(), nearest, farthest, count)


def _distances(part: Part, left: Tensor, right: Tensor) -> Tensor:
    """Entries of `left right^T` at the pairs of a part, shape (k,)."""
    numbers = torch.arange(len(left) + 1, dtype=torch.int32, device=left.device)
    starts = torch.searchsorted(part.i, numbers, out_int32=True)
    zeros = torch.zeros(len(part), dtype=left.dtype, device=left.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        shape = len(left), len(right)
        pattern = torch.sparse_csr_tensor(starts, part.j, zeros, shape, check_invariants=False)
    return torch.sparse.sampled_addmm(pattern, left, right.T, beta=0).values()


def _qualified(tile: Tile, slack: Tensor, low: float, high: float) -> Tensor:
    """Flat indices of a tile's pairs with `q <= low` or `q >= high`: a few more, never one less."""
    room = float(slack[tile.block].max() + slack[tile.columns].max())
    flat = positions(active(tile, low + room, high - room))
    i, j = locate(flat, tile.block, tile.columns)
    q, doubt = tile.at(flat), slack[i] + slack[j]
    return flat[(q - doubt <= low) | (q + doubt >= high)]
