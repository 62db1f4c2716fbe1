"""Bounds on `rho` over all clouds of V points of R^d; proofs in docs/explanation/mathematics.md.

rho(S) = min_{i<j} ||s_i - s_j|| / max_{i<j} ||s_i - s_j||
"""

import math
from typing import NamedTuple

from .. import checks
from ..cloud import jung_radius
from .codes import levenshtein_cosine

ROUNDED_UP = 1.0 + 2.0**-50
"""More than the rounding of the formulas, so that what attains a bound does not exceed it."""


class Bound(NamedTuple):
    """A bound on `rho`, and where it comes from."""

    value: float
    """No cloud of this many points in this dimension has a larger `rho`."""
    name: str
    """The function that gives it."""
    proves: str
    """Why it holds, in a sentence."""


def upper_bound(num_rows: int, dim: int) -> Bound:
    """Return the least bound on `rho` known here, over all clouds of `num_rows` points of R^dim.

    The least of `closed_form_bound`, `volume_bound`, `lifted_bound`, for V >= d+2 the exact value
    at d+2, which is `radon_bound`, and for d = 2 `planar_bound`, rounded up. Bounds on the cosines
    of spherical codes (`rowsep.packing.bounds.codes`, `rowsep.packing.bounds.delsarte`) are not
    among them: a cloud need not lie on a sphere, and a bound on the largest cosine alone says
    nothing of the diameter. They enter through `lifted_bound` only.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    num_rows, dim = _check_counts(num_rows, dim)
    bounds = [
        Bound(
            closed_form_bound(num_rows, dim),
            "closed_form_bound",
            "the variance of the squared distances against the rank of the Gram matrix",
        ),
        Bound(
            volume_bound(num_rows, dim),
            "volume_bound",
            "disjoint balls about the points in a set of known diameter (isodiametric inequality)",
        ),
        Bound(
            lifted_bound(num_rows, dim),
            "lifted_bound",
            "Jung's ball lifted to a hemisphere of one more dimension, Levenshtein's bound there",
        ),
    ]
    if num_rows >= dim + 2:
        bounds.append(
            Bound(radon_bound(dim), "radon_bound", "any d+2 of the points are affinely dependent")
        )
    if dim == 2:
        bounds.append(
            Bound(planar_bound(num_rows), "planar_bound", "Oler's inequality on the convex hull")
        )
    least = min(bounds, key=lambda bound: bound.value)
    return least._replace(value=min(1.0, least.value * ROUNDED_UP))


def rho_upper_bound(num_rows: int, dim: int) -> float:
    """Return the value of `upper_bound`. Attained for V <= d+2 and for d = 1; 1.0 for V < 2.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    return upper_bound(num_rows, dim).value


def closed_form_bound(num_rows: int, dim: int) -> float:
    """Return `sqrt(1+k) - sqrt(k)` with `k = max(0, V-1-d)/(dV)`, a bound on `rho`.

    From the variance of the squared distances and the rank of the doubly centred Gram matrix.
    Attained for V <= d+1 (regular simplex, 1.0) and for V = d+2 with even d. Evaluated as
    `1/(sqrt(1+k) + sqrt(k))`, which does not cancel.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    num_rows, dim = _check_counts(num_rows, dim)
    kappa = max(0, num_rows - 1 - dim) / (dim * max(1, num_rows))
    return 1.0 / (math.sqrt(1.0 + kappa) + math.sqrt(kappa))


def volume_bound(num_rows: int, dim: int) -> float:
    """Return `min(1, 1/(V^(1/d) - 1))`, a bound on `rho`.

    V disjoint balls of radius `delta/2` lie in a set of diameter `D + delta`, whose volume is at
    most that of a ball of this diameter (isodiametric inequality). Says something for V > 2^d;
    attained for d = 1, where it is `1/(V-1)`.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    num_rows, dim = _check_counts(num_rows, dim)
    if num_rows < 2:
        return 1.0
    if dim == 1:
        return 1.0 / (num_rows - 1)
    return 1.0 / max(1.0, math.expm1(math.log(num_rows) / dim))


def radon_bound(dim: int) -> float:
    """Return the largest `rho` of d+2 points of R^d, which bounds it for more points too.

    `1/rho = sqrt(1 + 2/d)` for even d and `sqrt(1 + 2(d+2)/(d(d+2) - 1))` for odd d: two regular
    simplices of one edge about one centre in orthogonal subspaces. Schuette, Minimale Durchmesser
    endlicher Punktmengen mit vorgeschriebenem Mindestabstand, Math. Ann. 150 (1963).

    Args:
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not an integer, or too small.
    """
    dim = checks.check_count(dim, "dim", 1)
    if dim % 2 == 0:
        return 1.0 / math.sqrt(1.0 + 2.0 / dim)
    return 1.0 / math.sqrt(1.0 + 2.0 * (dim + 2) / (dim * (dim + 2) - 1))


def planar_bound(num_rows: int) -> float:
    """Return the bound on `rho` in the plane: the positive root of Oler's inequality, at most 1.

    A convex set of area F and perimeter L holds at most `2F/sqrt(3) + L/2 + 1` points at distances
    of 1 or more (Oler, An inequality in the geometry of numbers, Acta Math. 105, 1961). With
    diameter `x = 1/rho` it has `F <= pi x^2/4` and `L <= pi x`, so
    `V <= pi/(2 sqrt 3) x^2 + pi/2 x + 1`.

    Args:
        num_rows: V, at least 0.

    Raises:
        TypeError, ValueError: not an integer, or negative.
    """
    num_rows = checks.check_count(num_rows, "num_rows", 0)
    others = max(1, num_rows - 1)
    a, b = math.pi / math.sqrt(12.0), math.pi / 2.0
    return min(1.0, (b + math.sqrt(b * b + 4.0 * a * others)) / (2.0 * others))


def lifted_bound(num_rows: int, dim: int) -> float:
    """Return `sqrt(d/(d+1) (1 - s))`, s Levenshtein's least cosine of V points on the sphere S^d.

    Points of diameter 1 lie in a ball of radius `J = sqrt(d/(2(d+1)))` (Jung). Lifting `x` to
    `(x, sqrt(J^2 - ||x||^2))` shortens no distance and puts them on a sphere in R^(d+1), where two
    of V points have a cosine of at least s, hence a distance of at most `J sqrt(2(1-s))`.
    At most 1; less than `closed_form_bound` for V far above d^2.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    num_rows, dim = _check_counts(num_rows, dim)
    if num_rows <= dim + 1:
        return 1.0
    cosine = levenshtein_cosine(num_rows, dim + 1)
    return min(1.0, jung_radius(dim) * math.sqrt(2.0 * (1.0 - cosine)))


def _check_counts(num_rows: int, dim: int) -> tuple[int, int]:
    return checks.check_count(num_rows, "num_rows", 0), checks.check_count(dim, "dim", 1)
