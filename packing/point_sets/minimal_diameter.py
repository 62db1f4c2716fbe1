"""Few points of least diameter at a given separation: many starts, then thirty digits."""

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from .. import checks
from ..exact.floors import Problem
from ..exact.search import Found
from .configuration import Configuration
from .multistart import refined, searched


def minimal_diameter(
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
) -> Configuration:
    """Find n points of R^d with the least known ratio of largest to smallest distance.

        minimise  max_{i<j} ||x_i - x_j||^2 / min_{i<j} ||x_i - x_j||^2

    The problem is not convex. Every start ends at a local optimum; the best of them is solved to
    thirty digits and comes as rationals whose ratio is exact, with the conditions of optimality it
    meets and the number of starts that agree. It is proved the best there is only where
    `Configuration.optimal` says so.

    Args:
        num_points: n, at least 2; n d at most 512.
        dim: d, at least 1.
        starts: how many, rounded up to batches of 64. A start is random (normal, in the ball, on
            the sphere), a piece of a lattice, or symmetric; docs/explanation/point_sets.md.
        seed: start k of a seed is always the same.
        processes: how many work at once; the result does not depend on it. With more than one, a
            script must guard its start by `if __name__ == "__main__":`, as the processes import it.
        time_limit: seconds after which no further batch is awaited.
        given: clouds of n-1, n or n+1 points of R^d, shape (., d); every second start then
            perturbs one of them.
        log: file of searches, made if it does not exist: the search goes on from it, and it is
            brought up to date after each batch.
        on_batch: called with what is known after each batch.

    Returns:
        The best configuration; Ctrl-C ends the search and returns the best so far.

    Raises:
        TypeError, ValueError: an argument is not as above.
        InputError: `log` is a file of another kind, or cannot be read.
        KeyboardInterrupt: Ctrl-C before the first batch was done.
    """
    checks.check_count(num_points, "num_points", 2)
    checks.check_count(dim, "dim", 1)
    checks.check_small(num_points, dim)
    problem = Problem(num_points, dim)
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
    return configuration(found, problem)


def configuration(found: Found, problem: Problem) -> Configuration:
    """Return the best cloud of a search to thirty digits, with what can be said of it.

    Raises:
        RuntimeError: no start converged.
    """
    coordinates, optimality = refined(found, problem)
    return Configuration(
        coordinates, optimality, found.starts, found.basins[0].starts, found.summary()
    )
