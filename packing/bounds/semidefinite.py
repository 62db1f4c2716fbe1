"""A bound on `rho` at a floor on the alignment: the semidefinite relaxation in the Gram matrix.

    maximise delta^2  subject to  delta^2 <= q_ij <= 1,  <A,S> >= tau J sum_i ||a_i||,
                                  [[I, S^T], [S, G]] >= 0,  q_ij = G_ii + G_jj - 2 G_ij

with Jung's radius `J = sqrt(d/(2(d+1)))`. The Schur complement says `G >= S S^T`; every cloud of
diameter at most 1 with alignment tau gives a feasible `G = S S^T`, so `rho <= delta`. What is
relaxed is the rank of G: the optimum is that of all clouds in R^(d+V-1), the momentum padded with
zeros. For d >= V-1 it is attained in R^d, and the cloud is returned
(docs/explanation/mathematics.md). Without a floor the optimum is 1 (the simplex), whatever d is.
"""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import checks
from ..cloud import jung_radius
from ..extras import extra
from ..rows import CentredRows
from .ratio import rho_upper_bound

with extra("exact"):
    import cvxpy as cp

SHIFTS = 10.0 ** np.arange(-13, -2)
"""Tried for the shift of the multipliers that makes a bound of them."""


class AlignedBound(NamedTuple):
    """A bound on `rho` over all clouds of an alignment."""

    value: float
    """No cloud of at least this alignment has a larger `rho`, up to rounding in float64."""
    relaxation: float
    """Bound on the optimum of the relaxation by its dual; `value` is the least of it and
    `rho_upper_bound`."""
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
    least, directions = cp.Variable(), momentum / total
    floor = alignment * jung_radius(dim)
    constraints = [
        block[:dim, :dim] == np.eye(dim),
        q >= least,
        q <= 1,
        cp.sum(cp.multiply(directions, S)) >= floor,
    ]
    problem = cp.Problem(cp.Maximize(least), constraints)
    with warnings.catch_warnings():  # what the solver returns need not be accurate here
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise ValueError(f"alignment is {alignment}, which no update reaches; lower it")
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or G.value is None:
        raise RuntimeError(f"the conic solver ended with status {problem.status}")
    near, far, pull = (np.maximum(one.dual_value, 0.0) for one in constraints[1:])
    relaxation = float(np.sqrt(_dual(near, far, pull, directions, floor)))
    exact = dim >= num_rows - 1
    update = _realised(G.value, momentum) if exact else np.asarray(S.value)
    value = min(relaxation, rho_upper_bound(num_rows, dim))
    return AlignedBound(value, relaxation, exact, torch.as_tensor(update, device=A.device))


def _dual(
    near: np.ndarray, far: np.ndarray, pull: np.ndarray, directions: np.ndarray, floor: float
) -> float:
    """An upper bound on `delta^2` from any multipliers of at least 0.

    With `near` scaled to sum to 1 and K the Laplacian of `near - far`, every feasible (S, G) has

        delta^2 <= <K,G> + sum far + pull (<C,S> - floor),    tr G = sum_{i<j} q_ij / V <= (V-1)/2

    for centred G, hence for every e above the largest eigenvalue of K, as `G >= S S^T`,

        delta^2 <= e (V-1)/2 + pull^2/4 <C, (e - K)^-1 C> + sum far - pull floor.
    """
    num_rows = len(directions)
    if near.sum() <= 0.0:
        return 1.0
    near = near / near.sum()
    K = np.zeros((num_rows, num_rows))
    i, j = np.triu_indices(num_rows, 1)
    K[i, j] = K[j, i] = far - near
    np.fill_diagonal(K, -K.sum(axis=1))
    sizes, vectors = np.linalg.eigh(K)
    parts = ((vectors.T @ directions) ** 2).sum(axis=1)
    bounds = [
        e * (num_rows - 1) / 2 + pull**2 / 4 * (parts / (e - sizes)).sum()
        for e in max(0.0, float(sizes[-1])) + SHIFTS
    ]
    return float(np.clip(min(bounds) + far.sum() - pull * floor, 0.0, 1.0))


def _realised(G: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    """Rows in R^d, d >= V-1, with the Gram matrix G, turned to agree most with the momentum."""
    sizes, vectors = np.linalg.eigh(G)
    # G 1 = 0: the least eigenvalue is the one to leave out
    root = vectors[:, 1:] * np.sqrt(np.maximum(sizes[1:], 0))
    left, _, right = np.linalg.svd(root.T @ momentum, full_matrices=False)
    return root @ left @ right
