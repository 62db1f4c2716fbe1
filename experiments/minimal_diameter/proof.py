"""Proof by branch and bound that the best planar configurations of few points are globally best.

    python -m experiments.minimal_diameter.proof [--points 3 --points 4 ...] [--hours 1]

Appends a row for each number of points to `proof.csv`: the squared ratio reached, the lower bound
proved (in floating-point arithmetic, to SCIP's tolerances), and what it took. Rows already there
are kept; remove the file to prove afresh. Needs the extra `proof`.
"""

import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from experiments.table import Table
from rowsep.packing.bounds.branch_and_bound import minimal_diameter, scip_version

RESULTS = Path(__file__).parent / "proof.csv"
KEY = ("points", "dim")
FIELDS = (
    *KEY,
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
    table = Table(results, KEY, FIELDS)
    left = table.left([(number, dim) for number in points])
    for number, _ in track(left, description="proving"):
        began = time.monotonic()
        found = minimal_diameter(number, dim, gap=gap, time_limit=3600 * hours)
        table.append(
            {
                "points": number,
                "dim": dim,
                "ratio_squared": found.ratio_squared,
                "lower": found.lower,
                "gap": found.gap,
                "nodes": found.nodes,
                "status": found.status,
                "seconds": round(time.monotonic() - began, 1),
                "scip": f"pyscipopt {version('pyscipopt')} with SCIP {scip_version()}",
                "command": "python -m experiments.minimal_diameter.proof " + " ".join(sys.argv[1:]),
            }
        )


if __name__ == "__main__":
    typer.run(main)
