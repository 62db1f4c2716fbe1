"""Which published spherical codes an explicit family of `packing.codes` is, and how exactly.

    python -m experiments.spherical_codes.families

Writes families.csv: every entry of published.csv, the family, and the largest cosine of all pairs
of its rows in float64. Where a family keeps one row of each pair of opposite ones the published
code has both, so it is the largest absolute cosine.
"""

import csv
import datetime
import platform
from pathlib import Path

import torch
import typer
from rich.progress import track

from experiments.spherical_codes.published import published
from packing.codes.code import Code, Part
from packing.codes.signs import Kerdock
from packing.codes.simplices import Orthoplex, Simplices
from packing.codes.strongly_regular import named
from packing.report import rowsep_version

RESULTS = Path(__file__).parent / "families.csv"
BLOCK = 2048
COMMAND = "python -m experiments.spherical_codes.families"


def family(points: int, dim: int) -> Code | None:
    """Return the code of this size, half of it if it is its own negative, or None."""
    if points <= dim + 1:
        return Simplices(points, dim)
    if points <= 2 * dim:
        return Part(Orthoplex(dim), points, dim)
    power_of_4 = dim.bit_count() == 1 and dim.bit_length() % 2 == 1
    if power_of_4 and points == dim * (dim + 2):
        return Kerdock(dim)
    return next((c for c in named() if (c.num_rows, c.dim) == (points, dim)), None)


def largest_cosine(code: Code, points: int) -> float:
    """Return the largest cosine of two of the `points` vectors, the rows and their negatives."""
    rows = code.rows(dtype=torch.float64)
    largest = -1.0
    for first in range(0, len(rows), BLOCK):
        gram = rows[first : first + BLOCK] @ rows[first:].T
        gram.fill_diagonal_(-1.0 if points == len(rows) else 0.0)
        ends = gram if points == len(rows) else gram.abs_()
        largest = max(largest, float(ends.max()))
    return largest


def main(results: Path = RESULTS) -> None:
    """Measure every code and write the table."""
    with results.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("dim", "points", "published", "status", "family", "max_cosine", "difference")
            + ("rowsep", "torch", "python", "date", "command")
        )
        for one in track(published(), description="families"):
            code = family(one.points, one.dim)
            made: tuple[str, ...] = ("", "", "")
            if code is not None:
                found = largest_cosine(code, one.points)
                both = "" if code.num_rows == one.points else " and its negatives"
                made = (code.origin + both, f"{found:.15f}", f"{found - one.max_cosine:.1e}")
            writer.writerow(
                (one.dim, one.points, f"{one.max_cosine:.12f}", one.status, *made)
                + (rowsep_version(), torch.__version__, platform.python_version())
                + (datetime.date.today().isoformat(), COMMAND)
            )


if __name__ == "__main__":
    typer.run(main)
