"""A list of the pairs that matter, kept while the rows move less than a skin.

One pass lists every pair within `sqrt(near) (1 + skin)` or beyond `sqrt(far) (1 - skin)`. While the
two largest row displacements together stay below `skin` times the smaller of the two radii, no
unlisted pair can have become active, so forces need the list alone (Verlet, Phys. Rev. 159, 1967).
"""

import math

import torch
from torch import Tensor

from packing.pairs.results import Forces
from packing.pairs.rows import Rows, prepare
from packing.pairs.screen import ROUNDOFF, bound
from packing.pairs.sparse import Pairs, join, symmetric_pattern, with_values
from packing.pairs.summation import Total, Weight, active, lost_digits
from packing.pairs.sweep import sweep
from packing.pairs.tiles import locate, positions


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
        pairs, self.nearest, self.farthest = collect(rows, low, high, max_pairs)
        self.pairs = len(pairs.i)
        """Pairs listed."""
        self.pattern, _ = symmetric_pattern(pairs.i, pairs.j, len(rows), rows.augmented.dtype)

    def covers(self, S: Tensor) -> bool:
        """Whether every active pair of `S` is certainly listed, O(V d)."""
        if S.shape != self.start.shape or len(S) < 2:
            return S.shape == self.start.shape
        moved = torch.cat(
            [
                (a.double() - b.double()).norm(dim=1)
                for a, b in zip(S.detach().split(1024), self.start.split(1024), strict=True)
            ]
        )
        return float(moved.topk(2).values.sum()) * (1 + 2.0**-40) <= self.reach

    def forces(self, S: Tensor, weight: Weight) -> Forces:
        """Forces at `S` from the listed pairs alone, O(pairs d).

        Equal to `packing.pairs.forces(S, weight, near=near, far=far)` as long as `covers(S)`;
        `nearest` and `farthest` are taken over the listed pairs, `inf` and 0 where a row has none.

        Args:
            S: Rows, shape (V, d), moved from where the list was built.
            weight: Elementwise function of q that vanishes for `near < q < far`.
        """
        rows = prepare(S, exponent=0)
        n = len(rows)
        x, left = rows.augmented, rows.left(slice(0, n))
        columns = self.pattern.col_indices()
        counts = self.pattern.crow_indices().diff()
        heads = torch.repeat_interleave(torch.arange(n, device=x.device), counts)
        q = torch.sparse.sampled_addmm(self.pattern, left, x.T, beta=0).values()
        lost = lost_digits(rows, heads, columns, q)
        if len(lost):
            q[lost] = rows.distances(heads[lost], columns[lost]).to(q.dtype)
        nearest = q.new_full((n,), math.inf).scatter_reduce_(0, heads, q, "amin")
        farthest = q.new_zeros(n).scatter_reduce_(0, heads, q, "amax")
        pairs = int(((q <= self.near) | (q >= self.far)).sum()) // 2
        w = weight(q)
        total = Total(rows)
        once = lost[heads[lost] < columns[lost]]
        total.add_differences(Pairs(heads[once], columns[once], q[once]), w[once])
        w[lost] = 0
        matrix = with_values(self.pattern, w)
        torch.addmm(total.sums, matrix, x, out=total.sums)
        force = total.force()
        return Forces(force, nearest, farthest, pairs)


def collect(rows: Rows, low: float, high: float, max_pairs: int) -> tuple[Pairs, Tensor, Tensor]:
    """Every pair with `q <= low` or `q >= high`, perhaps a few more but never one less.

    Returns:
        The pairs with their q in the working dtype, and each row's nearest and farthest q.
    """
    dtype = rows.augmented.dtype
    u = ROUNDOFF[dtype]
    slack = bound(rows.squares, u * rows.squares.sqrt(), u, rows.dim, dtype, dtype)
    none = torch.zeros(0, dtype=torch.int64, device=slack.device)
    listed = [Pairs(none, none, rows.augmented.new_zeros(0))]
    nearest = rows.augmented.new_full((len(rows),), math.inf)
    farthest = rows.augmented.new_zeros(len(rows))
    count = 0
    for tile in sweep(rows):
        for k, part in enumerate((tile.block, tile.columns)):
            torch.minimum(nearest[part], tile.nearest[k], out=nearest[part])
            torch.maximum(farthest[part], tile.farthest[k], out=farthest[part])
        room = float(slack[tile.block].max() + slack[tile.columns].max())
        flat = positions(active(tile, low + room, high - room))
        i, j = locate(flat, tile.block, tile.columns)
        q = tile.at(flat)
        doubt = slack[i] + slack[j]
        keep = ((q - doubt <= low) | (q + doubt >= high)).nonzero()[:, 0]
        count += len(keep)
        if count > max_pairs:
            raise TooManyPairs(
                f"more than {max_pairs} pairs qualify: lower near, raise far, narrow the skin, "
                f"or sum all pairs with forces()"
            )
        listed.append(Pairs(i[keep], j[keep], q[keep]))
    return join(listed), nearest, farthest
