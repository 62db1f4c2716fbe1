"""Bounds on spherical codes: how large the cosines of V unit vectors of R^d must become.

`max_{i<j} <x_i, x_j>` (one-sided) and the coherence `max_{i<j} |<x_i, x_j>|` (two-sided) have these
lower bounds. None bounds `rho`, whose points need not lie on a sphere; on a sphere `rho` is
`sqrt((1 - max cos)/(1 - min cos))`, and a lower bound on the largest cosine leaves the least one
free, while the points that a bound on the coherence c excludes may have a `rho` above
`sqrt((1-c)/(1+c))`. `rowsep.packing.bounds.lifted_bound` is what follows for `rho`.

===================  ==============  ==================  =====================================
bound                of              says something for  attained by
===================  ==============  ==================  =====================================
welch_coherence      coherence       V > d               equiangular tight frames
orthoplex_coherence  coherence       V > d(d+1)/2        mutually unbiased bases, Kerdock sets
rankin_cosine        largest cosine  V <= 2d             simplex, orthoplex
levenshtein_cosine   largest cosine  all V               the sharp configurations
===================  ==============  ==================  =====================================
"""

import math
from functools import cache

import numpy as np

from .. import checks

DEGREES = 40
"""Largest k of Levenshtein's polynomials of degree 2k that is tried."""


def welch_coherence(num_rows: int, dim: int) -> float:
    """Return `sqrt((V-d)/(d(V-1)))`, which the coherence of V unit vectors is not below.

    Welch, Lower bounds on the maximum cross correlation of signals, IEEE Trans. Inform. Theory 20
    (1974). 0.0 for V <= d.

    Raises:
        TypeError, ValueError: not integers, or below 1.
    """
    num_rows, dim = _check(num_rows, dim)
    if num_rows <= dim:
        return 0.0
    return math.sqrt((num_rows - dim) / (dim * (num_rows - 1)))


def orthoplex_coherence(num_rows: int, dim: int) -> float:
    """Return `1/sqrt(d)` for V > d(d+1)/2, else 0.0: the coherence of V unit vectors is not below.

    The lines are points of a sphere in (d-1)(d+2)/2 dimensions, where Rankin's second bound holds
    (Conway, Hardin and Sloane, Packing lines, planes, etc., Exp. Math. 5, 1996).

    Raises:
        TypeError, ValueError: not integers, or below 1.
    """
    num_rows, dim = _check(num_rows, dim)
    return 1.0 / math.sqrt(dim) if 2 * num_rows > dim * (dim + 1) else 0.0


def rankin_cosine(num_rows: int, dim: int) -> float:
    """Return `-1/(V-1)` for V <= d+1, else 0.0: the largest cosine of V unit vectors is not below.

    Attained by the simplex, and for d+2 <= V <= 2d by parts of the orthoplex; for V > 2d the
    largest cosine is positive. Rankin, The closest packing of spherical caps in n dimensions, Proc.
    Glasgow Math. Assoc. 2 (1955). -1.0 for V < 3.

    Raises:
        TypeError, ValueError: not integers, or below 1.
    """
    num_rows, dim = _check(num_rows, dim)
    if num_rows > dim + 1:
        return 0.0
    return -1.0 / (num_rows - 1) if num_rows > 1 else -1.0


