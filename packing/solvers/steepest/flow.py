"""Flows on pairs of rows, the dual of the steepest step, and their weighted Laplacian.

    max { <A,S> : D(S) <= 1 }  =  min { sum_{i<j} ||f_ij|| : sum_j f_ij = a_i, f_ji = -f_ij }
                               =  min over w >= 0 of 1/2 (<A, L_w^+ A> + sum_{i<j} w_ij)

`L_w` is the Laplacian of the graph with weights `w_ij`, `(L_w X)_i = sum_j w_ij (x_i - x_j)`. The
last form is convex in w; `X = L_w^+ A` carries the flow `f_ij = w_ij (x_i - x_j)`, and at the
optimum `w_ij > 0` only where `||x_i - x_j|| = 1`. Proofs: docs/explanation/mathematics.md.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ...pairs.sparse import Pairs, both_ways, weighted_sums

CHUNK = 1 << 19
"""Entries of the pair differences held at a time."""


class Flow(NamedTuple):
    """`f_ij = w_ij (x_i - x_j)` on a list of pairs, zero on all others."""

    pairs: Tensor
    """Rows i < j, shape (n, 2), int64."""
    weights: Tensor
    """`w_ij >= 0`, shape (n,), floating."""
    positions: Tensor
    """`x_i`, shape (V, d), floating."""

    def vectors(self) -> Tensor:
        """Return `f_ij`, shape (n, d)."""
        i, j = self.pairs.T
        return self.weights[:, None] * (self.positions[i] - self.positions[j])

    def cost(self) -> float:
        """Return `sum ||f_ij||`, summed in float64."""
        lengths = distances(self.positions.double(), self.pairs)
        return float((self.weights.double() * lengths).sum())

    def divergence(self) -> Tensor:
        """Return `sum_j f_ij`, shape (V, d), float64."""
        X = self.positions.double()
        return Laplacian(self.pairs, self.weights.double(), len(X)).times(X)


class Laplacian:
    """`L_w` of a sparse graph on `num_rows` rows; O(pairs) memory.

    Args:
        pairs: shape (n, 2), int64, i < j, none twice.
        w: weights, shape (n,), at least 0.
        num_rows: V.
    """

    def __init__(self, pairs: Tensor, w: Tensor, num_rows: int):
        """Sort the pairs by row."""
        self.degrees = w.new_zeros(num_rows)
        for rows in pairs.T:
            self.degrees.index_add_(0, rows, w)
        self._sorted = both_ways(Pairs(pairs[:, 0], pairs[:, 1], w), w)

    def times(self, X: Tensor) -> Tensor:
        """Return `L_w X`, shape (V, d)."""
        return self.degrees[:, None] * X - weighted_sums(*self._sorted, X, len(X))

    def solve(self, A: Tensor, X: Tensor, steps: int, tolerance: float) -> tuple[Tensor, float]:
        """Improve `X` towards `L_w X = A` by conjugate gradients, preconditioned by the degrees.

        Args:
            A: right-hand sides, shape (V, d), each summing to zero.
            X: where to start, same shape.
            steps: most products with `L_w`, besides the first.
            tolerance: stop when `sum_i ||(A - L_w X)_i||` is this small.

        Returns:
            The new X and `sum_i ||(A - L_w X)_i||` as the recursion has it.
        """
        inverse = torch.where(self.degrees > 0, 1 / self.degrees, 0.0)[:, None]
        R = A - self.times(X)
        P, past = torch.zeros_like(R), R.new_ones(A.shape[1])
        left = float(R.norm(dim=1).sum())
        for _ in range(steps):
            if left <= tolerance:
                break
            Z = inverse * R
            size = (R * Z).sum(dim=0)
            P = Z + P * (size / past)
            Q = self.times(P)
            energy = (P * Q).sum(dim=0)
            rate = torch.where(energy > 0, size / energy, 0.0)
            X = X + rate * P
            R = R - rate * Q
            past = torch.where(size > 0, size, 1.0)
            left = float(R.norm(dim=1).sum())
        return X, left


def distances(X: Tensor, pairs: Tensor) -> Tensor:
    """Return `||x_i - x_j||` over a list of pairs, shape (n,), by direct differences."""
    parts = pairs.split(max(1, CHUNK // X.shape[1]))
    if not parts:
        return X.new_zeros(0)
    return torch.cat([(X[part[:, 0]] - X[part[:, 1]]).norm(dim=1) for part in parts])
