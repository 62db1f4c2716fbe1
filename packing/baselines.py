"""Cheap updates from a centred momentum, which a solver has to beat.

    row_norm        s_i = a_i / ||a_i||                 the largest alignment for its cost
    polar           S = U V^T   where A = U Sigma V^T   Muon's direction, exactly
    polar_then_row  row_norm(polar(A))
    row_then_polar  polar(row_norm(A))

Each is computed in float64 and centred like A; none depends on the scale of A. None bounds the row
diameter: divide by D(S). Muon: https://kellerjordan.github.io/posts/muon/.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from . import cloud

NULL = 1e-7
"""Singular values up to this fraction of the largest count as zero in `polar`."""


def row_norm(A: Tensor) -> Tensor:
    """Return the rows of `A` divided by their norms, centred.

    A zero row is given the direction zero, so after centring it is minus the mean of all
    directions, like the origin. Centring moves no difference of rows.

    Args:
        A: centred momentum, shape (V, d), any floating dtype.

    Returns:
        Shape (V, d), dtype and device of `A`; zero for a zero `A`.
    """
    return _centred(_row_norm(A.double())).to(A.dtype)


def polar(A: Tensor) -> Tensor:
    """Return the polar factor `U V^T` of `A = U Sigma V^T`: all singular values become one.

    Directions of singular value at most `NULL` times the largest are left out, for their
    singular vectors are rounding noise.

    Args:
        A: centred momentum, shape (V, d), any floating dtype.

    Returns:
        Shape (V, d), dtype and device of `A`, centred up to rounding; a zero row stays zero, and so
        does a zero `A`.
    """
    return _polar(A.double()).to(A.dtype)


def polar_then_row(A: Tensor) -> Tensor:
    """Return `row_norm(polar(A))`; arguments and result as there."""
    return _centred(_row_norm(_polar(A.double()))).to(A.dtype)


def row_then_polar(A: Tensor) -> Tensor:
    """Return `polar(row_norm(A))`; arguments and result as there."""
    return _polar(_centred(_row_norm(A.double()))).to(A.dtype)


BASELINES: dict[str, Callable[[Tensor], Tensor]] = {
    "row norm": row_norm,
    "polar": polar,
    "polar then row": polar_then_row,
}
"""The ones that reports compare an update with, by name."""


class Quality(NamedTuple):
    """What an update is worth, whatever its scale."""

    rho: float
    """`delta / D`, between 0 and 1."""
    alignment: float
    """`<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`, between -1 and 1."""
    cosine: float
    """`<A,S> / (||A|| ||S||)`, Frobenius norms."""


def quality(A: Tensor, S: Tensor) -> Quality:
    """Measure the update `S` against the momentum `A`, both of shape (V, d), V >= 2."""
    found = cloud.ratio(S)
    return Quality(found.value, cloud.alignment(A, S, diameter=found.diameter), cloud.cosine(A, S))


def _row_norm(A: Tensor) -> Tensor:
    largest = A.abs().amax(dim=1, keepdim=True)  # squares of what is left cannot underflow
    A = torch.where(largest > 0, A / largest, 0.0)
    return torch.where(largest > 0, A / A.norm(dim=1, keepdim=True), 0.0)


def _polar(A: Tensor) -> Tensor:
    """Return `U V^T` by way of the eigenvectors of the smaller Gram matrix.

    With `A^T A = V Sigma^2 V^T` the columns of `A V` are `sigma_j u_j`. Their norms are taken
    rather than the roots of the eigenvalues, which lose half of the digits of small ones.
    """
    if A.shape[0] < A.shape[1]:
        return _polar(A.T).T
    largest = A.abs().max()
    if largest == 0:
        return torch.zeros_like(A)
    A = A / largest
    basis = torch.linalg.eigh(A.T @ A).eigenvectors
    scaled = A @ basis
    sigma = scaled.norm(dim=0)
    kept = sigma > NULL * sigma.max()
    return (scaled[:, kept] / sigma[kept]) @ basis[:, kept].T


def _centred(S: Tensor) -> Tensor:
    return S - S.mean(dim=0)
