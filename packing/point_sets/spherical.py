"""Spherical codes: few unit vectors whose largest cosine is least, from many random starts."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from .. import checks
from ..bounds.codes import levenshtein_cosine, rankin_cosine
from ..exact.kkt import DIGITS
from ..exact.optimality import DENOMINATOR, Optimality, Rationals
from ..exact.search import Found
from ..exact.sphere import Sphere
from ..extras import extra
from .multistart import refined, searched

with extra("exact"):
    import mpmath

MEETS = 1e-11
"""A largest cosine this little above the bound, itself good to 1e-12, meets it."""


@dataclass(frozen=True, repr=False)
class SphericalCode:
    """n unit vectors of R^d, a local optimum of the largest cosine `max_{i<j} <x_i, x_j>`."""

    coordinates: Rationals
    """The vectors times 10^30, rounded."""
    optimality: Optimality
    """Which pairs are nearest and with which multipliers, and how well the conditions hold."""
    starts: int
    """Starts of the search that found them."""
    agreeing: int
    """Starts that ended at their largest cosine c, to one part in 10^9 of 1 - c."""
    stop: str
    """Why the search stopped, in words."""

    @property
    def num_points(self) -> int:
        """The number n of vectors."""
        return len(self.coordinates)

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.coordinates[0])

    @property
    def rows(self) -> Tensor:
        """The vectors, shape (n, d), float64, of norm 1 up to rounding."""
        scaled = [[c / DENOMINATOR for c in vector] for vector in self.coordinates]
        return torch.tensor(scaled, dtype=torch.float64)

    @cached_property
    def max_cosine(self) -> float:
        """The largest cosine, from the coordinates with 60 digits and rounded once."""
        with mpmath.workdps(DIGITS):
            norms = [mpmath.sqrt(sum(c * c for c in vector)) for vector in self.coordinates]
            pairs = itertools.combinations(zip(self.coordinates, norms, strict=True), 2)
            cosines = (sum(map(int.__mul__, a, b)) / (p * q) for (a, p), (b, q) in pairs)
            return float(max(cosines))

    @property
    def angle(self) -> float:
        """The least angle, in radians."""
        return math.acos(min(1.0, max(-1.0, self.max_cosine)))

    @property
    def bound(self) -> float:
        """No n unit vectors of R^d have a smaller largest cosine (Rankin, Levenshtein)."""
        size = self.num_points, self.dim
        return max(rankin_cosine(*size), levenshtein_cosine(*size))

    def __repr__(self) -> str:
        """Return size and figures; the coordinates would fill pages."""
        return (
            f"<{self.num_points} unit vectors of R^{self.dim}, largest cosine "
            f"{self.max_cosine:.12f}, at least {self.bound:.12f} for any>"
        )

    @property
    def optimal(self) -> bool:
        """Whether the largest cosine meets the bound to 1e-11, which proves it the least."""
        return self.max_cosine <= self.bound + MEETS


def spherical_code(
    num_points: int,
    dim: int,
    *,
    starts: int = 256,
    seed: int = 0,
    processes: int = 1,
    time_limit: float | None = None,
    given: Sequence[Tensor] = (),
    log: Path | str | None = None,
    on_batch: Callable[[Found], None] | None = None,
) -> SphericalCode:
    """Find n unit vectors of R^d with the least known largest cosine.

        minimise  max_{i<j} <x_i, x_j>   subject to  ||x_i|| = 1

    The problem is not convex: every start ends at a local optimum, and the best of them is solved
    to thirty digits where the conditions of first order determine it. That no other vectors do
    better is proved only where `SphericalCode.optimal` says so. For large n use the explicit codes
    of `rowsep.packing.codes`.

    Args:
        num_points: n, at least 2; n d at most 512.
        dim: d, at least 2.
        starts: how many, rounded up to batches of 64. A start is a normal cloud or one of orbits
            of a rotation, projected to the sphere.
        seed: start k of a seed is always the same.
        processes: how many work at once; the result does not depend on it. With more than one, a
            script must guard its start by `if __name__ == "__main__":`, as the processes import it.
        time_limit: seconds after which no further batch is awaited.
        given: clouds of n-1, n or n+1 points of R^d, shape (., d); every second start then
            perturbs one of them and projects it to the sphere.
        log: file of searches, made if it does not exist: the search goes on from it, and it is
            brought up to date after each batch.
        on_batch: called with what is known after each batch; its `ratio_squared` is
            `2/(1 - largest cosine)`.

    Returns:
        The best code; Ctrl-C ends the search and returns the best so far.

    Raises:
        TypeError, ValueError: an argument is not as above.
        InputError: `log` is a file of another kind, or cannot be read.
        RuntimeError: no start converged.
        KeyboardInterrupt: Ctrl-C before the first batch was done.
    """
    checks.check_count(num_points, "num_points", 2)
    checks.check_count(dim, "dim", 2)
    checks.check_small(num_points, dim, "rowsep.packing.codes.best_code")
    problem = Sphere(num_points, dim)
    found = searched(
        problem,
        starts=starts,
        seed=seed,
        processes=processes,
        time_limit=time_limit,
        given=given,
        log=log,
        on_batch=on_batch,
    )
    return code(found, problem)


def code(found: Found, problem: Sphere) -> SphericalCode:
    """Return the best vectors of a search to thirty digits, with what can be said of them.

    Raises:
        RuntimeError: no start converged.
    """
    coordinates, optimality = refined(found, problem)
    return SphericalCode(
        coordinates, optimality, found.starts, found.basins[0].starts, found.summary()
    )
