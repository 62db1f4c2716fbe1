"""Find the published spherical codes of dimension 8 and less, 64 points and fewer, from scratch.

    python -m experiments.spherical_codes.run [--processes 2] [--starts 128] [--most 4096]

Every code is sought from the same number of random starts; the starts of those that stay more than
1e-9 above the published largest cosine are then doubled, up to `--most`. No stored code is used.
`searches.jsonl` keeps what each batch found, so a run that was stopped goes on where it was, and
`codes.csv` the best code of each size with the conditions it meets.
"""

import csv
import datetime
import platform
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track

from experiments.spherical_codes.published import REACHED, Published, published
from rowsep.packing import SphericalCode, spherical_code
from rowsep.packing.cli.report import rowsep_version

FOLDER = Path(__file__).parent
DIM, POINTS = 8, 64
"""Most dimensions and points that are searched."""
COMMAND = "python -m experiments.spherical_codes.run"
Row = dict[str, str]
Results = dict[tuple[int, int], Row]


def main(
    starts: Annotated[int, typer.Option(min=1, help="Of every case, in batches of 64.")] = 128,
    most: Annotated[int, typer.Option(help="Up to which the starts of the rest are doubled.")] = (
        4096
    ),
    only: Annotated[list[int] | None, typer.Option(help="Dimensions; all by default.")] = None,
    points: Annotated[int, typer.Option(help="No case with more points than this.")] = POINTS,
    seed: int = 0,
    processes: int = 1,
    folder: Annotated[Path, typer.Option(help="Of the log and the results.")] = FOLDER,
) -> None:
    """Work through the cases; Ctrl-C keeps what is done."""
    cases = [
        one
        for one in published()
        if one.dim <= DIM and one.points <= points and (not only or one.dim in only)
    ]
    results = read(folder / "codes.csv")
    while starts <= most and cases:
        for case in track(cases, description=f"{starts} starts"):
            if int(results.get(case[:2], {}).get("starts", 0)) >= starts:
                continue
            found = spherical_code(
                case.points,
                case.dim,
                starts=starts,
                seed=seed,
                processes=processes,
                log=folder / "searches.jsonl",
            )
            results[case[:2]] = figures(found, case, seed)
            write(folder / "codes.csv", results)
        cases = [case for case in cases if float(results[case[:2]]["difference"]) > REACHED]
        starts *= 2
    for case in cases:
        print(f"{case.points} points in R^{case.dim}: the published code was not reached")


def figures(found: SphericalCode, case: Published, seed: int) -> Row:
    """Return one row of the results."""
    told = found.optimality
    return {
        "dim": str(found.dim),
        "points": str(found.num_points),
        "max_cosine": f"{found.max_cosine:.15f}",
        "published": f"{case.max_cosine:.12f}",
        "difference": f"{found.max_cosine - case.max_cosine:.1e}",
        "status": case.status,
        "bound": f"{found.bound:.9f}",
        "starts": str(found.starts),
        "agreeing": str(found.agreeing),
        "active": str(len(told.near)),
        "loose": str(len(told.rattlers)),
        "isolated": str(told.isolated),
        "residual": f"{told.residual:.1e}",
        "seed": str(seed),
        "rowsep": rowsep_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "command": COMMAND,
    }


def read(path: Path) -> Results:
    """Return the results so far."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(int(row["dim"]), int(row["points"])): row for row in csv.DictReader(file)}


def write(path: Path, results: Results) -> None:
    """Replace the results, sorted."""
    rows = [row for _, row in sorted(results.items())]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    typer.run(main)
