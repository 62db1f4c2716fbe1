"""Which published spherical codes an explicit family of `rowsep.packing.codes` is, and how exactly.

    python -m experiments.spherical_codes.families

Writes families.csv: every entry of published.csv, the family, and the largest cosine of its rows in
float64. Where a family keeps one row of each pair of opposite ones the published code has both, so
it is the largest absolute cosine. All pairs are looked at, but of more than 4096 rows only those of
256 random ones with every row; "measured" says which. (Kerdock sets are known by a theorem;
tests/packing/codes/test_kerdock.py has all pairs of bases up to 1024 dimensions.)
"""

import csv
import datetime
import platform
from pathlib import Path

import torch
import typer
from rich.progress import track

from experiments.spherical_codes.published import published
from rowsep.packing.cli.report import rowsep_version
from rowsep.packing.codes.binary.signs import Kerdock
from rowsep.packing.codes.code import Code, Part
from rowsep.packing.codes.lattices.minimal_vectors import NAMES, MinimalVectors
from rowsep.packing.codes.polytopes.icosians import Icosians
from rowsep.packing.codes.polytopes.simplices import Orthoplex, Simplices
from rowsep.packing.codes.polytopes.strongly_regular import named

RESULTS = Path(__file__).parent / "families.csv"
BLOCK = 4096
"""Rows at a time, and the most of which all pairs are looked at."""
SAMPLE = 256
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
    if dim in NAMES and points == 2 * MinimalVectors(dim).num_rows:
        return MinimalVectors(dim)
    if (points, dim) == (120, 4):
        return Icosians()
    return next((c for c in named() if (c.num_rows, c.dim) == (points, dim)), None)


def largest_cosine(code: Code, points: int) -> float:
    """Return the largest cosine of two of the `points` vectors, the rows and their negatives."""
    count, halved = code.num_rows, points == 2 * code.num_rows
    some = torch.arange(count)
    if count > BLOCK:
        generator = torch.Generator().manual_seed(0)
        some = torch.randint(count, (SAMPLE,), generator=generator)
    rows, largest = code.rows(some, dtype=torch.float64), -1.0
    for first in range(0, count, BLOCK):
        others = torch.arange(first, min(first + BLOCK, count))
        gram = rows @ code.rows(others, dtype=torch.float64).T
        gram[some[:, None] == others] = 0.0 if halved else -1.0
        largest = max(largest, float((gram.abs() if halved else gram).max()))
    return largest


def main(results: Path = RESULTS) -> None:
    """Measure every code and write the table."""
    versions = (rowsep_version(), torch.__version__, platform.python_version())
    run_by = (0, *versions, datetime.date.today().isoformat(), COMMAND)
    with results.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            (
                "dim",
                "points",
                "published",
                "status",
                "family",
                "measured",
                "max_cosine",
                "difference",
            )
            + ("seed", "rowsep", "torch", "python", "date", "command")
        )
        for one in track(published(), description="families"):
            code = family(one.points, one.dim)
            made: tuple[str, ...] = ("", "", "", "")
            if code is not None:
                found = largest_cosine(code, one.points)
                both = "" if code.num_rows == one.points else " and its negatives"
                pairs = "all pairs" if code.num_rows <= BLOCK else f"{SAMPLE} rows with all"
                difference = f"{found - one.max_cosine:.1e}"
                made = (code.origin + both, pairs, f"{found:.15f}", difference)
            value = f"{one.max_cosine:.12f}"
            writer.writerow((one.dim, one.points, value, one.status, *made, *run_by))


if __name__ == "__main__":
    typer.run(main)
