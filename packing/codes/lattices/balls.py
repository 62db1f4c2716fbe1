"""The points of a dense lattice in a ball: for crowds in few dimensions, where no sphere has room.

In the plane the hexagonal lattice. From three dimensions on construction B (J. H. Conway and
N. J. A. Sloane, Sphere Packings, Lattices and Groups, 3rd ed., chapter 5, section 3): the integer
vectors whose odd places are a word of a binary code and whose sum is divisible by 4. With a code of
least weight 8 and even weights that is a lattice of least distance sqrt 8. The code is the Golay
code beyond 16 dimensions and the first-order Reed-Muller code below, shortened to the words that
vanish on the places left out: D_n for n < 8, E8, the Barnes-Wall lattice for n = 16, and for n = 24
half of the density of the Leech lattice.

With the V points nearest to a centre, the farthest of them at R, and the least distance l,

    rho >= l / (2 R).

Centres are 0, (2, 0, .., 0) and (1, .., 1, 0, .., 0) with k ones, in the plane a point and the
midpoint of two. How many points lie within R comes from theta series: of the vectors with given odd
places, if any, half have a sum divisible by 4, as the sign of an odd entry decides.
"""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ... import checks
from ..binary.golay import BITS, LENGTH, words
from ..code import Held

MOST_ROWS = 1 << 18
"""They are held in memory."""
MOST_DIMENSIONS = LENGTH
TWO = -1
"""In place of k: the centre (2, 0, .., 0)."""
NAMES = {2: "the hexagonal lattice", 8: "the lattice E8", 16: "the Barnes-Wall lattice in R^16"}


class LatticeBall(Held):
    """The V points of a lattice in R^n nearest to the best centre, nearest first; norms up to 1."""

    def __init__(self, num_rows: int, dim: int):
        """Find the best centre.

        Raises:
            TypeError, ValueError: not integers, V not from 2 to 2^18, or n not from 2 to 24.
        """
        num_rows = checks.check_count(num_rows, "num_rows", 2, MOST_ROWS)
        dim = checks.check_count(dim, "dim", 2, MOST_DIMENSIONS)
        self._squared, self._centre = min((_reach(num_rows, dim, k), k) for k in _centres(dim))
        rho = math.sqrt((4 if dim == 2 else 8) / self._squared) / 2
        name = NAMES.get(dim, f"the lattice D_{dim}" if dim < 8 else f"construction B in R^{dim}")
        at = {TWO: "(2, 0, ..)", 0: "0"}.get(self._centre, f"ones at {self._centre} places")
        if dim == 2:
            at = ("one of them", "the midpoint of two")[self._centre]
        super().__init__(num_rows, dim, rho, "proved", f"points of {name} nearest to {at}")

    def _build(self) -> Tensor:
        if self.dim == 2:
            points = _hexagonal(self._centre, self._squared)
        else:
            cosets = zip(*_cosets(self.dim, self._centre), strict=True)
            points = np.concatenate([_points(odd, parity, self._squared) for odd, parity in cosets])
        norms = (points.astype(np.float64) ** 2).sum(axis=1).round(6)
        order = np.lexsort((*points.T, norms))[: self.num_rows]
        return torch.from_numpy(points[order] / math.sqrt(self._squared))


def _centres(dim: int) -> range:
    return range(2) if dim == 2 else range(TWO, dim + 1)


def _reach(num_rows: int, dim: int, centre: int) -> int:
    """The squared distance of the V-th point from the centre."""
    return int(np.searchsorted(_within(dim, centre), num_rows))


@cache
def _within(dim: int, centre: int) -> np.ndarray:
    """How many points lie within each squared distance, until they are `MOST_ROWS`."""
    limit = 16
    while True:
        if dim == 2:
            norms = (_hexagonal(centre, limit) ** 2).sum(axis=1).round().astype(np.int64)
            counts = np.bincount(norms, minlength=limit + 1)
        else:
            odd, parity = _cosets(dim, centre)
            weights = np.bincount(odd.sum(axis=1))
            counts = sum(n * _theta(dim, w, limit) / 2 for w, n in enumerate(weights) if w and n)
            for k in np.flatnonzero(~odd.any(axis=1)):
                all_even = np.arange(limit + 1) % 8 == 4 * parity[k]
                counts = counts + np.where(all_even, _theta(dim, 0, limit), 0.0)
        within = np.cumsum(counts)
        if within[-1] >= MOST_ROWS:
            return within
        limit *= 2


@cache
def _code(dim: int) -> np.ndarray:
    """The words of the code, shape (count, n), bool."""
    if dim > 16:
        return words()[: 2 ** (dim - BITS), LENGTH - dim :].astype(bool)
    places = np.arange(16)
    forms = np.array([np.bitwise_count(places & a) % 2 == 1 for a in range(16)])
    all_words = np.concatenate([forms, ~forms])
    return all_words[~all_words[:, dim:].any(axis=1), :dim]


def _cosets(dim: int, centre: int) -> tuple[np.ndarray, np.ndarray]:
    """The points less the centre by their odd places: those, (count, n), and a parity, (count,).

    The parity is that of the sum of the entries, each halved and rounded down: a sum of the points
    divisible by 4 makes it what it is.
    """
    ones = np.arange(dim) < centre
    odd = _code(dim) ^ ones
    return odd, ((ones.sum() + odd.sum(axis=1)) // 2 + (centre == TWO)) % 2


@cache
def _theta(dim: int, weight: int, limit: int) -> np.ndarray:
    """Number of integer vectors with `weight` given places odd by squared norm, up to `limit`."""
    series = np.zeros(limit + 1)
    series[0] = 1.0
    for k in range(dim):
        grown = np.zeros_like(series)
        for square in _roots(limit, k < weight) ** 2:
            grown[square:] += series[: limit + 1 - square]
        series = grown
    return series


def _points(odd: np.ndarray, parity: int, limit: int) -> np.ndarray:
    """The points of one of the cosets of squared norm up to `limit`, shape (count, n), int64."""
    made, norms = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64)
    to_come = odd.sum() - odd.cumsum()
    for one, least in zip(odd, to_come, strict=True):
        roots = _roots(limit, bool(one))
        grown = norms[:, None] + roots**2
        i, j = np.nonzero(grown <= limit - least)
        made, norms = np.column_stack([made[i], roots[j]]), grown[i, j]
    return made[(made // 2).sum(axis=1) % 2 == parity]


@cache
def _roots(limit: int, odd: bool) -> np.ndarray:
    """Even, or odd, integers of square at most `limit`."""
    most = math.isqrt(limit)
    roots = np.arange(-most, most + 1)
    return roots[roots % 2 == odd]


def _hexagonal(centre: int, limit: int) -> np.ndarray:
    """Points of least distance 2 about one of them or a midpoint, shape (count, 2), float64."""
    reach = math.isqrt(4 * limit // 3) + 1  # a^2 + a b + b^2 >= 3 a^2 / 4
    a, b = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    a, b = a.ravel(), b.ravel()
    kept = (a % 2 == centre) & (b % 2 == 0) & (a * a + a * b + b * b <= limit)
    a, b = a[kept], b[kept]
    return np.column_stack([a + b / 2, b * math.sqrt(3) / 2])
