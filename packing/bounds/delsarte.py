"""Delsarte's linear programme: how many unit vectors of R^d have no cosine above s.

    minimise f(1)/f_0  over  f = sum_k f_k P_k,  f_0 > 0,  f_k >= 0,  f(t) <= 0 for -1 <= t <= s

with `P_k` the Gegenbauer polynomials of dimension d. Summing f over all pairs of a code of N
vectors gives `N f(1) >= sum_{x,y} f(<x,y>) >= N^2 f_0`. The programme is solved on a grid (HiGHS)
and its polynomial rounded to rationals and lowered until an exact root count (Sturm) shows that it
has no zero on [-1, s]: the bound returned is proved in exact arithmetic.

Like `rowsep.packing.bounds.codes` it bounds spherical codes, and not `rho`. Delsarte, Goethals and
Seidel, Spherical codes and designs, Geom. Dedicata 6 (1977).
"""

from fractions import Fraction
from numbers import Rational
from typing import NamedTuple

import numpy as np

from .. import checks
from ..extras import extra

with extra("exact"):
    import sympy
    from scipy.optimize import linprog

GRID = 1000
REFINEMENTS = 4
"""Rounds in which the grid is refined about the maxima of the polynomial."""
DIGITS = 10**12
"""Denominator of the rounded coefficients."""


class SizeBound(NamedTuple):
    """A bound on the size of a spherical code, with the polynomial that proves it."""

    value: Fraction
    """`f(1)/f_0`: no code has more vectors than its integer part."""
    coefficients: tuple[Fraction, ...]
    """`f_0, f_1, ..` of the Gegenbauer expansion."""


def delsarte_size(cosine: Fraction | int, dim: int, degree: int = 16) -> SizeBound:
    """Return a proved bound on the number of unit vectors with no cosine above `cosine`.

    Args:
        cosine: s, a `fractions.Fraction` or an integer, -1 < s < 1. For an irrational s take a
            rational one just above.
        dim: d, at least 2.
        degree: of the polynomial, 1 to 30.

    Raises:
        TypeError, ValueError: an argument is not as above.
        RuntimeError: no polynomial of this degree proves a bound, HiGHS failed, or no polynomial
            near its solution could be verified.
    """
    dim = checks.check_count(dim, "dim", 2)
    degree = checks.check_count(degree, "degree", 1, 30)
    if not isinstance(cosine, Rational):
        raise TypeError(f"cosine is {cosine!r}, expected a Fraction: Fraction(1, 2), say")
    if not -1 < cosine < 1:
        raise ValueError(f"cosine is {cosine}, expected -1 < cosine < 1")
    cosine = Fraction(int(cosine.numerator), int(cosine.denominator))
    coefficients = [Fraction(1), *_optimum(float(cosine), dim, degree)]
    lowered = Fraction(0)
    for exponent in range(11, 1, -1):
        shifted = [coefficients[0] - lowered, *coefficients[1:]]
        if verified(shifted, cosine, dim):
            return SizeBound(sum(shifted, Fraction(0)) / shifted[0], tuple(shifted))
        lowered = Fraction(1, 10**exponent)
    raise RuntimeError(f"no polynomial of degree {degree} could be verified at {cosine}, d = {dim}")


def verified(coefficients: list[Fraction], cosine: Fraction, dim: int) -> bool:
    """Return whether a Gegenbauer expansion proves a bound, in exact arithmetic.

    That is, `f_0 > 0`, all `f_k >= 0` and `f < 0` on [-1, cosine], by Sturm's theorem.
    """
    if coefficients[0] <= 0 or min(coefficients) < 0:
        return False
    t = sympy.Symbol("t")
    polynomial = sympy.Poly(0, t, domain="QQ")
    for f, basis in zip(coefficients, _polynomials(len(coefficients), dim, t), strict=True):
        polynomial += basis * sympy.Rational(f.numerator, f.denominator)
    end = sympy.Rational(cosine.numerator, cosine.denominator)
    left = sum((-1) ** k * f for k, f in enumerate(coefficients))  # P_k(-1) = (-1)^k
    return left < 0 and polynomial.count_roots(-1, end) == 0


def _optimum(s: float, dim: int, degree: int) -> list[Fraction]:
    """Coefficients `f_1 ..` of the programme on a grid, `f_0 = 1`, rounded to rationals."""
    # dense at both ends, as the optimum touches zero there
    grid = (s - 1) / 2 - (s + 1) / 2 * np.cos(np.linspace(0, np.pi, GRID))
    optimum = np.zeros(degree)
    for _ in range(REFINEMENTS):
        table = _values(grid, dim, degree)
        found = linprog(np.ones(degree), A_ub=table, b_ub=-np.ones(len(grid)), bounds=(0, None))
        if found.status == 2:  # infeasible
            raise RuntimeError(
                f"no polynomial of degree {degree} proves a bound at cosine {s}, d = {dim}; "
                f"raise degree, up to 30"
            )
        if found.status != 0:
            raise RuntimeError(f"HiGHS failed on Delsarte's programme: {found.message}")
        optimum = found.x
        f = np.pad(table @ optimum, 1, constant_values=-np.inf)
        peaks = np.flatnonzero((f[1:-1] >= f[:-2]) & (f[1:-1] >= f[2:]))
        left, right = grid[np.maximum(peaks - 1, 0)], grid[np.minimum(peaks + 1, len(grid) - 1)]
        grid = np.union1d(grid, np.linspace(left, right, 33).ravel())
    return [Fraction(round(x * DIGITS), DIGITS) for x in optimum]


def _values(grid: np.ndarray, dim: int, degree: int) -> np.ndarray:
    """`P_1 .. P_degree` on a grid, shape (points, degree)."""
    values = [np.ones_like(grid), grid]
    for n in range(1, degree):
        values.append(((2 * n + dim - 2) * grid * values[n] - n * values[n - 1]) / (n + dim - 2))
    return np.stack(values[1:], axis=1)


def _polynomials(count: int, dim: int, t: sympy.Symbol) -> list[sympy.Poly]:
    """The first Gegenbauer polynomials, `P(1) = 1`, over the rationals."""
    one, x = sympy.Poly(1, t, domain="QQ"), sympy.Poly(t, t, domain="QQ")
    made = [one, x]
    for n in range(1, count - 1):
        a = sympy.Rational(2 * n + dim - 2, n + dim - 2)
        b = sympy.Rational(n, n + dim - 2)
        made.append(x * made[n] * a - made[n - 1] * b)
    return made[:count]