def levenshtein_cosine(num_rows: int, dim: int) -> float:
    """Return the s at which `levenshtein_size(s, dim)` is V: the largest cosine is not below.

    To 1e-12, on the safe side. For so many rows that degree 2 * 40 does not reach them, the s up to
    which it does, which is a bound as well. -1.0 for V < 3.

    Args:
        num_rows: V, at least 1.
        dim: d, at least 2.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    num_rows = checks.check_count(num_rows, "num_rows", 1)
    dim = checks.check_count(dim, "dim", 2)
    if num_rows < 3:
        return -1.0
    low = -1.0
    for m in range(1, 2 * DEGREES + 1):
        high = _end(m, dim)
        if _size(m, high, dim) >= num_rows:
            if _size(m, low, dim) >= num_rows:  # at a joint of two degrees, by rounding
                return max(-1.0, low - 1e-12)
            end = low
            while high - low > 1e-13:
                middle = (low + high) / 2
                low, high = (middle, high) if _size(m, middle, dim) < num_rows else (low, middle)
            return max(end, low - 1e-12)
        low = high
    return low


def levenshtein_size(cosine: float, dim: int) -> float:
    """Return Levenshtein's bound on how many unit vectors have no cosine above `cosine`.

    With `P_k` the Gegenbauer polynomials of dimension d, `P_k(1) = 1`, and `t_k^{a,b}` the largest
    zero of the Jacobi polynomial of degree k with parameters `a + (d-3)/2`, `b + (d-3)/2`, it is

        C(k+d-3, k-1) ((2k+d-3)/(d-1) - (P_{k-1} - P_k)/((1-s) P_k))
            for t_{k-1}^{1,1} <= s <= t_k^{1,0}, and
        C(k+d-2, k) ((2k+d-1)/(d-1) - (1+s)(P_k - P_{k+1})/((1-s)(P_k + P_{k+1})))
            for t_k^{1,0} <= s <= t_k^{1,1}.

    Levenshtein, Designs as maximum codes in polynomial metric spaces, Acta Appl. Math. 29
    (1992); Universal bounds for codes and designs, Handbook of Coding Theory (1998).

    Args:
        cosine: s, in [-1, 1).
        dim: d, at least 2.

    Raises:
        TypeError, ValueError: the arguments are not as above, or s is beyond degree 80.
    """
    cosine, dim = checks.check_number(cosine, "cosine"), checks.check_count(dim, "dim", 2)
    if not -1.0 <= cosine < 1.0:
        raise ValueError(f"cosine is {cosine}, expected -1 <= cosine < 1")
    for m in range(1, 2 * DEGREES + 1):
        if cosine <= _end(m, dim):
            return _size(m, cosine, dim)
    raise ValueError(f"cosine is {cosine}, beyond the polynomials of degree {2 * DEGREES}")


def _size(m: int, s: float, dim: int) -> float:
    """The bound by the polynomial of degree m."""
    k = (m + 1) // 2
    if s <= -1.0:
        return 2.0
    if m % 2:
        p, q = _gegenbauer(k - 1, s, dim)
        rest = (p - q) / ((1 - s) * q)
        return _binomial(k + dim - 3, k - 1) * ((2 * k + dim - 3) / (dim - 1) - rest)
    p, q = _gegenbauer(k, s, dim)
    rest = (1 + s) * (p - q) / ((1 - s) * (p + q))
    return _binomial(k + dim - 2, k) * ((2 * k + dim - 1) / (dim - 1) - rest)


@cache
def _end(m: int, dim: int) -> float:
    """The largest s at which the polynomial of degree m is the one to take."""
    k, shift = (m + 1) // 2, (dim - 3) / 2
    return _largest_jacobi_zero(k, 1 + shift, (m + 1) % 2 + shift)


def _largest_jacobi_zero(k: int, a: float, b: float) -> float:
    """The largest zero of `P_k^{(a,b)}`: an eigenvalue of its three-term recurrence.

    Golub and Welsch, Calculation of Gauss quadrature rules, Math. Comp. 23 (1969).
    """
    n = np.arange(1.0, k)
    s = 2 * n + a + b
    diagonal = np.concatenate([[(b - a) / (a + b + 2)], (b * b - a * a) / (s * (s + 2))])
    beside = 4 * n * (n + a) * (n + b) * (n + a + b) / (s * s * (s + 1) * (s - 1))
    recurrence = np.diag(diagonal) + np.diag(np.sqrt(beside), -1)
    return float(np.linalg.eigvalsh(recurrence)[-1])  # of the lower triangle


def _binomial(n: int, k: int) -> float:
    """`C(n, k)`, `inf` beyond the range of float64."""
    try:
        return float(math.comb(n, k))
    except OverflowError:
        return math.inf


def _gegenbauer(k: int, s: float, dim: int) -> tuple[float, float]:
    """`P_k(s)` and `P_{k+1}(s)` with `P(1) = 1`."""
    p, q = 1.0, s
    for n in range(1, k + 1):
        p, q = q, ((2 * n + dim - 2) * s * q - n * p) / (n + dim - 2)
    return p, q


def _check(num_rows: int, dim: int) -> tuple[int, int]:
    return checks.check_count(num_rows, "num_rows", 1), checks.check_count(dim, "dim", 1)
