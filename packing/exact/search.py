"""Multistart: batches of starts, in order, merged into what is known of the basins.

The work is cut into batches of fixed size whose outcome depends on the problem, the seed and the
number of the batch alone, so it can be spread over processes, stopped after any batch and taken up
again, with the same result.
"""

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import torch

from .problem import Ends, PointProblem
from .starts import KINDS, Cloud, draw, kind

BATCH = 64
SAME = 1e-9
"""Optima whose squared ratios agree to this part of themselves count as one basin."""
LISTED = 20
"""Basins kept, those of least squared ratio."""


@dataclass(frozen=True)
class Basin:
    """Starts that ended at one squared ratio."""

    ratio_squared: float
    starts: int


@dataclass(frozen=True)
class Found:
    """What a search knows after a number of batches."""

    starts: int = 0
    failed: int = 0
    """Starts that did not converge; they are in no basin."""
    basins: tuple[Basin, ...] = ()
    """By squared ratio, the least `LISTED` of them."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Starts of each kind in the first basin."""
    points: Cloud | None = None
    """The best cloud, shape (n, d), at diameter 1 or on the unit sphere."""
    interrupted: bool = False

    def summary(self) -> str:
        """Say how the search ended, in words."""
        agreeing = self.basins[0].starts if self.basins else 0
        said = f"{agreeing} of {self.starts} starts agree on the least ratio"
        if self.failed:
            said += f", {self.failed} did not converge"
        if self.interrupted:
            said += "; interrupted: this is the best so far"
        return said


def run_batch(problem: PointProblem, seed: int, number: int, given: Sequence[Cloud] = ()) -> Found:
    """Run the starts `number * BATCH` up to `(number + 1) * BATCH`."""
    first = number * BATCH
    indices = range(first, first + BATCH)
    size, kinds = (problem.num_points, problem.dim), problem.kinds
    drawn = [draw(*size, seed, k, given, kinds) for k in indices]
    ends = problem.ends([cloud for cloud, _ in drawn], [mu for _, mu in drawn])
    return _summed(ends, [kind(k, bool(given), kinds) for k in indices])


def search(
    problem: PointProblem,
    *,
    starts: int,
    seed: int,
    processes: int = 1,
    time_limit: float | None = None,
    given: Sequence[Cloud] = (),
    known: Found | None = None,
    on_batch: Callable[[Found], None] | None = None,
) -> Found:
    """Run starts, in batches, until there are as many as asked for.

    Args:
        problem: what to minimise.
        starts: how many, rounded up to full batches; those in `known` count.
        seed: of the starts.
        processes: how many work at once; the result does not depend on it.
        time_limit: seconds after which no further batch is awaited.
        given: clouds for perturbed starts.
        known: what an earlier call with the same problem, seed and `given` returned.
        on_batch: called with what is known after each batch.

    Returns:
        What is known, also after Ctrl-C, which ends the search: then `interrupted` is set.
    """
    found = replace(known, interrupted=False) if known else Found()
    numbers = range(found.starts // BATCH, -(-starts // BATCH))
    deadline = None if time_limit is None else time.monotonic() + time_limit
    results = _batches(problem, seed, numbers, given, processes)
    try:
        for batch in results:
            found = merged(found, batch)
            if on_batch is not None:
                on_batch(found)
            if deadline is not None and time.monotonic() >= deadline:
                break
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    finally:
        results.close()
    return found


def merged(one: Found, other: Found) -> Found:
    """Return what two searches over different starts know together."""
    if not one.basins or not other.basins:
        basins = one.basins or other.basins
    else:
        basins = _joined([*one.basins, *other.basins])
    best = one if _least(one) <= _least(other) else other
    level = _least(best) * (1.0 + SAME)
    kinds: dict[str, int] = {}
    for found in (one, other):
        if _least(found) <= level:
            for name, count in found.kinds.items():
                kinds[name] = kinds.get(name, 0) + count
    return Found(
        starts=one.starts + other.starts,
        failed=one.failed + other.failed,
        basins=basins,
        kinds=kinds,
        points=best.points,
    )


def _least(found: Found) -> float:
    return found.basins[0].ratio_squared if found.basins else float("inf")


def _joined(basins: Sequence[Basin]) -> tuple[Basin, ...]:
    """Sort and join basins; one is named by its least value."""
    out: list[Basin] = []
    for basin in sorted(basins, key=lambda one: one.ratio_squared):
        if out and basin.ratio_squared <= out[-1].ratio_squared * (1.0 + SAME):
            out[-1] = replace(out[-1], starts=out[-1].starts + basin.starts)
        else:
            out.append(basin)
    return tuple(out[:LISTED])


def _summed(ends: Ends, kinds: Sequence[str]) -> Found:
    good = ends.converged.nonzero()[:, 0].tolist()
    failed = len(kinds) - len(good)
    if not good:
        return Found(starts=len(kinds), failed=failed)
    values = ends.ratio_squared.tolist()
    best = min(good, key=lambda k: values[k])
    level = values[best] * (1.0 + SAME)
    names = [kinds[k] for k in good if values[k] <= level]
    return Found(
        starts=len(kinds),
        failed=failed,
        basins=_joined([Basin(values[k], 1) for k in good]),
        kinds={name: names.count(name) for name in (*KINDS, "perturbed") if name in names},
        points=ends.points[best].numpy(),
    )


def _batches(
    problem: PointProblem, seed: int, numbers: range, given: Sequence[Cloud], processes: int
) -> Generator[Found]:
    """Yield the batches in order."""
    if processes == 1:
        for number in numbers:
            yield run_batch(problem, seed, number, given)
        return
    pool = ProcessPoolExecutor(
        processes, mp_context=multiprocessing.get_context("spawn"), initializer=_quiet_worker
    )
    waiting: deque[Future[Found]] = deque()
    try:
        for number in numbers:
            waiting.append(pool.submit(run_batch, problem, seed, number, given))
            if len(waiting) > processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _quiet_worker() -> None:
    """One thread each, and Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
