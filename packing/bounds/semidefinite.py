"""A bound on `rho` at a floor on the alignment: the semidefinite relaxation in the Gram matrix.

    maximise delta^2  subject to  delta^2 <= q_ij <= 1,  <A,S> >= tau J sum_i ||a_i||,
                                  [[I, S^T], [S, G]] >= 0,  q_ij = G_ii + G_jj - 2 G_ij

with Jung's radius `J = sqrt(d/(2(d+1)))`. The Schur complement says `G >= S S^T`; every cloud of
diameter at most 1 with alignment tau gives a feasible `G = S S^T`, so `rho <= delta`. What is
relaxed is the rank of G: the optimum is that of all clouds in R^(d+V-1), the momentum padded with
zeros. For d >= V-1 it is attained in R^d, and the cloud is returned (docs/mathematics.md). Without
a floor the optimum is 1 (the simplex), whatever d is.
"""

import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import torch
from torch import Tensor

from packing import checks
from packing.bounds.ratio import rho_upper_bound
from packing.cloud import jung_radius
from packing.rows import CentredRows

GIVE = (0.0, 1e-7, 1e-6, 1e-5)
"""Taken off the floor where hardly anything is feasible and the conic solver stalls: the bound of a
lower floor is a bound too."""


class AlignedBound(NamedTuple):
    """A bound on `rho` over all clouds of an alignment."""

    value: float
    """No cloud of at least this alignment has a larger `rho`, to the tolerance of the conic solver
    (1e-8)."""
    relaxation: float
    """Optimum of the relaxation; `value` is the least of it and `rho_upper_bound`."""
    exact: bool
    """Whether d >= V-1, where the relaxation is attained."""
    update: Tensor
    """For d >= V-1 a cloud that attains it, else the S of the relaxation; (V, d), float64."""


def aligned_bound(A: Tensor, alignment: float) -> AlignedBound:
    """Bound `rho` over all updates of at least this alignment with a momentum.

    Args:
        A: momentum, shape (V, d), 2 <= V, up to about 40; centred here, rows not all equal.
        alignment: the floor tau, at most 1.

    Raises:
        TypeError, ValueError: an argument is not as above, or no update has this alignment.
        RuntimeError: the conic solver failed.
    """
    checks.check_cloud(A, "A")
    if not -1.0 <= alignment <= 1.0:
        raise ValueError(f"alignment is {alignment}, expected a floor between -1 and 1")
    rows = torch.cat([*CentredRows(A), A.new_empty((0, A.shape[1]), dtype=torch.float64)])
    momentum = rows.cpu().numpy()
    total = np.linalg.norm(momentum, axis=1).sum()
    if total == 0.0:
        raise ValueError("the rows of A are equal: no update has an alignment with it")
    num_rows, dim = momentum.shape
    # S = Q Y and G = Q H Q^T with columns of Q orthogonal to 1: an interior, where G 1 = 0 has none
    Q = np.linalg.svd(np.eye(num_rows) - 1 / num_rows)[0][:, : num_rows - 1]
    block = cp.Variable((dim + num_rows - 1, dim + num_rows - 1), PSD=True)
    S, G = Q @ block[dim:, :dim], Q @ block[dim:, dim:] @ Q.T
    i, j = np.triu_indices(num_rows, 1)
    diagonal = cp.diag(G)
    q = diagonal[i] + diagonal[j] - 2 * G[i, j]
    least, floor = cp.Variable(), cp.Parameter()
    constraints = [
        block[:dim, :dim] == np.eye(dim),
        q >= least,
        q <= 1,
        cp.sum(cp.multiply(momentum / total, S)) >= floor * jung_radius(dim),
    ]
    problem = cp.Problem(cp.Maximize(least), constraints)
    for give in GIVE:
        floor.value = alignment - give
        with warnings.catch_warnings():  # the status says the same
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            problem.solve(solver=cp.CLARABEL)
        if problem.status != cp.OPTIMAL_INACCURATE:
            break
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise ValueError(f"alignment is {alignment}, which no update reaches; lower it")
    if problem.status != cp.OPTIMAL or least.value is None or G.value is None:
        raise RuntimeError(f"the conic solver ended with status {problem.status}")
    relaxation = float(np.sqrt(max(0.0, float(least.value))))
    exact = dim >= num_rows - 1
    update = _realised(G.value, momentum) if exact else np.asarray(S.value)
    value = min(relaxation, rho_upper_bound(num_rows, dim))
    return AlignedBound(value, relaxation, exact, torch.as_tensor(update, device=A.device))


def _realised(G: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """Rows in R^d, d >= V-1, with the Gram matrix G, turned to agree most with the momentum."""
    sizes, vectors = np.linalg.eigh(G)
    # G 1 = 0: the least eigenvalue is the one to leave out
    root = vectors[:, 1:] * np.sqrt(np.maximum(sizes[1:], 0))
    left, _, right = np.linalg.svd(root.T @ momentum, full_matrices=False)
    return root @ left @ right
