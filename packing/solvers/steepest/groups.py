"""Groups of rows of similar direction, so that a large steepest step is first solved coarsely.

A cloud that is constant on groups has `<A,S> = sum_c <a_c, s_c>` with `a_c` the sum of the group's
rows, so the coarse problem is a steepest step itself, its value a lower bound on the fine one and
its rows feasible for it. Rows of one direction lose nothing by sharing a position.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .flow import Flow

SHARE = 4
"""Rows to a group, on average."""
HEIRS = 16
"""Pairs of its group, the heaviest ones, that each row takes over."""


class Groups(NamedTuple):
    """A partition of the rows of a momentum about its heaviest rows."""

    rows: Tensor
    """Sums of the groups' rows, shape (groups, d)."""
    owner: Tensor
    """Group of each row, shape (V,), int64."""
    leaders: Tensor
    """A row of each group, shape (groups,), int64."""
    parts: Tensor
    """`||a_i||` over its sum in the group, shape (V,)."""

    def spread(self, flow: Flow) -> Flow:
        """Return a flow on the rows from one on the groups, conserved only roughly.

        Half of a pair's weight joins the members of either group to the other group's leader.
        """
        pairs = torch.cat([flow.pairs, flow.pairs.flip(1)])
        w = torch.cat([flow.weights, flow.weights]) / 2
        order = w.argsort(descending=True)
        order = order[pairs[order, 0].argsort(stable=True)]
        pairs, w = pairs[order], w[order]
        first = torch.searchsorted(pairs[:, 0].contiguous(), pairs[:, 0].contiguous())
        heaviest = torch.arange(len(w), device=w.device) - first < HEIRS
        heads, tails, w = pairs[heaviest, 0], pairs[heaviest, 1], w[heaviest]
        # members of group c are members[ends[c] - sizes[c] : ends[c]]
        members = self.owner.argsort(stable=True)
        sizes = torch.bincount(self.owner, minlength=len(self.rows))
        ends = sizes.cumsum(0)
        times = sizes[heads]
        which = torch.arange(len(heads), device=w.device).repeat_interleave(times)
        within = torch.arange(len(which), device=w.device) - (times.cumsum(0) - times)[which]
        i = members[(ends - sizes)[heads][which] + within]
        j = self.leaders[tails][which]
        fine = torch.stack([i, j], dim=1).sort(dim=1).values
        keys, places = (fine[:, 0] * len(members) + fine[:, 1]).unique(return_inverse=True)
        weights = w.new_zeros(len(keys)).index_add_(0, places, w[which] * self.parts[i])
        pairs = torch.stack([keys // len(members), keys % len(members)], dim=1)
        return Flow(pairs, weights, flow.positions[self.owner])


def grouped(A: Tensor, masses: Tensor) -> Groups:
    """Join every row to the one of the heaviest quarter that is nearest to it in direction.

    Args:
        A: shape (V, d), no row zero.
        masses: norms of the rows, shape (V,).
    """
    leaders = masses.topk(-(-len(A) // SHARE)).indices
    directions = A[leaders] / masses[leaders, None]
    owner = torch.cat([(block @ directions.T).argmax(dim=1) for block in A.split(1024)])
    owner[leaders] = torch.arange(len(leaders), device=A.device)
    rows = A.new_zeros((len(leaders), A.shape[1])).index_add_(0, owner, A)
    sums = masses.new_zeros(len(leaders)).index_add_(0, owner, masses)
    return Groups(rows, owner, leaders, masses / sums[owner])
