"""The inverse questions: how few dimensions hold V rows at a given `rho`, and how many rows fit."""

import math
from collections.abc import Callable
from typing import NamedTuple

from .. import checks
from ..bounds import rho_upper_bound
from .best import best_code
from .code import Code

MOST_DIMENSIONS = 1 << 16
MOST_ROWS = 1 << 62


class LeastDimension(NamedTuple):
    """Between which dimensions the least one lies."""

    bound: int
    """No fewer dimensions hold the rows at this `rho`."""
    dim: int
    """Dimensions of `code`."""
    code: Code
    """V rows of at least this `rho`."""


class MostRows(NamedTuple):
    """Between which numbers of rows the greatest one lies."""

    bound: float
    """No more rows have this `rho`; `inf` if no bound below 2^62 is known."""
    num_rows: int
    """Rows of `code`."""
    code: Code
    """As many rows as a known construction has at this `rho`."""


def least_dimension(num_rows: int, rho: float) -> LeastDimension:
    """Return the fewest dimensions in which V rows of separation over diameter `rho` are known.

    V - 1 dimensions hold them at any `rho` (regular simplex). The bound is that of
    `rowsep.packing.bounds.rho_upper_bound`, the construction that of `best_code`; both grow with d,
    and are searched by bisection, up to twice the dimension found.

    Args:
        num_rows: V, at least 2.
        rho: above 0, at most 1.

    Raises:
        TypeError, ValueError: not as above.
    """
    num_rows = checks.check_count(num_rows, "num_rows", 2)
    rho = _check_rho(rho)
    most = num_rows - 1
    bound = _first(lambda d: rho_upper_bound(num_rows, d) >= rho, most)
    dim = _first(lambda d: best_code(num_rows, d).rho >= rho, most)
    return LeastDimension(bound, dim, best_code(num_rows, dim))


def most_rows(dim: int, rho: float) -> MostRows:
    """Return the most rows of R^d of separation over diameter `rho` that are known.

    The bound is that of `rowsep.packing.bounds.rho_upper_bound`, the construction that of
    `best_code`; both fall with V, and are searched by bisection. Of codes with more rows than 2^62
    no more than these are counted.

    Args:
        dim: d, from 1 to 2^16.
        rho: above 0, at most 1.

    Raises:
        TypeError, ValueError: not as above.
    """
    dim = checks.check_count(dim, "dim", 1, MOST_DIMENSIONS)
    rho = _check_rho(rho)
    over = _first(lambda v: rho_upper_bound(v, dim) < rho, MOST_ROWS)
    bound = math.inf if over == MOST_ROWS else over - 1
    num_rows = _first(lambda v: best_code(v + 1, dim).rho < rho, MOST_ROWS - 1)
    return MostRows(bound, num_rows, best_code(num_rows, dim))


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The least n from 1 to `most` with `holds(n)`, which stays true once it is; else `most`."""
    high = 1
    while high < most and not holds(high):
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check_rho(rho: float) -> float:
    number = checks.check_number(rho, "rho")
    if not 0 < number <= 1:
        raise ValueError(f"rho is {number}, expected a ratio above 0 and at most 1")
    return number
