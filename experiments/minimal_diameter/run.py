"""Find the table of least diameters from scratch: no stored configuration is used.

    python -m experiments.minimal_diameter.run [--processes 2] [--hours 1] [--only 2 --only 3]
    python -m experiments.minimal_diameter.run --neighbours

The plan is worked through in rounds that double the starts of every case, so an early stop leaves
all cases searched alike. Each batch is written to `results.jsonl` when it is done; a run that was
stopped goes on where it was, with the same result as one that was not. Raise `--rounds` to search
longer. `--neighbours` then perturbs what these searches found, also with a point more or fewer; its
starts are not random and are logged apart, by a digest of the clouds they begin at.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rowsep.packing.exact.floors import Problem
from rowsep.packing.exact.log import Key, SearchLog, digest
from rowsep.packing.exact.search import BATCH, Found, search
from rowsep.packing.exact.starts import Cloud

RESULTS = Path(__file__).parent / "results.jsonl"


class Case(NamedTuple):
    """A problem and the batches of its first round."""

    dim: int
    num_points: int
    batches: int


PLAN = (
    *(Case(2, n, 1) for n in range(2, 15)),
    *(Case(2, n, 64 if n == 18 else 4) for n in range(15, 21)),
    *(Case(3, n, 1) for n in range(4, 14)),
    Case(3, 14, 2),
    *(Case(d, d + 2, 1) for d in range(4, 13)),
    *(Case(2, n, 8) for n in range(21, 31)),
    *(Case(3, n, 4) for n in range(15, 21)),
    *(Case(d, n, 1) for n in range(7, 33) for d in range(4, 9) if n > d + 2),
)
"""What is searched, in this order."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Each doubles the starts.")] = 4,
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="Perturb what was found, with n-1 and n+1 points.")
    ] = False,
    only: Annotated[list[int] | None, typer.Option(help="Dimensions; all by default.")] = None,
    most: Annotated[int, typer.Option(help="No case with more points than this.")] = 32,
    seed: int = 0,
    processes: int = 1,
    hours: Annotated[float | None, typer.Option(help="No new case after this time.")] = None,
    results: Path = RESULTS,
) -> None:
    """Work through the plan; Ctrl-C keeps what is done."""
    log = SearchLog(results)
    deadline = None if hours is None else time.monotonic() + 3600.0 * hours
    plan = [case for case in PLAN if (not only or case.dim in only) and case.num_points <= most]
    tasks = [(case, BATCH * case.batches * 2**k) for k in range(rounds) for case in plan]
    if neighbours:  # from the most points down, as taking one away never widens a cloud
        tasks = [(case, 2 * BATCH) for case in sorted(plan, reverse=True)]
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as bar:
        whole = bar.add_task("cases", total=len(tasks))
        for case, starts in tasks:
            if deadline is not None and time.monotonic() >= deadline:
                break
            bar.update(whole, description=f"{case.num_points} points in R^{case.dim}")
            given = around(log, case) if neighbours else []
            key = Key(case.num_points, case.dim, seed, digest(given))
            if advance(log, key, given, starts, processes):
                break
            bar.advance(whole)


def around(log: SearchLog, case: Case) -> list[Cloud]:
    """Return the best clouds in the log of n-1, n and n+1 points."""
    best: dict[int, Found] = {}
    for key in log.lines:
        found = log.found(key)
        if key.dim == case.dim and abs(key.num_points - case.num_points) <= 1 and found.basins:
            known = best.get(key.num_points, found)
            better = found.basins[0].ratio_squared <= known.basins[0].ratio_squared
            best[key.num_points] = found if better else known
    return [one.points for _, one in sorted(best.items()) if one.points is not None]


def advance(log: SearchLog, key: Key, given: Sequence[Cloud], starts: int, processes: int) -> bool:
    """Bring a search to a number of starts, each batch into the log; tell if interrupted."""
    began = time.monotonic()

    def keep(found: Found) -> None:
        nonlocal began
        now = time.monotonic()
        log.write(key, found, now - began)
        began = now

    known = log.found(key)
    if known.starts >= starts:
        return False
    return search(
        Problem(key.num_points, key.dim),
        starts=starts,
        seed=key.seed,
        processes=processes,
        given=given,
        known=known,
        on_batch=keep,
    ).interrupted


if __name__ == "__main__":
    typer.run(main)
