"""The Paley graph as a two-distance set: about twice as many rows as dimensions.

For a prime power q = 1 (mod 4) the squares K of GF(q) other than 0 number (q-1)/2 and contain -k
with every k. The rows `(w^Tr(k x))_{k in K}`, `w = exp(2 pi i / p)`, real as cosines and sines over
K up to sign, have the cosine `(-1 +- sqrt q) / (q - 1)`, + if x - y is a square (Gauss):

    V = q,    d = (q - 1)/2,    rho = sqrt((sqrt q - 1) / (sqrt q + 1)).

With a further constant column and one more row these are the q + 1 equiangular lines of Paley's
conference matrix (van Lint and Seidel, Indag. Math. 28, 1966); centred, they need a dimension less.
"""

import math

import torch
from torch import Tensor

from ... import checks
from ..code import Code, rho_of_cosines
from ..fields import characteristic, trace_terms
from .phases import circle


class Paley(Code):
    """q points of R^((q-1)/2), two-distance and centred."""

    def __init__(self, q: int):
        """Take the field of order `q`.

        Raises:
            TypeError, ValueError: `q` is not a prime power of remainder 1 modulo 4.
        """
        q = checks.check_count(q, "q", 5)
        self.order, self.prime = q, characteristic(q)
        if q % 4 != 1:
            raise ValueError(f"q is {q}, expected a prime power of remainder 1 modulo 4")
        root = math.sqrt(q)
        self.cosines = (-1 - root) / (q - 1), (-1 + root) / (q - 1)
        rho = rho_of_cosines(*self.cosines)
        super().__init__(q, (q - 1) // 2, rho, "exact", f"the Paley graph on GF({q})")
        self.norm = math.sqrt((q - 1) / 4)

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        # g^(2i) for i below (q-1)/4: one of k and -k = g^((q-1)/2) k each
        squares = torch.arange(1, (self.order + 1) // 2, 2, device=indices.device)
        return torch.cat(circle(self.prime, trace_terms(self.order, indices, squares), dtype), 1)
