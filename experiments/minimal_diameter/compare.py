"""How far the solvers for large clouds stay behind the exact one, on the same small momenta.

    python -m experiments.minimal_diameter.compare

Momenta have normal rows with norms spread over a decade. Floors are on the alignment; -1 is no
floor, and then the best is a cloud of least diameter. Rows already in `compare.csv` are kept.
"""

import csv
import datetime
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track
from torch import Tensor

from packing import solve

RESULTS = Path(__file__).parent / "compare.csv"
SIZES = ((8, 2), (16, 2), (12, 3), (16, 4))
FLOORS = (-1.0, 0.7, 0.8, 0.85)
HEURISTICS = ("projected_gradient", "smoothed")
PASSES = (24, 200)
FIELDS: tuple[str, ...] = (
    "rows", "dim", "floor", "solver", "passes", "starts", "agreeing", "seed",
    "rho", "alignment", "met", "residual", "isolated", "torch", "date",
)  # fmt: skip


def momentum(rows: int, dim: int, seed: int) -> Tensor:
    """Normal rows, norms spread over a decade."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    return A * 10.0 ** torch.rand(rows, 1, generator=generator, dtype=torch.float64)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of the results, none if there are no results."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main(
    starts: int = 128,
    seed: int = 0,
    results: Annotated[Path, typer.Option(help="CSV to append to.")] = RESULTS,
) -> None:
    """Solve every case by every solver and append its figures."""
    key = ("rows", "dim", "floor", "solver", "passes", "seed")
    done = {tuple(row[name] for name in key) for row in read(results)}
    cases = [
        (rows, dim, floor, solver, passes)
        for rows, dim in SIZES
        for floor in FLOORS
        for solver, passes in [("exact", ""), *((h, p) for h in HEURISTICS for p in PASSES)]
        if (str(rows), str(dim), str(floor), solver, str(passes), str(seed)) not in done
    ]
    for rows, dim, floor, solver, passes in track(cases, description="solving"):
        found = solve(
            momentum(rows, dim, seed),
            solver=solver,
            alignment=floor,
            passes=int(passes or 1),
            starts=starts,
            seed=seed,
        )
        told = found.optimality
        row = {
            "rows": rows,
            "dim": dim,
            "floor": floor,
            "solver": solver,
            "passes": passes,
            "starts": found.starts,
            "agreeing": found.agreeing,
            "seed": seed,
            "rho": f"{found.rho:.12f}",
            "alignment": f"{found.alignment:.6f}",
            "met": found.met,
            "residual": "" if told is None else f"{told.residual:.0e}",
            "isolated": "" if told is None else told.isolated,
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
        }
        fresh = not results.exists()
        with open(results, "a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    typer.run(main)
