"""Chirps and Weil sums: polynomial phases over a finite field, as real rows.

With `w = exp(2 pi i / p)` a complex row is `w^Tr(f(x))` over the x of GF(q), f a polynomial without
constant term of degree at most r < p. Two rows differ by one of those, and by Weil's bound

    |sum_x w^Tr(f(x))| <= (r - 1) sqrt q,

with equality for r = 2 (Gauss sums) and f not linear. A complex vector v becomes the real rows of v
and iv in R^(2q): the cosines are real parts, of v and iv itself 0. Alltop, Complex sequences with
low periodic correlations, IEEE Trans. IT 26 (1980); Strohmer and Heath, Grassmannian frames with
applications to coding and communication, ACHA 14 (2003).
"""

import math

import torch
from torch import Tensor

from ... import checks
from ..code import Code, rho_of_cosines
from ..fields import characteristic, digits, trace_terms


class Phases(Code):
    """`2 q^r` rows of R^(2n), n <= q, coherence `((r-1) sqrt q + q - n) / n`.

    n < q leaves out the last q - n points x, each of which adds at most 1 to a sum. For n = q the
    standard basis adds 2q rows, of cosine `1/sqrt q` at most with the others.
    """

    def __init__(self, q: int, degree: int = 2, length: int | None = None):
        """Take the field of order `q`, polynomials up to `degree` r and `length` n of its points.

        Raises:
            TypeError, ValueError: `q` is not the power of a prime above `degree`, `degree` is
                below 2 or `length` not between 1 and q.
        """
        q = checks.check_count(q, "q", 3)
        degree = checks.check_count(degree, "degree", 2)
        self.order, self.degree, self.prime = q, degree, characteristic(q)
        if self.prime <= degree:
            raise ValueError(f"q is {q}, expected a power of a prime above the degree {degree}")
        self.length = q if length is None else checks.check_count(length, "length", 1)
        missing = q - self.length
        if missing < 0:
            raise ValueError(f"length is {length}, but the field has {q} elements")
        coherence = ((degree - 1) * math.sqrt(q) + missing) / self.length
        if coherence >= 1:
            raise ValueError(f"{self.length} points of GF({q}) prove no coherence below 1")
        self._signals = 2 * q**degree
        name = "chirps" if degree == 2 else f"polynomial phases of degree {degree}"
        origin = f"{name} over GF({q}) and i times them"
        if missing:
            origin += f", {missing} of {q} coordinates left out"
        super().__init__(
            self._signals + (0 if missing else 2 * q),
            2 * self.length,
            rho_of_cosines(-coherence, coherence),
            "proved",
            origin,
        )
        self.cosines = (-coherence, coherence)
        self.norm = math.sqrt(self.length)

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        axis = indices - self._signals
        signal = indices.where(axis < 0, 0)
        points = torch.arange(self.length, device=indices.device)
        coefficients = digits(signal // 2, self.order, self.degree)
        phase = torch.zeros_like(points)
        for j, coefficient in enumerate(coefficients, start=1):
            phase = phase + trace_terms(self.order, coefficient, points, j)
        real, imaginary = circle(self.prime, phase % self.prime, dtype)
        turned = (signal % 2 == 1)[:, None]
        rows = torch.cat(
            [torch.where(turned, -imaginary, real), torch.where(turned, real, imaginary)], dim=1
        )
        at = (axis >= 0).nonzero()[:, 0]
        rows[at] = 0
        rows[at, axis[at]] = self.norm
        return rows


def circle(p: int, exponents: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return real and imaginary part of `exp(2 pi i k / p)` for exponents k between 0 and p-1."""
    angles = torch.arange(p, dtype=torch.float64, device=exponents.device) * (2 * math.pi / p)
    return angles.cos().to(dtype)[exponents], angles.sin().to(dtype)[exponents]
