"""How far the solvers for large clouds stay behind the exact one, on the same small momenta.

    python -m experiments.minimal_diameter.compare

Momenta have normal rows with norms spread over a decade. Floors are on the alignment; -1 is no
floor, and then the best is a cloud of least diameter. Rows already in `compare.csv` are kept.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track
from torch import Tensor

from experiments.table import Table
from rowsep.packing import solve

RESULTS = Path(__file__).parent / "compare.csv"
SIZES = ((8, 2), (16, 2), (12, 3), (16, 4))
FLOORS = (-1.0, 0.7, 0.8, 0.85)
HEURISTICS = ("projected_gradient", "smoothed")
PASSES = (24, 200)
KEY = ("rows", "dim", "floor", "solver", "passes", "seed")
FIELDS: tuple[str, ...] = (
    "rows", "dim", "floor", "solver", "passes", "starts", "agreeing", "seed",
    "rho", "alignment", "met", "residual", "isolated", "torch", "date",
)  # fmt: skip


def momentum(rows: int, dim: int, seed: int) -> Tensor:
    """Normal rows, norms spread over a decade."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    return A * 10.0 ** torch.rand(rows, 1, generator=generator, dtype=torch.float64)


def main(
    starts: int = 128,
    seed: int = 0,
    results: Annotated[Path, typer.Option(help="CSV to append to.")] = RESULTS,
) -> None:
    """Solve every case by every solver and append its figures."""
    table = Table(results, KEY, FIELDS)
    cases = [
        (rows, dim, floor, solver, passes, seed)
        for rows, dim in SIZES
        for floor in FLOORS
        for solver, passes in [("exact", ""), *((h, p) for h in HEURISTICS for p in PASSES)]
    ]
    for case in track(table.left(cases), description="solving"):
        rows, dim, floor, solver, passes, _ = case
        found = solve(
            momentum(rows, dim, seed),
            solver=solver,
            alignment=floor,
            passes=int(passes or 1),
            starts=starts,
            seed=seed,
        )
        told = found.optimality
        table.append(
            dict(zip(KEY, case, strict=True))
            | {
                "starts": found.starts,
                "agreeing": found.agreeing,
                "rho": f"{found.rho:.12f}",
                "alignment": f"{found.alignment:.6f}",
                "met": found.met,
                "residual": "" if told is None else f"{told.residual:.0e}",
                "isolated": "" if told is None else told.isolated,
            }
        )


if __name__ == "__main__":
    typer.run(main)
