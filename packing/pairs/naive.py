"""The definition of every all-pairs quantity: dense, float64, direct differences.

Time is O(V^2 d) and memory O(V^2 + V d), so this is for small clouds and for checking the other
implementations. `q_ij = ||s_i - s_j||^2` throughout, pairs are `i < j`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .results import Extremes, Forces, SoftExtremes
from .rows import power_of_two, shift_down, unscale, working_dtype


def extremes(S: Tensor, *, mask: Tensor | None = None) -> Extremes:
    """Exact separation and diameter; see `rowsep.packing.pairs.extremes`."""
    index, X, exponent = _selected(S, mask)
    if len(index) < 2:
        return Extremes(math.inf, 0.0, (-1, -1), (-1, -1))
    i, j = torch.triu_indices(len(X), len(X), 1, device=X.device)
    q = _squares(X)[i, j]
    a, b = int(q.argmin()), int(q.argmax())
    return Extremes(
        unscale(float(q[a]), exponent),
        unscale(float(q[b]), exponent),
        (int(index[i[a]]), int(index[j[a]])),
        (int(index[i[b]]), int(index[j[b]])),
    )


def soft_extremes(S: Tensor, beta: float, *, mask: Tensor | None = None) -> SoftExtremes:
    """`F_beta` and its gradient over every pair; see `rowsep.packing.pairs.soft_extremes`."""
    index, X, exponent = _selected(S, mask)
    gradient = torch.zeros(S.shape, dtype=working_dtype(S), device=S.device)
    found = extremes(S, mask=mask)
    if len(index) < 2 or found.delta == 0:
        value = -math.inf if len(index) < 2 else math.inf
        return SoftExtremes(value, gradient, found.delta, found.diameter, 0)
    q = _squares(X)
    i, j = torch.triu_indices(len(X), len(X), 1, device=X.device)
    logs = q[i, j].log()
    far, near = torch.logsumexp(beta * logs, 0), torch.logsumexp(-beta * logs, 0)
    L = q.fill_diagonal_(1).log()
    W = (2 / q) * ((beta * L - far).exp() - (-beta * L - near).exp())
    rows = _sums(W.fill_diagonal_(0), X)
    gradient[index] = shift_down(rows, exponent).to(gradient.dtype)
    return SoftExtremes(
        float((far + near) / beta), gradient, found.delta, found.diameter, len(logs)
    )


def forces(
    S: Tensor,
    weight: Callable[[Tensor], Tensor],
    *,
    near: float = math.inf,
    far: float = 0.0,
) -> Forces:
    """Pairwise forces over every pair; see `rowsep.packing.pairs.forces`."""
    dtype = working_dtype(S)
    X = S.detach().double()
    if X.numel():
        power_of_two(float(X.abs().max()))  # refuses what is not finite
    q = _squares(X)
    farthest = q.amax(1) if len(q) else q.new_zeros(0)
    nearest = q.fill_diagonal_(math.inf).amin(1) if len(q) else q.new_zeros(0)
    active = (q <= near) | (q >= far)
    active.fill_diagonal_(False)
    force = _sums(torch.where(active & (q > 0), weight(q), 0.0), X)
    pairs = int(active.sum()) // 2
    return Forces(force.to(dtype), nearest.to(dtype), farthest.to(dtype), pairs)


def _squares(X: Tensor) -> Tensor:
    """`q_ij`, shape (n, n)."""
    rows = [(x - X).square().sum(1) for x in X]
    return torch.stack(rows) if rows else X.new_zeros(0, 0)


def _sums(W: Tensor, X: Tensor) -> Tensor:
    """`sum_j w_ij (x_i - x_j)`, shape (n, d)."""
    rows = [w @ (x - X) for w, x in zip(W, X, strict=True)]
    return torch.stack(rows) if rows else torch.zeros_like(X)


def _selected(S: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, int]:
    """Indices of the rows that take part, those rows times `2^-exponent`, and the exponent."""
    S = S.detach()
    index = torch.arange(len(S), device=S.device) if mask is None else mask.nonzero()[:, 0]
    X = S[index].double()
    exponent = power_of_two(float(X.abs().max())) if X.numel() else 0
    return index, shift_down(X, exponent), exponent
