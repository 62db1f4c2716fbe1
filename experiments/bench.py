"""Time the solvers on the shipped momentum: `python -m experiments.bench`, or `make bench`.

For each solver and number of passes: what it reached at alignment 0.5 and how long it took, printed
and written to out/bench.csv with the versions and the number of threads. One run each, seed 0.
"""

import csv
import platform
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from packing.io import demo_momentum
from packing.solve import solve

SOLVERS = ("guttman", "projected_gradient", "smoothed")
PASSES = (4, 8, 16, 24)
COLUMNS: tuple[str, ...] = (
    "solver",
    "passes",
    "spent",
    "rho",
    "alignment",
    "cosine",
    "met",
    "seconds",
    "rows",
    "dim",
    "threads",
    "torch",
    "machine",
)


def measure(momentum: torch.Tensor, solver: str, passes: int) -> dict[str, object]:
    """Return one line of the table: `solver` on `momentum`, shape (V, d), within `passes`."""
    began = time.perf_counter()
    solution = solve(momentum, solver=solver, passes=passes)  # pyright: ignore[reportArgumentType]
    seconds = time.perf_counter() - began
    return {
        "solver": solver,
        "passes": passes,
        "spent": solution.passes,
        "rho": f"{solution.rho:.4f}",
        "alignment": f"{solution.alignment:.4f}",
        "cosine": f"{solution.cosine:.4f}",
        "met": solution.met,
        "seconds": f"{seconds:.2f}",
        "rows": momentum.shape[0],
        "dim": momentum.shape[1],
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


def main(
    out: Annotated[Path, typer.Option(help="CSV file to write.")] = Path("out/bench.csv"),
    rows: Annotated[int, typer.Option(help="Rows of the momentum to take.")] = 4096,
) -> None:
    """Time every solver at every number of passes."""
    momentum = demo_momentum()[:rows].float()
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for solver in SOLVERS:
            for passes in PASSES:
                line = measure(momentum, solver, passes)
                table.writerow(line)
                typer.echo("  ".join(f"{name} {line[name]}" for name in COLUMNS[:8]))
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
