"""Find the table of least diameters from scratch: no stored configuration is used.

    python -m experiments.minimal_diameter.run [--processes 2] [--hours 1] [--only 2 --only 3]

The plan is worked through in rounds that double the starts of every case, so an early stop leaves
all cases searched alike. Each batch is written to `results.jsonl` when it is done; a run that was
stopped goes on where it was, with the same result as one that was not. Raise `--rounds` to search
longer.
"""

import time
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from packing.solvers.exact.floors import Problem
from packing.solvers.exact.log import Key, SearchLog
from packing.solvers.exact.search import BATCH, Found, search

RESULTS = Path(__file__).parent / "results.jsonl"


class Case(NamedTuple):
    """A problem and the batches of its first round."""

    dim: int
    num_points: int
    batches: int


PLAN = (
    *(Case(2, n, 1) for n in range(3, 15)),
    *(Case(2, n, 64 if n == 18 else 4) for n in range(15, 21)),
    *(Case(3, n, 1) for n in range(4, 14)),
    Case(3, 14, 2),
    *(Case(d, d + 2, 1) for d in range(4, 13)),
    *(Case(2, n, 8) for n in range(21, 31)),
    *(Case(3, n, 4) for n in range(15, 21)),
    *(Case(d, n, 1) for d in range(4, 9) for n in range(d + 3, 33)),
)
"""What is searched, in this order."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Each doubles the starts.")] = 4,
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
    tasks = [
        (case, BATCH * case.batches * 2**k)
        for k in range(rounds)
        for case in PLAN
        if (not only or case.dim in only) and case.num_points <= most
    ]
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as bar:
        whole = bar.add_task("cases", total=len(tasks))
        for case, starts in tasks:
            if deadline is not None and time.monotonic() >= deadline:
                break
            bar.update(whole, description=f"{case.num_points} points in R^{case.dim}")
            key = Key(case.num_points, case.dim, seed)
            began = time.monotonic()

            def keep(found: Found, key: Key = key) -> None:
                nonlocal began
                now = time.monotonic()
                log.write(key, found, now - began)
                began = now

            known = log.found(key)
            if known.starts < starts:
                ended = search(
                    Problem(case.num_points, case.dim),
                    starts=starts,
                    seed=seed,
                    processes=processes,
                    known=known,
                    on_batch=keep,
                )
                if ended.interrupted:
                    break
            bar.advance(whole)


if __name__ == "__main__":
    typer.run(main)
