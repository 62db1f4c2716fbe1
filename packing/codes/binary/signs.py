"""Kerdock, Delsarte-Goethals and Gold sets: signs of quadratic forms, and the standard basis.

A row is `(-1)^f(x)` over all x of GF(2)^n, d = 2^n, f a quadratic form without constant term. Two
rows whose forms differ by one of rank h have inner product 0 or `+-2^(n - h/2)`; a row and a unit
vector have cosine `+-1/sqrt d`. One row of each pair of opposite rows is kept.
"""

import math
from abc import abstractmethod

import torch
from torch import Tensor

from ... import checks
from ..code import INTEGERS, Code, rho_of_cosines
from ..fields import digits, trace_terms


class _Signs(Code):
    """Sign rows first, the d vectors of the standard basis last."""

    integral = True

    def __init__(self, signs: int, dim: int, coherence: float, evidence: str, origin: str):
        rho = rho_of_cosines(-coherence, coherence)
        super().__init__(signs + dim, dim, rho, evidence, origin)
        self.cosines = (-coherence, coherence)
        self.norm = math.sqrt(dim)

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        axis = indices - (self.num_rows - self.dim)
        exponents = self._exponents(indices.where(axis < 0, 0))
        rows = (1 - 2 * exponents).to(dtype)
        at = (axis >= 0).nonzero()[:, 0]
        if len(at):  # their entry may be too large for the dtype of signs
            rows[at] = 0
            rows[at, axis[at]] = self.norm if dtype.is_floating_point else math.isqrt(self.dim)
        return rows

    def _check_integers(self, indices: Tensor, dtype: torch.dtype) -> None:
        super()._check_integers(indices, dtype)
        basis = indices >= self.num_rows - self.dim
        if not basis.any():
            return
        row, root = int(indices[basis][0]), math.isqrt(self.dim)
        if root * root != self.dim:
            raise ValueError(
                f"row {row} has the entry sqrt {self.dim}, which is no integer; use a floating "
                f"dtype, or rows below {self.num_rows - self.dim}, which are signs"
            )
        if root > torch.iinfo(dtype).max:
            wider = next(t for t in INTEGERS if root <= torch.iinfo(t).max)
            raise ValueError(f"row {row} has the entry {root}, too large for {dtype}; use {wider}")

    @abstractmethod
    def _exponents(self, indices: Tensor) -> Tensor:
        """`f(x)` modulo 2, shape (n, d)."""


