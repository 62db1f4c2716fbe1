"""Where smoothing raises the `rho` of `best_code`: small sizes between simplex and Kerdock set.

    python -m experiments.codes.polish [SIZE ...]

A size is `VxD`, 83x64. Sizes already in the results are not run again.
"""

import csv
import datetime
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track

from packing.codes import best_code, polish

RESULTS = Path(__file__).parent / "polish.csv"
SIZES = ["19x12", "20x8", "20x16", "40x16", "100x16", "72x64", "83x64", "96x64", "128x64", "192x64"]
FIELDS = ("rows", "dim", "code", "polished", "bound", "origin", "torch", "date")


def main(
    sizes: Annotated[list[str], typer.Argument()] = SIZES,  # noqa: B006
    iterations: int = 200,
    results: Path = RESULTS,
) -> None:
    """Polish each size with seed 0 and append its figures."""
    done = set()
    if results.exists():
        with results.open(newline="") as file:
            done = {f"{row['rows']}x{row['dim']}" for row in csv.DictReader(file)}
    for size in track([s for s in sizes if s not in done], description="polishing"):
        rows, dim = map(int, size.split("x"))
        code = best_code(rows, dim)
        figures = (code.measured_rho(), polish(code, iterations).rho, code.bound)
        line = (rows, dim, *(f"{x:.6f}" for x in figures), code.origin)
        new = not results.exists()
        with results.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(FIELDS)
            writer.writerow((*line, torch.__version__, datetime.date.today().isoformat()))


if __name__ == "__main__":
    typer.run(main)
