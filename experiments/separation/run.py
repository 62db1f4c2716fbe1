"""Separation reached on real momenta: `rho` against the floor, the solver and its passes.

    python -m experiments.separation.run [MOMENTUM ...] [--passes 4 8 24 60] [--floors 0.3 ...]

Without arguments the shipped momentum is used. A file may carry a stride, `file.npy::2`, to take
every second row. Rows already in the results are kept and not computed again, so a run that was
killed goes on where it was; remove the file to measure afresh.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from torch import Tensor

from experiments.momenta import Names, load, short
from experiments.table import Table
from rowsep.packing import solve
from rowsep.packing.baselines import BASELINES, quality

RESULTS = Path(__file__).parent / "results.csv"
KEY = ("momentum", "method", "measure", "floor", "passes", "seed")
FIELDS = (
    *KEY,
    "rows",
    "dim",
    "rho",
    "bound",
    "alignment",
    "cosine",
    "met",
    "all_passes",
    "dtype",
    "rowsep",
    "torch",
    "python",
    "date",
)


def main(
    momenta: Names = None,
    floors: Annotated[list[float], typer.Option()] = [0.3, 0.4, 0.5, 0.6, 0.66, 0.7],  # noqa: B006
    passes: Annotated[list[int], typer.Option()] = [4, 8, 24, 60],  # noqa: B006
    solvers: Annotated[list[str], typer.Option()] = ["projected_gradient", "smoothed"],  # noqa: B006
    measure: str = "decrease",
    seed: int = 0,
    results: Path = RESULTS,
) -> None:
    """Solve every case and append its figures to the results."""
    table = Table(results, KEY, FIELDS)
    cases = [
        *((baseline, "", "") for baseline in BASELINES),
        *((s, f, p) for s in solvers for f in floors for p in passes),
    ]
    tasks = [
        (name, *case)
        for name in momenta or ["shipped"]
        for case in cases
        if table.left([(short(name), case[0], measure, *case[1:], seed)])
    ]
    loaded: dict[str, Tensor] = {}
    for name, method, floor, count in track(tasks, description="solving"):
        if name not in loaded:
            loaded = {name: load(name)}
        A = loaded[name]
        row: dict[str, object] = {
            "momentum": short(name),
            "method": method,
            "measure": measure,
            "floor": floor,
            "passes": count,
            "seed": seed,
            "rows": A.shape[0],
            "dim": A.shape[1],
            "dtype": str(A.dtype).removeprefix("torch."),
        }
        if method in BASELINES:
            found = quality(A, BASELINES[method](A))
        else:
            found = solve(
                A,
                alignment=float(floor),
                measure=measure,
                solver=method,
                passes=int(count),
                seed=seed,
            )
            row |= {"bound": f"{found.bound:.6f}", "met": found.met, "all_passes": found.passes}
        exact = {k: f"{getattr(found, k):.6f}" for k in ("rho", "alignment", "cosine")}
        table.append(row | exact)


if __name__ == "__main__":
    typer.run(main)
