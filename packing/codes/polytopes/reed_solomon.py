"""Reed-Solomon codes with a regular simplex for every symbol.

A row lists the values of a polynomial of degree below k over GF(q) at n <= q + 1 points (the last
one the point at infinity, where the value is the leading coefficient). Each value is written as a
vertex of a regular simplex of R^(q-1). Rows agree in at most k - 1 places, and the squared distance
counts the places where they do not:

    V = q^k,    d = n (q - 1),    rho^2 = 1 - (k - 1)/n    (1 for k = 2 and n = q + 1).

With unit vectors of R^q for the symbols, degree below q and n = q this is the matrix of DeVore
(Deterministic constructions of compressed sensing matrices, J. Complexity 23, 2007); simplices
instead subtract its mean and save n dimensions. k = 2, n = q + 1 is again a regular simplex; k = 2
and n of about `d/sqrt V` serves V between d and 2d, k = 3 and n of about `sqrt d` has
`rho = 1 - 1/sqrt d` up to about `d^(3/2)` rows.
"""

import math

import torch
from torch import Tensor

from ... import checks
from ..code import Code, rho_of_cosines
from ..fields import characteristic, digits, trace_terms
from .simplices import helmert


class ReedSolomon(Code):
    """`q^k` points of R^(n(q-1))."""

    def __init__(self, q: int, length: int, size: int):
        """Take the field of order `q`, `length` n between `size` and q + 1, `size` k.

        Raises:
            TypeError, ValueError: not as above.
        """
        q = checks.check_count(q, "q", 2)
        size = checks.check_count(size, "size", 1)
        length = checks.check_count(length, "length", size)
        if length > q + 1:
            raise ValueError(f"length is {length}, expected at most q + 1 = {q + 1}")
        self.order, self.length, self.size = q, length, size
        self.prime = characteristic(q)
        # lines have one point in common with each other, at infinity if nowhere else
        least = 1 if size == 2 and length == q + 1 else 0
        self.cosines = self._cosine(least), self._cosine(size - 1)
        super().__init__(
            q**size,
            length * (q - 1),
            rho_of_cosines(*self.cosines),
            "exact",
            f"the Reed-Solomon code [{length}, {size}] over GF({q}) with simplices for symbols",
        )
        self.norm = math.sqrt(length * (1 - 1 / q))

    def _cosine(self, agreements: int) -> float:
        return (self.order * agreements / self.length - 1) / (self.order - 1)

    def symbols(self, indices: Tensor) -> Tensor:
        """Return the symbols of codewords, shape (rows, n), int64 between 0 and q - 1."""
        q, p = self.order, self.prime
        coefficients = digits(indices, q, self.size)
        points = torch.arange(min(self.length, q), device=indices.device)
        symbols = torch.zeros((len(indices), self.length), dtype=torch.int64, device=indices.device)
        for i in range(round(math.log(q, p))):
            # coordinate i of the value in the basis dual to 1, g, g^2, ...
            terms = [trace_terms(q, c, points, j, i) for j, c in enumerate(coefficients)]
            symbols[:, : len(points)] += sum(terms) % p * p**i
        if self.length > q:
            symbols[:, q] = coefficients[-1]
        return symbols

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        numbers = torch.arange(self.order, device=indices.device)
        vertices = helmert(numbers[1:], numbers[:, None], dtype)
        return vertices[self.symbols(indices)].flatten(1)
