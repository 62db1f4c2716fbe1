"""The best pair found so far at one end of the distances, and the pairs that may still beat it."""

import math

import torch
from torch import Tensor

from ..rows import Rows

PENDING = 4096
"""Pairs gathered before they are examined."""


class Incumbent:
    """The best pair so far on one side: `sign` +1 looks for the least q, -1 for the greatest."""

    def __init__(self, rows: Rows, sign: int):
        """Start without a pair."""
        self.rows = rows
        self.sign = sign
        self.key = math.inf  # sign * q of the best pair examined, inf before any
        self.pair = (-1, -1)
        self.promise = math.inf  # some pair is proved to have a key no larger
        self.tolerance = (rows.dim + 64) * 2.0**-50  # of the key, a float64 product's doubt
        self.pending: list[tuple[Tensor, Tensor, Tensor]] = []
        self.count = 0

    @property
    def threshold(self) -> float:
        """A pair whose bound on the key exceeds this cannot matter."""
        if self.sign > 0 and self.key <= 0:
            return -math.inf
        return min(self.key * (1 - self.sign * self.tolerance), self.promise)

    def add(self, i: Tensor, j: Tensor, keys: Tensor) -> None:
        """Queue pairs with lower bounds on their keys."""
        self.pending.append((i, j, keys))
        self.count += len(i)
        if self.count > PENDING:
            self.settle()

    def settle(self) -> None:
        """Examine the queued pairs that still matter."""
        if self.count:
            i, j, keys = (torch.cat(parts) for parts in zip(*self.pending, strict=True))
            self.pending, self.count = [], 0
            self.examine(i, j, keys)

    def examine(self, i: Tensor, j: Tensor, keys: Tensor) -> None:
        """Decide pairs by direct differences, best first, in batches that grow."""
        size = 64
        while True:
            keep = (keys <= self.threshold).nonzero()[:, 0]
            if not len(keep):
                return
            i, j, keys = i[keep], j[keep], keys[keep]
            first = keys.topk(min(size, len(keys)), largest=False).indices
            exact = self.sign * self.rows.distances(i[first], j[first])
            best = exact.argmin(keepdim=True)
            pair = first[best]
            # all as float64, where row numbers are exact, so that a device is waited for once
            key, head, tail = torch.cat([exact[best], i[pair], j[pair]]).tolist()
            if key < self.key:
                self.key, self.pair = key, (int(head), int(tail))
            if len(first) == len(keys):
                return
            keys.index_fill_(0, first, math.inf)
            size *= 4

    def examine_some(self, i: Tensor, j: Tensor, keys: Tensor) -> None:
        """Decide the few most promising of many pairs, so that the threshold is exact."""
        first = keys.topk(min(64, len(keys)), largest=False).indices
        self.examine(i[first], j[first], torch.full_like(keys[first], -math.inf))
