"""The steepest step of a full vocabulary, by reweighted least squares on a list of far pairs.

    max { <A,S> : D(S) <= 1 }  =  min over w >= 0 of 1/2 (<A, L_w^+ A> + sum_{i<j} w_ij)

The derivative in `w_ij` is `(1 - ||x_i - x_j||^2)/2` at `X = L_w^+ A`, so `w_ij` is multiplied by
`||x_i - x_j||^2` (the multiplicative algorithm of optimal design; Silvey, Titterington and Torsney,
Commun. Statist. A 7, 1978), `X` being improved by a few conjugate gradients after each. Pairs come
from passes over all of them; the flow is a dual certificate at any time
(docs/explanation/mathematics.md).

Reweighting finds the pairs that matter but leaves them a few percent uneven for long; after each
pass the method of multipliers (multipliers.py) evens them out.

A feasible cloud is made of the positions: rows are drawn towards the centre of a ball that holds
them, in the order of their mass `||a_i||`, each until it is within the diameter of all heavier
ones.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ...cloud import jung_radius
from .flow import Flow, Laplacian, distances
from .groups import grouped
from .multipliers import multiplier_step

PARTNERS = 8
"""Far pairs that each row offers in a pass."""
REWEIGHTINGS = 20
"""Updates of the weights between two passes."""
GRADIENTS = 4
"""Conjugate gradients for one of them."""
MULTIPLIER_STEPS = 2
"""After them."""
SHARPNESS = 20.0
"""In the first pass a row prefers the partners of largest `q_ij + log(m_j)/SHARPNESS`; doubled
with each round, so that heavy rows have pairs at once and the farthest come in the end."""
COARSEST = 1024
"""Above this many rows a quarter of them is solved first, for groups of similar rows."""
BLOCK_ENTRIES = 1 << 23
"""Entries of one block of squared distances."""


class Candidate(NamedTuple):
    """What a solver of the steepest step returns, at unit scale."""

    rows: Tensor
    """Shape (V, d); any diameter."""
    flow: Flow
    passes: int
    """All-pairs passes, 0 for solvers that do not count them."""
    stop: str


def first_order(A: Tensor, *, tolerance: float, passes: int, start: Flow | None) -> Candidate:
    """Solve the steepest step within a relative gap.

    Args:
        A: centred momentum, shape (V, d), V >= 2, float32 or float64, no row zero, norms of the
            rows summing to 1.
        tolerance: relative gap between the value and the upper bound at which to stop.
        passes: most passes over all pairs.
        start: flow of a similar momentum to start from, its weights summing to about 1/2.

    Returns:
        The best feasible rows, at worst row-normalised ones, and the flow of the least bound.
    """
    masses = A.norm(dim=1)
    best = A / (2 * masses.clamp(min=torch.finfo(A.dtype).tiny)[:, None])
    value = float(masses.sum()) / 2
    flow = Flow(A.new_empty((0, 2), dtype=torch.int64), A.new_empty(0), best)
    if start is not None:
        flow = Flow(start.pairs, start.weights.to(A), start.positions.to(A))
    elif len(A) > COARSEST:
        groups = grouped(A, masses)
        coarse = first_order(groups.rows, tolerance=tolerance, passes=passes, start=None)
        flow = groups.spread(coarse.flow)
        if float((groups.rows * coarse.rows).sum()) > value:
            best = coarse.rows[groups.owner]
            value = float((A * best).sum())
    begun = len(flow.pairs) > 0
    pairs, w, X = flow
    spent, least = 0, math.inf
    jung = jung_radius(min(A.shape[1], len(A) - 1))
    stop = f"passes spent ({passes})"

    def bound(moved: Flow, left: float) -> None:
        nonlocal flow, least
        upper = float((moved.weights * distances(moved.positions, moved.pairs)).sum()) + jung * left
        if upper < least:
            least, flow = upper, moved

    for turn in range(passes // 2):
        bias = None if begun else masses.log() / (SHARPNESS * 2.0 ** min(turn, 60))
        pairs, w = _joined(pairs, w, _far_pairs(X, bias, 1.0 if turn else 0.0), masses)
        scale = 1.0
        for _ in range(REWEIGHTINGS):
            X, left = Laplacian(pairs, w, len(A)).solve(A, X, GRADIENTS, tolerance * value / 16)
            bound(Flow(pairs, w, X), left)
            squares = distances(X, pairs).square()
            scale = math.sqrt(float((w * squares).sum() / w.sum()))
            w = w * squares / scale
        w, X = w * scale, X / scale
        for _ in range(MULTIPLIER_STEPS):
            pairs, w, X = multiplier_step(A, masses, Flow(pairs, w, X), tolerance * value / 4)
            rest = A - Laplacian(pairs, w, len(A)).times(X)
            bound(Flow(pairs, w, X), float(rest.norm(dim=1).sum()))
        rows = _feasible(X, masses)
        reached = float((A * rows).sum())
        spent += 2
        if reached > value:
            best, value = rows, reached
        if least - value <= tolerance * least:
            stop = f"relative gap below {tolerance:g}"
            break
    return Candidate(best, flow, spent, stop)


def _far_pairs(X: Tensor, bias: Tensor | None, least: float) -> Tensor:
    """Each row's partners of largest `q_ij`, plus `bias_j` if given, as pairs i < j.

    Those with `q_ij < least^2` are left out.
    """
    squares = X.square().sum(dim=1)
    size = max(1, BLOCK_ENTRIES // len(X))
    count = min(PARTNERS, len(X) - 1)
    parts = []
    for first in range(0, len(X), size):
        block = slice(first, first + size)
        q = torch.addmm(squares, X[block], X.T, alpha=-2).add_(squares[block, None])
        i = torch.arange(first, first + len(q), device=X.device)
        q[i - first, i] = -math.inf
        j = (q if bias is None else q + bias).topk(count, dim=1).indices
        far = q.gather(1, j) >= least * least
        parts.append(torch.stack([i[:, None].expand_as(j)[far], j[far]], dim=1))
    return torch.cat(parts).sort(dim=1).values


def _joined(pairs: Tensor, w: Tensor, found: Tensor, masses: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs that carry weight and those found anew, with their weights."""
    num_rows = len(masses)
    lighter = masses[pairs].amin(dim=1)
    keep = w > 1e-5 * lighter
    share = 0.1 if len(pairs) else 1.0
    pairs, w = pairs[keep], w[keep]
    known = pairs[:, 0] * num_rows + pairs[:, 1]
    keys = (found[:, 0] * num_rows + found[:, 1]).unique()
    keys = keys[~torch.isin(keys, known)]
    fresh = torch.stack([keys // num_rows, keys % num_rows], dim=1)
    added = masses[fresh].amin(dim=1) * (share / PARTNERS)
    return torch.cat([pairs, fresh]), torch.cat([w, added])


def _feasible(X: Tensor, masses: Tensor) -> Tensor:
    """Rows of diameter at most 1 but for rounding, near `X`, the heavy ones nearest.

    Drawing `s_j` towards the centre c leaves `||s_i - s_j|| <= max(||s_i - s_j||, ||s_i - c||)`, so
    a pair that was within the diameter stays so, and of each pair only the lighter row has to move.
    """
    order = masses.argsort(descending=True, stable=True)
    rows = X[order] - _ball_centre(X)
    norms = rows.norm(dim=1, keepdim=True)
    rows = rows / norms.clamp(min=1)
    squares = rows.square().sum(dim=1)
    size = max(1, min(512, BLOCK_ENTRIES // len(rows)))
    for first in range(0, len(rows), size):
        stop = min(first + size, len(rows))
        block, heavier = rows[first:stop], rows[:stop]
        n = squares[first:stop, None]
        inner = block @ heavier.T
        # ||t s_i - s_j|| <= 1 up to the larger root t
        room = (inner.square() - n * (squares[:stop] - 1)).clamp_(min=0).sqrt_()
        t = (inner + room) / n.clamp(min=torch.finfo(n.dtype).tiny)
        later = (
            torch.arange(stop, device=t.device)
            >= torch.arange(first, stop, device=t.device)[:, None]
        )
        t[later] = 1.0
        block *= t.amin(dim=1, keepdim=True).clamp_(0, 1)
        squares[first:stop] = block.square().sum(dim=1)
    made = torch.empty_like(rows)
    made[order] = rows
    return made


def _ball_centre(X: Tensor, steps: int = 200) -> Tensor:
    """About the centre of the least ball that holds the rows (Badoiu and Clarkson, SODA 2003)."""
    centre = X.mean(dim=0)
    for step in range(steps):
        farthest = (X - centre).square().sum(dim=1).argmax()
        centre = centre + (X[farthest] - centre) / (step + 2)
    return centre
