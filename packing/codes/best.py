"""The best configuration of V points of R^d among all families, cut and padded."""

from collections.abc import Iterator
from itertools import count, islice

from .. import checks
from ..point_sets.records import found_ratios
from .binary.golay import Golay
from .binary.signs import Gold, Kerdock
from .code import Code, Part
from .complex.paley import Paley
from .complex.phases import Phases
from .fields import prime_powers
from .lattices.balls import MOST_DIMENSIONS, MOST_ROWS, LatticeBall
from .lattices.grid import Grid
from .lattices.minimal_vectors import MinimalVectors
from .polytopes.icosians import Icosians
from .polytopes.negatives import WithNegatives
from .polytopes.reed_solomon import ReedSolomon
from .polytopes.simplices import Midpoints, Simplices
from .polytopes.strongly_regular import named
from .recorded import Recorded


def best_code(num_rows: int, dim: int) -> Code:
    """Return the configuration of the largest `rho` with V rows in R^d among all families here.

    Every family is asked for its members with at least V rows in at most d dimensions, with and
    without their negatives; the best is cut to its first V rows and padded by zeros. Only figures
    are compared: rows are generated when asked for, V up to billions. `rho` is the guarantee of the
    family; that of V rows, measured by `Code.measured_rho`, may be larger. For a few thousand rows
    `polish` can raise it.

    Args:
        num_rows: V, at least 1.
        dim: d, at least 1.

    Returns:
        A code of exactly this size. It has its `rho`, the `bound` on it, and its `origin`.

    Raises:
        TypeError, ValueError: not integers, or below 1.
    """
    num_rows = checks.check_count(num_rows, "num_rows", 1)
    dim = checks.check_count(dim, "dim", 1)
    parts = (Part(code, num_rows, dim) for code in _candidates(num_rows, dim))
    found = max(parts, key=lambda part: part.rho)
    whole = found.code.num_rows == num_rows and found.code.dim == dim
    return found.code if whole else found


def _candidates(num_rows: int, dim: int) -> Iterator[Code]:
    """The promising members of each family, and those of half as many rows doubled."""
    yield from _members(num_rows, dim)
    yield from _lattice_balls(num_rows, dim)
    for code in _members((num_rows + 1) // 2, dim):
        if code.num_rows < num_rows and code.cosines is not None and code.coherence < 1:
            yield WithNegatives(code)


def _members(num_rows: int, dim: int) -> Iterator[Code]:
    if num_rows <= 2 * dim:
        yield Simplices(num_rows, dim)
    yield from _two_distance(num_rows, dim)
    yield from _searched(num_rows, dim)
    yield from _classics(num_rows, dim)
    yield from _paley(num_rows, dim)
    yield from _reed_solomon(num_rows, dim)
    yield from _signs(num_rows, dim)
    yield from _phases(num_rows, dim)
    yield Grid(num_rows, dim)


def _two_distance(num_rows: int, dim: int) -> Iterator[Code]:
    # with negatives, fewer dimensions can be better
    fitting = (n for n in range(4, dim + 1) if num_rows <= n * (n + 1) // 2)
    least = next(fitting, None)
    yield from map(Midpoints, {least, dim} if least else ())
    yield from (c for c in named() if c.num_rows >= num_rows and c.dim <= dim)


def _searched(num_rows: int, dim: int) -> Iterator[Code]:
    """The best record that has as many points."""
    fitting = [k for k in found_ratios() if k[0] <= dim and k[1] >= num_rows]
    for d, n in sorted(fitting, key=lambda k: found_ratios()[k])[:1]:
        yield Recorded(n, d)


def _classics(num_rows: int, dim: int) -> Iterator[Code]:
    """The shortest Golay code, the minimal vectors of a lattice, and the 600-cell."""
    lengths = (n for n in range(16, min(dim, MOST_DIMENSIONS) + 1) if 2 ** (n - 12) >= num_rows)
    yield from map(Golay, islice(lengths, 1))
    lattices = (MinimalVectors(d) for d in (8, 16, 24) if d <= dim)
    yield from islice((c for c in lattices if c.num_rows >= num_rows), 1)
    if num_rows <= 60 and dim >= 4:
        yield Icosians()


def _lattice_balls(num_rows: int, dim: int) -> Iterator[Code]:
    """In up to 24 dimensions; from 64 on other families are ahead at any V."""
    if 2 * dim < num_rows <= MOST_ROWS and dim < 64:
        yield from (LatticeBall(num_rows, n) for n in range(2, min(dim, 24) + 1))


def _paley(num_rows: int, dim: int) -> Iterator[Code]:
    """The largest: rho grows with the field."""
    fitting = [q for q in prime_powers(2 * dim + 1) if q % 4 == 1 and q >= num_rows]
    yield from map(Paley, fitting[-1:])


def _reed_solomon(num_rows: int, dim: int) -> Iterator[Code]:
    """Over each field the least k, and the greatest length that has room."""
    for q in prime_powers(dim + 1):
        size = next(k for k in count(2) if q**k >= num_rows)
        length = min(q + 1, dim // (q - 1))
        if length >= size:
            yield ReedSolomon(q, length, size)


def _signs(num_rows: int, dim: int) -> Iterator[Code]:
    """In each power of 2 the least degree."""
    for n in range(2, dim.bit_length()):
        d = 2**n
        if n % 2 == 0:
            members = (Kerdock(d, r) for r in range(n // 2))
        else:
            members = (Gold(d, t) for t in range(2, (n + 3) // 2))
        yield from islice((c for c in members if c.num_rows >= num_rows), 1)


def _phases(num_rows: int, dim: int) -> Iterator[Code]:
    """The fields nearest to d/2 on both sides, each with the least degree."""
    half = dim // 2
    fields = {q: p for q, p in prime_powers(2 * half).items() if p > 2}
    below, above = [q for q in fields if q <= half], [q for q in fields if q > half]
    for q in (*below[-1:], *above[:1]):
        basis = 2 * q if q <= half else 0
        degree = next(r for r in count(2) if 2 * q**r + basis >= num_rows)
        if fields[q] > degree and (degree - 1) * q**0.5 + max(0, q - half) < min(q, half):
            yield Phases(q, degree, min(q, half))
