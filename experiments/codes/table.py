"""The table of docs/results/codes.md: `best_code` against the bound, for head sizes in use.

    python -m experiments.codes.table

Writes best_code.csv: for each d a few V, and the least rho/bound over all V from d+1 to d^2/2.
`rho` falls in steps and the bound falls with V, so the least ratio stands at the first V of a step.
All figures are guarantees of the families; nothing is random.
"""

import csv
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.progress import track

from rowsep.packing.codes.best import best_code

RESULTS = Path(__file__).parent / "best_code.csv"
DIMENSIONS = (
    (64, 100, 128, 256, 576, 768, 896, 1024, 1152, 1536, 2048)
    + (2304, 2560, 2880, 3072, 3584, 4096, 5120, 7168, 8192)
)  # fmt: skip
FIELDS = ("dim", "rows", "what", "rho", "bound", "ratio", "evidence", "origin")


def main(results: Path = RESULTS) -> None:
    """Compute all rows and write them."""
    with results.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for dim in track(DIMENSIONS, description="dimensions"):
            counts = {dim + 2, dim + 32, 2 * dim, 8192, 50257, 131072, 262144, dim * dim // 2}
            for rows in sorted(v for v in counts if v > dim):
                writer.writerow(figures(rows, dim, "size"))
            worst = min(steps(dim), key=lambda v: best_code(v, dim).rho / best_code(v, dim).bound)
            writer.writerow(figures(worst, dim, "least ratio up to d^2/2"))


def steps(dim: int) -> Iterator[int]:
    """Yield the numbers of rows from d+1 to d^2/2 at which `rho` falls, and the first."""
    rows, last = dim + 1, max(dim + 1, dim * dim // 2)
    while rows <= last:
        yield rows
        rho = best_code(rows, dim).rho
        span = range(rows + 1, last + 1)
        rows += 1 + bisect_left(span, True, key=lambda v: best_code(v, dim).rho < rho)


def figures(rows: int, dim: int, what: str) -> tuple:
    """One row of the table."""
    code = best_code(rows, dim)
    numbers = (f"{x:.6f}" for x in (code.rho, code.bound, code.rho / code.bound))
    return (dim, rows, what, *numbers, code.evidence, code.origin)


if __name__ == "__main__":
    typer.run(main)
