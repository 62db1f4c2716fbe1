"""The steepest step of real momenta: what row normalisation leaves, and the certified gap.

    python -m experiments.steepest.run [MOMENTUM ...] [--passes 4 --passes 8 ...]
    python -m experiments.steepest.run [MOMENTUM ...] --rows 300 --dims 16 --dims 128

Without arguments the shipped momentum is used. With `--rows` the exact solver takes that many
rows drawn by the seed and the first columns; else the first-order solver takes all. Seconds are the
processor's. Cases in the results are kept and not computed again.
"""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track

from experiments.momenta import Names, load, short
from experiments.table import Table
from rowsep.packing import steepest_step
from rowsep.packing.bounds import max_alignment_bounds

RESULTS = Path(__file__).parent / "results.csv"
KEY = ("momentum", "rows", "dim", "solver", "passes", "seed")
FIELDS = (
    *KEY,
    "alignment",
    "upper",
    "gap",
    "row_normalised",
    "closed_upper",
    "all_passes",
    "pairs",
    "stop",
    "seconds",
    "rowsep",
    "torch",
    "python",
    "date",
)


def main(
    momenta: Names = None,
    passes: Annotated[list[int], typer.Option()] = [4, 8, 24],  # noqa: B006
    rows: Annotated[int, typer.Option(help="0 for all, by the first-order solver")] = 0,
    dims: Annotated[list[int], typer.Option(help="columns to keep, with --rows")] = [16],  # noqa: B006
    seed: int = 0,
    results: Path = RESULTS,
) -> None:
    """Solve every case and append its figures to the results."""
    table = Table(results, KEY, FIELDS)
    cases = [(0, count) for count in passes] if rows == 0 else [(dim, 0) for dim in dims]
    tasks = [(name, *case) for name in momenta or ["shipped"] for case in cases]
    for name, dim, count in track(tasks, description="solving"):
        A = load(name)
        if rows:
            order = torch.randperm(len(A), generator=torch.Generator().manual_seed(seed))
            A = A[order[:rows].sort().values, :dim].double()
        solver = "interior_point" if rows else "first_order"
        key = (short(name), len(A), A.shape[1], solver, count or "", seed)
        if not table.left([key]):
            continue
        began = time.process_time()
        found = steepest_step(A, solver=solver, passes=count or 48)
        seconds = time.process_time() - began
        closed = max_alignment_bounds(A)
        table.append(
            dict(zip(KEY, key, strict=True))
            | {
                "alignment": round(found.alignment, 6),
                "upper": round(found.alignment / (1 - found.gap), 6),
                "gap": f"{found.gap:.3g}",
                "row_normalised": round(closed.lower, 6),
                "closed_upper": round(closed.upper, 6),
                "all_passes": found.passes,
                "pairs": len(found.flow.pairs),
                "stop": found.stop,
                "seconds": round(seconds, 1),
            }
        )


if __name__ == "__main__":
    typer.run(main)
