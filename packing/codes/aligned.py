"""A code as the start of a solver: turned and shared out to agree with a momentum.

Over rotations R and injections pi of the rows into the code,

    sum_i <a_i, c_pi(i) R>

is raised by turns: orthogonal Procrustes, `R = U W^T` for `C_pi^T A = U Sigma W^T` (Schoenemann,
Psychometrika 31, 1966), and an assignment of code rows (scipy's Jonker-Volgenant algorithm).
Neither changes a distance between code rows: the result is as well separated as the code.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .. import checks
from ..extras import extra

with extra("codes"):
    from scipy.optimize import linear_sum_assignment

BLOCK_SCORES = 1 << 24
"""Entries of one matrix of inner products, 64 MiB: what bounds the memory of an assignment."""


class Aligned(NamedTuple):
    """A code brought as near to a momentum as turning and sharing out found."""

    rows: Tensor
    """`c_pi(i) R`, shape (V, d): pass it as `state=` to `rowsep.packing.solve`."""
    indices: Tensor
    """pi(i), the code row of each row, shape (V,), int64."""
    rotation: Tensor
    """R, orthogonal, shape (d, d)."""


@torch.no_grad()
def align(code: Tensor, A: Tensor, *, rounds: int = 4) -> Aligned:
    """Turn a code and share its rows out so that they agree with a momentum.

    Both steps raise the same sum; the point reached depends on the order of the rows that they
    start from. One assignment is exact up to `BLOCK_SCORES` scores. Beyond, rows take their turn in
    blocks, the heaviest first, each block exactly among what is left: there a turn that lowers the
    sum is dropped and ends the search, the first one included.

    Args:
        code: shape (N, d), N >= V, float32 or float64.
        A: centred momentum, shape (V, d), V >= 1, floating dtype, on the device of `code`.
        rounds: most turns of the two steps, at least 1; stops as soon as the sum gains less than
            one part in a thousand.

    Returns:
        Rows in the dtype of `code`.

    Raises:
        TypeError, ValueError: an argument is not as above.
    """
    checks.check_cloud(code, "code")
    checks.check_cloud(A, "A")
    rounds = checks.check_count(rounds, "rounds", 1)
    if code.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"code has dtype {code.dtype}, expected float32 or float64; use code.float()"
        )
    if len(A) == 0:
        raise ValueError(f"A has shape {tuple(A.shape)}, expected at least one row")
    if code.shape[1] != A.shape[1] or len(code) < len(A) or code.device != A.device:
        raise ValueError(
            f"code has shape {tuple(code.shape)} on {code.device}, A {tuple(A.shape)} on "
            f"{A.device}: expected at least as many rows and equal dimensions, on one device"
        )
    A = A.to(code.dtype)
    A = A / A.norm(dim=1).max().clamp_min(torch.finfo(A.dtype).tiny)
    best, reached = _turned(code, A, torch.arange(len(A), device=A.device))
    for turn in range(rounds):
        found, total = _turned(code, A, _assign(A, code @ best.rotation))
        if total < reached:
            break
        enough = turn > 0 and total <= reached * (1 + 1e-3)
        best, reached = found, total
        if enough:
            break
    return best


@torch.no_grad()
def blend(rows: Tensor, A: Tensor, weight: float) -> Tensor:
    """Return unit rows along `x_i + weight a_i / m`, m the mean of the norms of A's rows.

    Heavy rows follow the momentum and light ones the code: a row of norm `||a_i|| = m / weight`
    goes half way. weight 0 is the code, a large one the row-normalised momentum.

    Args:
        rows: unit rows, shape (V, d), of `align`.
        A: centred momentum, shape (V, d), on the device of `rows`.
        weight: at least 0.

    Returns:
        Shape (V, d), dtype of `rows`; a row that cancels is zero.

    Raises:
        TypeError, ValueError: an argument is not as above.
    """
    checks.check_cloud(rows, "rows")
    checks.check_cloud(A, "A")
    checks.check_same_shape(A, rows, "A", "rows")
    checks.check_size(weight, "weight")
    A = A.to(rows.dtype)
    mean = A.norm(dim=1).mean().clamp_min(torch.finfo(A.dtype).tiny)
    blended = rows + weight * (A / mean)
    return blended / blended.norm(dim=1, keepdim=True).clamp_min(torch.finfo(A.dtype).tiny)


def _turned(code: Tensor, A: Tensor, indices: Tensor) -> tuple[Aligned, float]:
    """The rows `indices` of a code under the orthogonal R of the largest `<A, C R>`, and that."""
    U, _, Wt = torch.linalg.svd(code[indices].T @ A)
    rotation = U @ Wt
    rows = code[indices] @ rotation
    return Aligned(rows, indices, rotation), float((A * rows).sum())


def _assign(A: Tensor, code: Tensor) -> Tensor:
    """pi of the largest `sum_i <a_i, c_pi(i)>`, block by block, the heaviest rows first."""
    indices = torch.empty(len(A), dtype=torch.int64, device=A.device)
    left = torch.arange(len(code), device=A.device)
    order = A.norm(dim=1).argsort(descending=True, stable=True)
    while len(order):
        size = max(1, BLOCK_SCORES // len(left))
        block, order = order[:size], order[size:]
        scores = (A[block] @ code[left].T).cpu().numpy()
        row, column = (torch.from_numpy(x).to(A.device) for x in linear_sum_assignment(-scores))
        indices[block[row]] = left[column]
        kept = torch.ones(len(left), dtype=torch.bool, device=A.device)
        kept[column] = False
        left = left[kept]
    return indices
