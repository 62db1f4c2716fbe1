"""Searches over starts behind the front doors: arguments checked, clouds scaled, the log kept."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from .. import checks
from ..exact.log import Key, SearchLog, digest
from ..exact.optimality import Optimality, Rationals, refine
from ..exact.problem import PointProblem
from ..exact.search import Found, search
from ..rows import magnitude, times_power_of_two


def searched(
    problem: PointProblem,
    *,
    starts: int,
    seed: int,
    processes: int,
    time_limit: float | None,
    given: Sequence[Tensor],
    log: Path | str | None,
    on_batch: Callable[[Found], None] | None,
) -> Found:
    """Search a problem of a size that has been checked; arguments as of `minimal_diameter`.

    Raises:
        TypeError, ValueError: an argument is not as there.
        InputError: `log` is a file of another kind, or cannot be read.
        KeyboardInterrupt: Ctrl-C before the first batch was done.
    """
    _check(problem, starts, seed, processes, time_limit, given)
    if on_batch is not None and not callable(on_batch):
        raise TypeError(f"on_batch is {on_batch!r}, expected a function of a Found")
    # at unit scale, as squares of what is far from it overflow or vanish
    clouds = [
        times_power_of_two(cloud.detach().double(), -magnitude(cloud)).cpu().numpy()
        for cloud in given
    ]
    kept = None if log is None else SearchLog(log)
    key = Key(problem.num_points, problem.dim, seed, digest(clouds), problem.name)
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
    return found


def refined(found: Found, problem: PointProblem) -> tuple[Rationals, Optimality]:
    """Return the best points of a search to thirty digits, and in what sense they are optimal.

    Raises:
        RuntimeError: no start converged.
    """
    if found.points is None:
        raise RuntimeError(
            f"none of {found.starts} starts converged for {problem.num_points} points in "
            f"R^{problem.dim}: give more starts or another seed"
        )
    return refine(found.points, problem)


def _check(
    problem: PointProblem,
    starts: int,
    seed: int,
    processes: int,
    time_limit: float | None,
    given: Sequence[Tensor],
) -> None:
    checks.check_count(starts, "starts", 1)
    checks.check_count(seed, "seed", 0)
    checks.check_count(processes, "processes", 1)
    if time_limit is not None:
        checks.check_size(time_limit, "time_limit")
    num_points, dim = problem.num_points, problem.dim
    for index, cloud in enumerate(given):
        checks.check_cloud(cloud, f"given[{index}]")
        if cloud.shape[1] != dim or abs(len(cloud) - num_points) > 1:
            raise ValueError(
                f"given[{index}] has shape {tuple(cloud.shape)}, expected {num_points - 1} to "
                f"{num_points + 1} points in {dim} dimensions"
            )
        if len(torch.unique(cloud, dim=0)) < len(cloud):
            raise ValueError(f"given[{index}] has equal points; move them apart")
