"""Few points of least diameter at a given separation: many starts, then thirty digits."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from packing import checks
from packing.configuration import Configuration
from packing.rows import magnitude, times_power_of_two
from packing.solvers.exact.floors import Problem
from packing.solvers.exact.log import Key, SearchLog, digest
from packing.solvers.exact.optimality import refine
from packing.solvers.exact.search import Found, search

LARGEST = 512
"""Most coordinates, n d, of a problem: a Newton step takes their cube."""


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
            the sphere), a piece of a lattice, or symmetric; docs/minimal_diameter.md.
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
    _check(num_points, dim, starts, seed, processes, time_limit, given)
    if on_batch is not None and not callable(on_batch):
        raise TypeError(f"on_batch is {on_batch!r}, expected a function of a Found")
    problem = Problem(num_points, dim)
    # at unit scale, as squares of what is far from it overflow or vanish
    clouds = [
        times_power_of_two(cloud.detach().double(), -magnitude(cloud)).cpu().numpy()
        for cloud in given
    ]
    kept = None if log is None else SearchLog(log)
    key = Key(num_points, dim, seed, digest(clouds))
    began = time.monotonic()

    def note(found: Found) -> None:
        nonlocal began
        if kept is not None:
            now = time.monotonic()
            kept.write(key, found, now - began)
            began = now
        if on_batch is not None:
            on_batch(found)

    found = search(
        problem,
        starts=starts,
        seed=seed,
        processes=processes,
        time_limit=time_limit,
        given=clouds,
        known=None if kept is None else kept.found(key),
        on_batch=note,
    )
    if found.interrupted and found.points is None:
        raise KeyboardInterrupt
    return configuration(found, problem)


def configuration(found: Found, problem: Problem) -> Configuration:
    """Return the best cloud of a search to thirty digits, with what can be said of it.

    Raises:
        RuntimeError: no start converged.
    """
    if found.points is None:
        raise RuntimeError(
            f"none of {found.starts} starts converged for {problem.num_points} points in "
            f"R^{problem.dim}: give more starts or another seed"
        )
    coordinates, optimality = refine(found.points, problem)
    return Configuration(
        coordinates, optimality, found.starts, found.basins[0].starts, found.summary()
    )


def _check(
    num_points: int,
    dim: int,
    starts: int,
    seed: int,
    processes: int,
    time_limit: float | None,
    given: Sequence[Tensor],
) -> None:
    checks.check_count(num_points, "num_points", 2)
    checks.check_count(dim, "dim", 1)
    checks.check_count(starts, "starts", 1)
    checks.check_count(seed, "seed", 0)
    checks.check_count(processes, "processes", 1)
    if time_limit is not None:
        checks.check_size(time_limit, "time_limit")
    check_small(num_points, dim)
    for index, cloud in enumerate(given):
        checks.check_cloud(cloud, f"given[{index}]")
        if cloud.shape[1] != dim or abs(len(cloud) - num_points) > 1:
            raise ValueError(
                f"given[{index}] has shape {tuple(cloud.shape)}, expected {num_points - 1} to "
                f"{num_points + 1} points in {dim} dimensions"
            )
        if len(torch.unique(cloud, dim=0)) < len(cloud):
            raise ValueError(f"given[{index}] has equal points; move them apart")


def check_small(num_points: int, dim: int) -> None:
    """Refuse what is too large for Newton steps on all coordinates at once.

    Raises:
        ValueError: n d exceeds 512.
    """
    if num_points * dim > LARGEST:
        raise ValueError(
            f"{num_points} points in {dim} dimensions are {num_points * dim} coordinates, more "
            f"than the {LARGEST} that the exact solver takes; use packing.solve with the solver "
            f"'projected_gradient'"
        )
