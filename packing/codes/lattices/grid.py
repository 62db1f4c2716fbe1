"""A box of the integer grid: for crowds in few dimensions, where no sphere has room."""

import math
from itertools import count

import torch
from torch import Tensor

from ... import checks
from ...extras import extra
from ..code import Code

with extra("codes"):
    from sympy import integer_nthroot


class Grid(Code):
    """At least `num_rows` points with integer coordinates, sides of the box nearly equal.

    With sides `n_1 .. n_d` the diameter is `sqrt(sum (n_k - 1)^2)` and the separation 1. The
    optimum for d = 1; in general far from it. Row i has the digits of i for coordinates, centred
    and scaled to norms of at most 1; a dtype of b bits tells the rows apart on sides up to 2^b.
    """

    def __init__(self, num_rows: int, dim: int):
        """Find the least box.

        Raises:
            TypeError, ValueError: not integers, or below 1.
        """
        num_rows = checks.check_count(num_rows, "num_rows", 1)
        dim = checks.check_count(dim, "dim", 1)
        least = int(integer_nthroot(num_rows, dim)[0])
        longer = next(k for k in count() if (least + 1) ** k * least ** (dim - k) >= num_rows)
        sides = [least + 1] * longer + [least] * (dim - longer)
        self._diameter = math.hypot(*(n - 1 for n in sides))
        rho = 1.0 / self._diameter if num_rows > 1 else 0.0
        origin = f"a box of the integer grid, sides {min(sides)} to {max(sides)}"
        super().__init__(math.prod(sides), dim, rho, "exact", origin)
        self._sides = sides

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        if self._sides[0] >= 2**63:
            raise ValueError(
                f"a side of the box has {self._sides[0]} points, expected below 2^63; "
                f"ask for fewer rows or more dimensions"
            )
        # all corners of a centred box are half its diameter from the origin; twice the coordinates
        # are integers, summed so that none exceeds the side
        columns, rest = [], indices
        for side in self._sides:
            digit = rest % side
            columns.append(digit - (side - 1) + digit)
            rest = rest // side
        return torch.stack(columns, dim=1).to(dtype) / (self._diameter or 1.0)
