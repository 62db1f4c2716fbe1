"""Turn the clouds that `run` found into the configurations that `rowsep.packing.point_sets.records`
ships.

    python -m experiments.minimal_diameter.records

Each is solved to thirty digits, checked as a certificate and written to
`packing/point_sets/records/found_d<dim>.json`, one line each. The counts of starts and of those
that agree are those of the random starts, of every seed in the log; where none agrees the cloud was
found by perturbing others (`run --neighbours`).
"""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from experiments.minimal_diameter.run import RESULTS
from rowsep.packing.bounds.certificate import check_certificate
from rowsep.packing.exact.floors import Problem
from rowsep.packing.exact.log import Key, SearchLog
from rowsep.packing.exact.search import SAME, Found, merged
from rowsep.packing.point_sets.minimal_diameter import configuration


def gathered(log: SearchLog) -> dict[tuple[int, int], Found]:
    """Return the best cloud of each (dim, number of points), with the counts of random starts."""
    best: dict[tuple[int, int], Found] = {}
    drawn: dict[tuple[int, int], Found] = {}
    for key in log.lines:
        case, found = (key.dim, key.num_points), log.found(key)
        best[case] = merged(best.get(case, Found()), found)
        if not key.given:
            drawn[case] = merged(drawn.get(case, Found()), found)
    return {case: _counted(found, drawn[case]) for case, found in sorted(best.items())}


def _counted(best: Found, drawn: Found) -> Found:
    """`best` with the starts of `drawn`, and how many of those are in its first basin."""
    first = best.basins[0]
    level = first.ratio_squared * (1.0 + SAME)
    count = sum(one.starts for one in drawn.basins if one.ratio_squared <= level)
    return replace(
        best, starts=drawn.starts, failed=drawn.failed, basins=(replace(first, starts=count),)
    )


def origin(log: SearchLog, dim: int, num_points: int) -> dict[str, object]:
    """Return seeds, versions and date of the searches of a case."""
    keys = [key for key in log.lines if (key.dim, key.num_points) == (dim, num_points)]
    last = max(keys, key=lambda key: log.lines[key]["date"])
    return {
        "seeds": sorted({key.seed for key in keys}),
        "versions": log.lines[last]["versions"],
        "date": log.lines[last]["date"],
    }


def main(
    results: Annotated[Path, typer.Option(help="The log of the searches.")] = RESULTS,
    folder: Annotated[Path | None, typer.Option(help="Where to write; the package's data.")] = None,
) -> None:
    """Write the records of every dimension in the log."""
    log = SearchLog(results)
    folder = folder or Path(str(files("rowsep.packing.point_sets.records")))
    lines: dict[int, list[str]] = {}
    unsolved: list[Key] = []
    for (dim, num_points), found in track(gathered(log).items(), description="refining"):
        made = configuration(found, Problem(num_points, dim))
        certificate = made.certificate() | origin(log, dim, num_points)
        check_certificate(certificate)
        assert made.optimality is not None
        if not made.optimality.solved:
            unsolved.append(Key(num_points, dim, 0))
        lines.setdefault(dim, []).append(json.dumps(certificate))
    for dim, entries in lines.items():
        text = "[\n" + ",\n".join(entries) + "\n]\n"
        (folder / f"found_d{dim}.json").write_text(text)
    for key in unsolved:
        print(f"{key.num_points} points in R^{key.dim}: conditions not met to 1e-30")


if __name__ == "__main__":
    typer.run(main)
