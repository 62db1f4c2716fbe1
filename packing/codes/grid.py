"""A box of the integer grid: for crowds in few dimensions, where no sphere has room."""

import math
from itertools import count

import torch
from sympy import integer_nthroot
from torch import Tensor

from packing import checks
from packing.codes.code import Code


class Grid(Code):
    """At least `num_rows` points with integer coordinates, sides of the box nearly equal.

    With sides `n_1 .. n_d` the diameter is `sqrt(sum (n_k - 1)^2)` and the separation 1. The
    optimum for d = 1; in general far from it.
    """

    def __init__(self, num_rows: int, dim: int):
        """Find the least box.

        Raises:
            TypeError, ValueError: not integers, or below 1.
        """
        checks.check_count(num_rows, "num_rows", 1)
        checks.check_count(dim, "dim", 1)
        least = int(integer_nthroot(num_rows, dim)[0])
        longer = next(k for k in count() if (least + 1) ** k * least ** (dim - k) >= num_rows)
        sides = [least + 1] * longer + [least] * (dim - longer)
        self._diameter = math.hypot(*(n - 1 for n in sides))
        rho = 1.0 / self._diameter if num_rows > 1 else 1.0
        origin = f"a box of the integer grid, sides {min(sides)} to {max(sides)}"
        super().__init__(math.prod(sides), dim, rho, "exact", origin)
        self._sides = sides

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        # all corners of a centred box are half its diameter from the origin
        columns, rest = [], indices
        for side in self._sides:
            columns.append(rest % side - (side - 1) / 2)
            rest = rest // side
        scale = self._diameter / 2 if self._diameter else 1.0
        return torch.stack(columns, dim=1).to(dtype) / scale
