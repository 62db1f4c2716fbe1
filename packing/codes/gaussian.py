"""Independent Gaussian directions: what no construction should fall below."""

import math

import numpy as np
import torch
from torch import Tensor

from .. import checks
from ..extras import extra
from .code import Code

with extra("codes"):
    from scipy.special import betaincinv


class Gaussian(Code):
    """`num_rows` independent directions of R^dim; the same seed and index give the same row.

    `rho` is an estimate and not a guarantee: that of cosines `+-c`, with c the cosine that one
    pair of all V(V-1)/2 exceeds on average, and one falls short of -c. The squared sine of two
    directions has the distribution Beta((d-1)/2, 1/2).
    """

    def __init__(self, num_rows: int, dim: int, seed: int = 0):
        """Take V, d and the seed.

        Raises:
            TypeError, ValueError: not integers, or out of range.
        """
        num_rows = checks.check_count(num_rows, "num_rows", 1)
        dim = checks.check_count(dim, "dim", 2)
        seed = checks.check_count(seed, "seed", 0)
        rho = _expected_rho(num_rows, dim)
        super().__init__(num_rows, dim, rho, "estimate", f"Gaussian directions of seed {seed}")
        self.seed = seed

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        rows = np.empty((len(indices), self.dim))
        for row, index in zip(rows, indices.tolist(), strict=True):
            np.random.default_rng((self.seed, index)).standard_normal(out=row)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return torch.from_numpy(rows).to(indices.device, dtype)


def _expected_rho(num_rows: int, dim: int) -> float:
    """`sqrt((1-c)/(1+c))` for the c with `P(|cos| > c) V(V-1)/2 = 2`, from `1 - c^2`."""
    if num_rows < 3:
        return 1.0
    share = 4 / (num_rows * (num_rows - 1))
    squared_sine = float(betaincinv((dim - 1) / 2, 0.5, share))
    return math.sqrt(squared_sine) / (1 + math.sqrt(1 - squared_sine))
