"""The steepest step of a small head, as a second-order cone programme.

    maximise <A, S>  subject to  ||s_i - s_j|| <= diameter  for all pairs,  sum_i s_i = 0

Its value is `diameter` times the dual norm of `A`: no update of that diameter decreases the loss
faster to first order, and its alignment is the largest floor that `packing.solve` can meet. It is
convex and says nothing of separation. Pairs are added as they are violated: of V(V-1)/2 few bind.
"""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import torch
from scipy.spatial.distance import pdist, squareform
from torch import Tensor

from packing import checks
from packing.rows import CentredRows, times_power_of_two

ROUNDS = 100


class SteepestStep(NamedTuple):
    """A feasible step and how far any other could exceed it."""

    update: Tensor
    """`S`, shape (V, d), centred, dtype and device of the momentum, diameter at most the asked."""
    value: float
    """`<A, S>` before rounding to the dtype."""
    upper: float
    """Optimum of the last relaxation, to the cone solver's tolerance (1e-8): no step has more."""
    pairs: int
    """Pair constraints that were needed."""


def steepest_step(A: Tensor, diameter: float = 1.0, tolerance: float = 1e-7) -> SteepestStep:
    """Solve the steepest step by Clarabel, for V up to a few hundred.

    Args:
        A: momentum, shape (V, d), float16, bfloat16, float32 or float64; centred here.
        diameter: largest row distance of the step, positive.
        tolerance: relative excess of a distance below which a pair counts as kept. The step is
            scaled back into the constraints, so it costs at most this part of the value.

    Raises:
        TypeError, ValueError: an argument is not as above.
        RuntimeError: the cone solver failed, or pairs were still violated after 100 rounds.
    """
    checks.check_cloud(A, "A")
    checks.check_size(diameter, "diameter")
    blocks = CentredRows(A)
    rows = torch.cat([*blocks, A.new_empty((0, A.shape[1]), dtype=torch.float64)]).cpu().numpy()
    norms = np.linalg.norm(rows, axis=1)
    if norms.sum() == 0 or diameter == 0:
        return SteepestStep(torch.zeros_like(A), 0.0, 0.0, 0)
    S = cp.Variable(rows.shape)
    objective = cp.Maximize(cp.sum(cp.multiply(rows / norms.sum(), S)))
    # a centred cloud of diameter 1 lies in the unit ball about its mean
    constraints = [cp.sum(S, axis=0) == 0, cp.norm(S, axis=1) <= 1]
    pairs = np.empty((0, 2), dtype=int)
    for _ in range(ROUNDS):
        kept = [cp.norm(S[pairs[:, 0]] - S[pairs[:, 1]], axis=1) <= 1] if len(pairs) else []
        step, upper = _optimum(cp.Problem(objective, constraints + kept), S)
        distances = squareform(pdist(step))
        if distances.max() <= 1 + tolerance:
            break
        pairs = np.unique(np.vstack([pairs, _violated(distances, 1 + tolerance)]), axis=0)
    else:
        raise RuntimeError(f"pairs still exceed the diameter after {ROUNDS} rounds")
    shrink = max(float(distances.max()), 1.0)
    step = (step - step.mean(axis=0)) / shrink
    scale = times_power_of_two(float(norms.sum()) * diameter, blocks.exponent)
    value = float((rows / norms.sum() * step).sum())
    update = torch.as_tensor(step * diameter).to(A)
    return SteepestStep(update, value * scale, upper * scale, len(pairs))


def _optimum(problem: cp.Problem, S: cp.Variable) -> tuple[np.ndarray, float]:
    """The maximiser and the maximum."""
    problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL or S.value is None:
        raise RuntimeError(f"the cone solver ended with status {problem.status}")
    return np.asarray(S.value), float(problem.value)  # pyright: ignore[reportArgumentType]


def _violated(distances: np.ndarray, most: float) -> np.ndarray:
    """Each row's farthest partner if it is farther than `most`, as pairs i < j."""
    i = np.flatnonzero(distances.max(axis=1) > most)
    return np.sort(np.stack([i, distances[i].argmax(axis=1)], axis=1), axis=1)
