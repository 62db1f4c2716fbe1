"""The regular simplex that agrees best with a momentum of at most d+1 rows.

All its distances are equal, so `rho = 1`, the largest there is. Over rotations R of a fixed one,
`<A, E R>` is largest for the polar factor of `E^T A` (orthogonal Procrustes; Schoenemann,
Psychometrika 31, 1966): for a momentum of rank V-1 it is the polar factor of the momentum.
"""

import torch
from torch import Tensor


def nearest_simplex(A: Tensor) -> Tensor:
    """Return rows at distance sqrt 2 from one another, of mean 0 and the largest `<A, X>`.

    Args:
        A: centred momentum, shape (V, d), 2 <= V <= d+1, floating.
    """
    V = len(A)
    # the columns after the first are orthonormal and sum to 0
    ones = torch.ones(V, 1, dtype=torch.float64, device=A.device)
    E = torch.linalg.qr(torch.cat([ones, torch.eye(V, V - 1).to(ones)], dim=1)).Q[:, 1:]
    U, _, Wt = torch.linalg.svd(E.T @ A.double(), full_matrices=False)
    return (E @ U @ Wt).to(A)
