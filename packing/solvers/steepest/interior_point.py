"""The steepest step of a small head, by an interior-point method in the weights of the pairs.

    minimise 1/2 (<A, L_w^+ A> + sum_{i<j} w_ij)  over w >= 0,  X = L_w^+ A

With `x_e = x_i - x_j` and `b_e = e_i - e_j` for a pair e, the gradient is `(1 - ||x_e||^2)/2` and
the Hessian `H_ef = <x_e, x_f> b_e^T L_w^+ b_f`: a problem in as many unknowns as pairs, whatever
the dimension, where the cone programme has V d unknowns and a cone for each pair. Primal-dual
Newton steps on `w_e z_e = mu`, `z` the gradient (Nocedal and Wright, Numerical Optimization,
ch. 19); pairs are added as they are violated.
"""

import numpy as np
import torch
from torch import Tensor

from .first_order import Candidate, first_order
from .flow import Flow

ROUNDS = 20
STEPS = 60
"""Newton steps in a round; 8 to 12 are usual."""
CENTRING = 0.1
BOUNDARY = 0.95
SLACK = 1e-2
"""Where `z` starts: slack enough that the first steps are long."""
LIGHT = 1e-4
"""Least weight of a pair at the start of a round, over the lighter row's norm."""
PARTNERS = 8
"""Far pairs that each row may add in a round."""
WARM_PASSES = 24
WARM_GAP = 5e-4
DIRECT = "donot_use_mm_for_euclid_dist"


def interior_point(A: Tensor, *, tolerance: float) -> Candidate:
    """Solve the steepest step within a relative gap.

    Args:
        A: centred momentum, shape (V, d), V >= 2, float64, no row zero, norms of the rows summing
            to 1. V up to about 500: O(pairs^3) time, O(pairs^2) memory, with a few pairs per row
            to ten.
        tolerance: relative gap between the value and the upper bound at which to stop.
    """
    warm = first_order(A, tolerance=WARM_GAP, passes=WARM_PASSES, start=None)
    momentum = A.cpu().numpy()
    masses = np.linalg.norm(momentum, axis=1)
    weights = np.zeros((len(momentum), len(momentum)))
    i, j = warm.flow.pairs.cpu().numpy().T
    weights[i, j] = warm.flow.weights.cpu().numpy()
    X = warm.flow.positions.cpu().numpy()
    listed = weights > 0
    heaviest = masses.argmax()  # its pairs keep the graph connected
    listed[heaviest] = listed[:, heaviest] = True
    least = LIGHT * np.minimum.outer(masses, masses)
    stop = f"relative gap above {tolerance:g} after {ROUNDS} rounds of Newton steps"
    w = weights[i, j]
    for _ in range(ROUNDS):
        i, j = np.nonzero(np.triu(listed, 1))
        w, X = _newton(momentum, i, j, np.maximum(weights, least)[i, j], tolerance / 4)
        weights[i, j] = w
        cost = float((w * np.linalg.norm(X[i] - X[j], axis=1)).sum())
        positions = torch.from_numpy(X)
        distances = torch.cdist(positions, positions, compute_mode=DIRECT).numpy()
        value = float((momentum * X).sum()) / float(distances.max())
        if cost - value <= tolerance * cost:
            stop = f"relative gap below {tolerance:g}"
            break
        count = min(PARTNERS, len(X))
        farthest = np.argpartition(distances, -count, axis=1)[:, -count:]
        rows = np.arange(len(X))[:, None]
        far = distances[rows, farthest] > 1 + tolerance / 8
        listed[np.broadcast_to(rows, far.shape)[far], farthest[far]] = True
        listed |= listed.T
    pairs = torch.as_tensor(np.stack([i, j], axis=1), device=A.device)
    rows = torch.as_tensor(X).to(A)
    return Candidate(rows, Flow(pairs, torch.as_tensor(w).to(A), rows), warm.passes, stop)


def _newton(
    A: np.ndarray, i: np.ndarray, j: np.ndarray, w: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The optimum over the listed pairs: weights and positions."""
    mean = np.full((len(A), len(A)), 1 / len(A))
    z = np.full(len(w), SLACK)
    X = A
    for _ in range(STEPS):
        L = np.zeros_like(mean)
        L[i, j] = L[j, i] = -w
        L[np.diag_indices_from(L)] = -L.sum(axis=1)
        inverse = np.linalg.inv(L + mean) - mean
        X = inverse @ A
        x = X[i] - X[j]
        q = (x * x).sum(axis=1)
        cost = float((w * np.sqrt(q)).sum())
        if cost - float((A * X).sum()) / np.sqrt(q.max()) <= tolerance * cost:
            break
        gradient = (1 - q) / 2
        mu = CENTRING * float(w @ z) / len(w)
        rows = inverse[i] - inverse[j]
        H = (rows[:, i] - rows[:, j]) * (x @ x.T)
        H[np.diag_indices_from(H)] += z / w
        factor = torch.linalg.cholesky(torch.from_numpy(H))
        right = torch.from_numpy(mu / w - gradient)
        dw = torch.cholesky_solve(right[:, None], factor)[:, 0].numpy()
        dz = mu / w - z - z / w * dw
        w = w + min(1.0, BOUNDARY / max((-dw / w).max(), BOUNDARY)) * dw
        z = z + min(1.0, BOUNDARY / max((-dz / z).max(), BOUNDARY)) * dz
    return w, X
