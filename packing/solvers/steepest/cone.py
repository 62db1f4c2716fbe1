"""The steepest step as a second-order cone programme, for a conic solver.

    maximise <A, S>  subject to  ||s_i - s_j|| <= 1 for all pairs

The textbook form, V d unknowns and a cone for each pair that binds: the reference for the other
solvers, comfortable to about 50 rows of 30 dimensions. Nothing is lost in the row space of `A`,
as projecting `S` on it leaves `<A,S>` and increases no distance.
"""

import numpy as np
import torch
from torch import Tensor

from ...extras import extra
from .first_order import Candidate
from .flow import Flow

with extra("exact"):
    import cvxpy as cp
    from scipy.sparse import coo_array
    from scipy.spatial.distance import pdist, squareform

ROUNDS = 100


def cone(A: Tensor, *, tolerance: float) -> Candidate:
    """Solve the steepest step by Clarabel, pairs being added as they are violated.

    Args:
        A: centred momentum, shape (V, d), V >= 2, float64, norms of the rows summing to 1.
        tolerance: a pair counts as violated beyond a distance of 1 plus this.

    Raises:
        RuntimeError: the conic solver failed, or pairs were still violated after 100 rounds.
    """
    momentum = A.cpu().numpy()
    _, sizes, basis = np.linalg.svd(momentum, full_matrices=False)
    basis = basis[sizes > 1e-14 * sizes[0]].T
    momentum = momentum @ basis
    S = cp.Variable(momentum.shape)
    objective = cp.Maximize(cp.sum(cp.multiply(momentum, S)))
    # a centred cloud of diameter 1 lies in the unit ball about its mean
    always = [cp.sum(S, axis=0) == 0, cp.norm(S, axis=1) <= 1]
    pairs = np.stack([np.zeros(len(A) - 1, dtype=int), np.arange(1, len(A))], axis=1)
    for _ in range(ROUNDS):
        apart = cp.norm(_differences(pairs, len(A)) @ S, axis=1) <= 1
        problem = cp.Problem(objective, [*always, apart])
        problem.solve(solver=cp.CLARABEL)
        if problem.status != cp.OPTIMAL or S.value is None or apart.dual_value is None:
            raise RuntimeError(f"the conic solver ended with status {problem.status}")
        step = np.asarray(S.value)
        far = squareform(pdist(step))
        i = np.flatnonzero(far.max(axis=1) > 1 + tolerance)
        if not len(i):
            break
        found = np.sort(np.stack([i, far[i].argmax(axis=1)], axis=1), axis=1)
        pairs = np.unique(np.vstack([pairs, found]), axis=0)
    else:
        raise RuntimeError(f"pairs still exceed the diameter after {ROUNDS} rounds")
    w = np.maximum(np.asarray(apart.dual_value, dtype=float), 0)
    B = _differences(pairs, len(A)).toarray()
    X = np.linalg.pinv((B.T * w) @ B, rcond=1e-12, hermitian=True) @ momentum
    flow = Flow(
        torch.as_tensor(pairs, device=A.device),
        torch.as_tensor(w).to(A),
        torch.as_tensor(X @ basis.T).to(A),
    )
    rows = torch.as_tensor(step @ basis.T).to(A)
    return Candidate(rows, flow, 0, f"optimal ({len(pairs)} pairs listed)")


def _differences(pairs: np.ndarray, num_rows: int) -> coo_array:
    """The matrix that takes rows to `s_i - s_j`, shape (pairs, V), sparse."""
    at = np.repeat(np.arange(len(pairs)), 2)
    signs = np.tile([1.0, -1.0], len(pairs))
    return coo_array((signs, (at, pairs.ravel())), shape=(len(pairs), num_rows))
