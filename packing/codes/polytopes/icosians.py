"""The 120 vertices of the 600-cell, one of each pair of opposite ones: 60 rows in R^4.

With phi the golden ratio they are the unit vectors `(1, 0, 0, 0)`, `(1, +-1, +-1, +-1)/2` and
`(0, 1, +-phi, +-1/phi)/2` with their even permutations, up to sign; cosines are 0, +-1/2,
+-phi/2 and +-1/(2 phi). H. S. M. Coxeter, Regular Polytopes, 3rd ed., 8.7.
"""

from itertools import permutations, product

import torch
from torch import Tensor

from ...extras import extra
from ..code import Held, rho_of_cosines

with extra("codes"):
    from sympy.combinatorics import Permutation

PHI = (1 + 5**0.5) / 2


class Icosians(Held):
    """60 rows with cosines up to +-phi/2."""

    def __init__(self) -> None:
        """Hold the figures."""
        rho = rho_of_cosines(-PHI / 2, PHI / 2)
        super().__init__(60, 4, rho, "exact", "the vertices of the 600-cell up to sign")
        self.cosines = -PHI / 2, PHI / 2

    def _build(self) -> Tensor:
        rows = torch.eye(4, dtype=torch.float64).tolist()
        rows += [[0.5, *(sign / 2 for sign in signs)] for signs in product((1, -1), repeat=3)]
        even = [p for p in permutations(range(4)) if Permutation(p).is_even]
        for a, b in product((0.5, -0.5), repeat=2):
            values = (0.0, 0.5, a * PHI, b / PHI)
            rows += [[values[k] for k in p] for p in even]
        return torch.tensor(rows, dtype=torch.float64)