class Kerdock(_Signs):
    """Kerdock set in d = 4^m dimensions, or the Delsarte-Goethals set of degree r that contains it.

    With M = 2m-1 and x = (y, e) in GF(2^M) x GF(2), a row is the sign of

        f(x) = sum_{i=1}^{(M-1)/2} Tr((a y)^(2^i+1)) + e Tr(a y)              a in GF(2^M)
               + sum_{j=1}^{r} Tr(c_j y^(2^j+1))                              c_j in GF(2^M)
               + Tr(b y) + h e                                      b in GF(2^M), h in GF(2)

    Two forms differ by rank 2m - 2r at least, so the coherence is `2^r / sqrt d`; the rows number
    `d (d/2)^(r+1)`, with the standard basis d more. For r = 0 these are d/2 + 1 orthonormal bases
    with all cosines 0 or `+-1/sqrt d` (Calderbank, Cameron, Kantor, Seidel, Z4-Kerdock codes,
    orthogonal spreads, and extremal Euclidean line-sets, Proc. LMS 75, 1997; the forms are the
    Gray image of Hammons, Kumar, Calderbank, Sloane, Sole, IEEE Trans. IT 40, 1994).
    """

    def __init__(self, dim: int, degree: int = 0):
        """Take R^dim; `degree` is r, between 0 and m-1.

        Raises:
            TypeError, ValueError: `dim` is not a power of 4, or `degree` out of range.
        """
        dim = checks.check_count(dim, "dim", 4)
        m = _exponent(dim, 4)
        degree = checks.check_count(degree, "degree", 0)
        if degree >= m:
            raise ValueError(f"degree is {degree}, expected at most {m - 1} in {dim} dimensions")
        self.order, self.degree = dim // 2, degree
        signs = dim * self.order ** (degree + 1)
        name = f"Delsarte-Goethals set of degree {degree}" if degree else "Kerdock set"
        evidence = "proved" if degree else "exact"
        origin = f"the {name} in R^{dim}"
        super().__init__(signs, dim, 2**degree / math.sqrt(dim), evidence, origin)

    def _exponents(self, indices: Tensor) -> Tensor:
        q, width = self.order, 2 * self.order
        linear, higher = indices % width, indices // width
        a, *c = digits(higher, q, self.degree + 1)
        points = torch.arange(q, device=indices.device)
        even = trace_terms(q, linear // 2, points)
        # (a y)^(2^i+1) takes the values of x^(2^i+1) at x = a y
        form = _kerdock_form(q, points)
        product = (a[:, None] + points - 2) % max(q - 1, 1) + 1
        even += form[product.masked_fill((a == 0)[:, None] | (points == 0), 0)]
        for j, coefficient in enumerate(c, start=1):
            even += trace_terms(q, coefficient, points, 2**j + 1)
        odd = even + trace_terms(q, a, points) + (linear % 2)[:, None]
        return torch.cat([even, odd], dim=1) % 2


class Gold(_Signs):
    """Gold set in d = 2^n dimensions, n odd, of degree t >= 2 (t = 2 are Gold's sequences).

    A row is the sign of `f(x) = Tr(b x) + sum_{j=1}^{t-1} Tr(c_j x^(2^j+1))` on GF(2^n). The
    radical of a difference is the kernel of a linearised polynomial of degree `2^(2t-2)`, and its
    dimension is odd like n, so at most 2t-3: the coherence is `2^((2t-3)/2) / sqrt d`. For t = 2
    it is `sqrt(2/d)` (Gold, Maximal recursive sequences with 3-valued recursive cross-correlation
    functions, IEEE Trans. IT 14, 1968); t = 2, 3 are the duals of the BCH codes that correct t
    errors. The rows number `d^t`, with the standard basis d more.
    """

    def __init__(self, dim: int, degree: int = 2):
        """Take R^dim; `degree` is t, between 2 and (n+1)/2.

        Raises:
            TypeError, ValueError: `dim` is not an odd power of 2, or `degree` out of range.
        """
        dim = checks.check_count(dim, "dim", 2)
        n = _exponent(dim, 2)
        degree = checks.check_count(degree, "degree", 2)
        if n % 2 == 0 or degree > (n + 1) // 2:
            raise ValueError(
                f"dim is {dim} and degree {degree}, expected 2^n with odd n and a degree of at "
                f"most (n+1)/2"
            )
        self.degree = degree
        coherence = math.sqrt(2 ** (2 * degree - 3) / dim)
        origin = f"the Gold set of degree {degree} in R^{dim}"
        evidence = "proved" if degree > 2 else "exact"
        super().__init__(dim**degree, dim, coherence, evidence, origin)

    def _exponents(self, indices: Tensor) -> Tensor:
        b, *c = digits(indices, self.dim, self.degree)
        points = torch.arange(self.dim, device=indices.device)
        form = trace_terms(self.dim, b, points)
        for j, coefficient in enumerate(c, start=1):
            form += trace_terms(self.dim, coefficient, points, 2**j + 1)
        return form % 2


def _kerdock_form(q: int, points: Tensor) -> Tensor:
    """`sum_{i=1}^{(M-1)/2} Tr(x^(2^i+1))` at the points, shape (m,), for q = 2^M."""
    one = torch.ones(1, dtype=torch.int64, device=points.device)
    half = (q.bit_length() - 2) // 2
    terms = [trace_terms(q, one, points, 2**i + 1)[0] for i in range(1, half + 1)]
    return sum(terms, torch.zeros_like(points)) % 2


def _exponent(dim: int, base: int) -> int:
    """The m with `dim = base^m`, m >= 1."""
    m = round(math.log(dim, base))
    if base**m != dim:
        raise ValueError(f"dim is {dim}, expected a power of {base}")
    return m
