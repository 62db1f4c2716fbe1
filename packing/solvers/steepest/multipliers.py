"""The steepest step on a list of pairs, by the method of multipliers with Newton steps.

    max <A,X>   subject to   g_ij(X) = (||x_i - x_j||^2 - 1)/2 <= 0   on the pairs of the list

With multipliers `w_ij >= 0` and penalties `p_ij > 0` a step lowers the augmented Lagrangian

    -<A,X> + sum (max(0, w_ij + p_ij g_ij)^2 - w_ij^2) / (2 p_ij)

in X and takes `w'_ij = max(0, w_ij + p_ij g_ij)` (Hestenes, Powell, Rockafellar; Nocedal and
Wright, Numerical Optimization, 2nd ed., 17.3). Its gradient is `L_w' X - A`, so that w' and X are a
flow that conserves A where the step converges; reweighted least squares is the case in which only w
moves. Newton's matrix is `L_w'` plus, for pairs with `w'_ij > 0`, `p_ij (x_i - x_j)(x_i - x_j)^T`;
it is never formed, and a pair keeps two numbers.
"""

import torch
from torch import Tensor

from .flow import CHUNK, Flow, Laplacian, distances

PENALTY = 100.0
"""`p_ij = PENALTY (w_ij + min(m_i, m_j)/LIGHT)`."""
LIGHT = 32.0
DAMPING = 0.05
"""Of a row's step, times its mass."""
NEWTON_STEPS = 8
GRADIENTS = 15
"""Conjugate gradients to a Newton step."""
HALVINGS = 10


def multiplier_step(A: Tensor, masses: Tensor, flow: Flow, conserved: float) -> Flow:
    """Return better positions and weights for the pairs of a flow.

    Args:
        A: centred momentum, shape (V, d), floating.
        masses: `m_i`, norms of its rows, shape (V,), positive, summing to 1.
        flow: at unit diameter; its weights are the multipliers.
        conserved: residual `sum_i ||(A - L_w' X)_i||` with which the step ends; multipliers taken
            from an X far from the least one grow without end.
    """
    pairs, w, X = flow
    penalty = PENALTY * (w + masses[pairs].amin(dim=1) / LIGHT)
    weights = _pushed(X, pairs, w, penalty)
    value = _lagrangian(A, X, w, weights, penalty)
    for _ in range(NEWTON_STEPS):
        right = A - Laplacian(pairs, weights, len(A)).times(X)
        if float(right.norm(dim=1).sum()) <= conserved:
            break
        step = _newton_step(X, pairs, weights, penalty, masses, right)
        slope, length = float((right * step).sum()), 1.0
        for _ in range(HALVINGS):
            there = X + length * step
            pushed = _pushed(there, pairs, w, penalty)
            found = _lagrangian(A, there, w, pushed, penalty)
            if found <= value - 1e-4 * length * slope:
                X, weights, value = there, pushed, found
                break
            length /= 2
        else:  # rounding is all that is left
            break
    return Flow(pairs, weights, X - X.mean(dim=0))


def _pushed(X: Tensor, pairs: Tensor, w: Tensor, penalty: Tensor) -> Tensor:
    """Return `max(0, w + p g)`, shape (pairs,)."""
    excess = (distances(X, pairs).square() - 1) / 2
    return (w + penalty * excess).clamp_(min=0)


def _lagrangian(A: Tensor, X: Tensor, w: Tensor, pushed: Tensor, penalty: Tensor) -> float:
    penalties = (pushed - w) * (pushed + w) / (2 * penalty)
    return float(penalties.double().sum() - (A * X).double().sum())


def _newton_step(
    X: Tensor, pairs: Tensor, weights: Tensor, penalty: Tensor, masses: Tensor, right: Tensor
) -> Tensor:
    """Solve for the step by conjugate gradients, preconditioned by about the diagonal.

    At the optimum the weights of a row sum to its mass or more. A row that hardly any pair holds is
    damped as much, or it would go so far that no part of the step is of use.
    """
    held = weights > 0
    pairs, weights, penalty = pairs[held], weights[held], penalty[held]
    degrees, along = torch.zeros_like(masses), torch.zeros_like(masses)
    for rows in pairs.T:
        degrees.index_add_(0, rows, weights)
        along.index_add_(0, rows, penalty)
    damping = torch.where(degrees < DAMPING * masses, masses, DAMPING * masses)
    diagonal = damping + degrees + along / X.shape[1]
    inverse = (1 / diagonal)[:, None]
    step, R = torch.zeros_like(right), right
    Z = inverse * R
    P, size = Z, (R * Z).sum()
    for _ in range(GRADIENTS):
        Q = damping[:, None] * P + _product(P, X, pairs, weights, penalty)
        energy = (P * Q).sum()
        if not energy > 0:
            break
        rate = size / energy
        step, R = step + rate * P, R - rate * Q
        Z = inverse * R
        before, size = size, (R * Z).sum()
        P = Z + P * (size / before)
    return step


def _product(P: Tensor, X: Tensor, pairs: Tensor, weights: Tensor, penalty: Tensor) -> Tensor:
    """Return Newton's matrix times P, shape (V, d)."""
    out = torch.zeros_like(P)
    size = max(1, CHUNK // X.shape[1])
    for (i, j), w, p in zip(
        (part.T for part in pairs.split(size)),
        weights.split(size),
        penalty.split(size),
        strict=True,
    ):
        along, moved = X[i] - X[j], P[i] - P[j]
        inner = (along * moved).sum(dim=1)
        force = moved.mul_(w[:, None]).addcmul_(along, (p * inner)[:, None])
        out.index_add_(0, i, force)
        out.index_add_(0, j, force, alpha=-1)
    return out
