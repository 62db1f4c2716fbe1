"""Independent Gaussian directions: what no construction should fall below."""

import math

import numpy as np
import torch
from scipy import optimize, stats
from torch import Tensor

from packing import checks
from packing.codes.code import Code, rho_of_cosines


class Gaussian(Code):
    """`num_rows` independent directions of R^dim; the same seed and index give the same row.

    `rho` is an estimate and not a guarantee: that of cosines `+-c`, with c the cosine that one
    pair of all V(V-1)/2 exceeds on average. The squared cosine of two directions has the
    distribution Beta(1/2, (d-1)/2).
    """

    def __init__(self, num_rows: int, dim: int, seed: int = 0):
        """Take V, d and the seed.

        Raises:
            TypeError, ValueError: not integers, or out of range.
        """
        checks.check_count(num_rows, "num_rows", 1)
        checks.check_count(dim, "dim", 2)
        checks.check_count(seed, "seed", 0)
        rho = rho_of_cosines(*_expected_cosines(num_rows, dim))
        super().__init__(num_rows, dim, rho, "estimate", f"Gaussian directions of seed {seed}")
        self.seed = seed

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        rows = np.empty((len(indices), self.dim))
        for row, index in zip(rows, indices.tolist(), strict=True):
            np.random.default_rng((self.seed, index)).standard_normal(out=row)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return torch.from_numpy(rows).to(indices.device, dtype)


def _expected_cosines(num_rows: int, dim: int) -> tuple[float, float]:
    """The cosines that one pair exceeds on average, one on either side."""
    pairs = num_rows * (num_rows - 1) / 2
    if pairs <= 1:
        return (0.0, 0.0)
    squared = stats.beta(0.5, (dim - 1) / 2)

    def excess(c: float) -> float:
        return math.log(pairs) + float(squared.logsf(c * c)) - math.log(2)

    c = float(optimize.brentq(excess, 0.0, 1.0 - 1e-12))  # pyright: ignore[reportArgumentType]
    return (-c, c)
