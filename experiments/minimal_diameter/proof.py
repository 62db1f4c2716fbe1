"""Proof by branch and bound that the best planar configurations of few points are globally best.

    python -m experiments.minimal_diameter.proof [--points 3 --points 4 ...] [--hours 1]

Appends a row for each number of points to `proof.csv`: the squared ratio reached, the lower bound
proved (in floating-point arithmetic, to SCIP's tolerances), and what it took. Rows already there
are kept; remove the file to prove afresh. Needs the extra `proof`.
"""

import csv
import datetime
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from packing.report import rowsep_version
from packing.solvers.global_search import minimal_diameter, scip_version

RESULTS = Path(__file__).parent / "proof.csv"
FIELDS = (
    "points",
    "dim",
    "ratio_squared",
    "lower",
    "gap",
    "nodes",
    "status",
    "seconds",
    "rowsep",
    "scip",
    "python",
    "date",
    "command",
)


def main(
    points: Annotated[list[int], typer.Option()] = [3, 4, 5, 6],  # noqa: B006
    dim: int = 2,
    gap: float = 1e-6,
    hours: float = 1.0,
    results: Path = RESULTS,
) -> None:
    """Prove every case that the results do not have."""
    done = set()
    if results.exists():
        with results.open() as file:
            done = {(int(row["points"]), int(row["dim"])) for row in csv.DictReader(file)}
    for number in track([n for n in points if (n, dim) not in done], description="proving"):
        began = time.monotonic()
        found = minimal_diameter(number, dim, gap=gap, time_limit=3600 * hours)
        row: dict[str, object] = {
            "points": number,
            "dim": dim,
            "ratio_squared": found.ratio_squared,
            "lower": found.lower,
            "gap": found.gap,
            "nodes": found.nodes,
            "status": found.status,
            "seconds": round(time.monotonic() - began, 1),
            "rowsep": rowsep_version(),
            "scip": f"pyscipopt {version('pyscipopt')} with SCIP {scip_version()}",
            "python": platform.python_version(),
            "date": datetime.date.today().isoformat(),
            "command": "python -m experiments.minimal_diameter.proof " + " ".join(sys.argv[1:]),
        }
        fresh = not results.exists()
        with results.open("a", newline="") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(FIELDS)
            writer.writerow(row[name] for name in FIELDS)


if __name__ == "__main__":
    typer.run(main)
