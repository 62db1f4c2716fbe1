"""Lists of pairs, and the sparse matrices in compressed rows that sum over them."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """A list of pairs `i < j`, shape (k,) each, with their squared distances."""

    i: Tensor
    j: Tensor
    q: Tensor


def join(parts: list[Pairs]) -> Pairs:
    """One list of several."""
    i, j, q = (torch.cat([getattr(p, name) for p in parts]) for name in ("i", "j", "q"))
    return Pairs(i, j, q)


def symmetric_pattern(i: Tensor, j: Tensor, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A sparse matrix of zeros at (i, j) and (j, i), and where its entries come from.

    Returns:
        The matrix, shape (n, n); and for each of its values the position in `cat([i, j])`.
    """
    heads, order = torch.sort(torch.cat([i, j]).int(), stable=True)
    tails = torch.cat([j, i])[order]
    values = torch.zeros(len(heads), dtype=dtype, device=i.device)
    return compressed(heads, tails, values, (n, n)), order


def compressed(heads: Tensor, tails: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The sparse matrix with `values` at rows `heads`, ascending, and columns `tails`."""
    ends = torch.zeros(shape[0] + 1, dtype=tails.dtype, device=tails.device)
    ends[1:] = torch.bincount(heads, minlength=shape[0]).cumsum(0)
    return _rows(ends, tails, values, shape)


def with_values(pattern: Tensor, values: Tensor) -> Tensor:
    """The sparse matrix with the pattern of another and these values."""
    shape = pattern.shape[0], pattern.shape[1]
    return _rows(pattern.crow_indices(), pattern.col_indices(), values, shape)


def _rows(ends: Tensor, tails: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A matrix in compressed rows, without torch's notice that these are in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(ends, tails, values, shape, check_invariants=False)
