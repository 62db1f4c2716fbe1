"""Separation reached on real momenta: `rho` against the floor, the solver and its passes.

    python -m experiments.separation.run [MOMENTUM ...] [--passes 4 8 24 60] [--floors 0.3 ...]

Without arguments the shipped momentum is used. A file may carry a stride, `file.npy::2`, to take
every second row. Rows already in the results are kept and not computed again, so a run that was
killed goes on where it was; remove the file to measure afresh.
"""

import csv
import datetime
import platform
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track
from torch import Tensor

from packing import solve
from packing.baselines import BASELINES, quality
from packing.cloud import centre
from packing.io import demo_momentum, load_matrix
from packing.report import rowsep_version

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


def load(name: str) -> Tensor:
    """The momentum called `shipped`, or that of a file with an optional `::stride`, centred."""
    if name == "shipped":
        return centre(demo_momentum().float())
    path, _, stride = name.partition("::")
    matrix, _ = load_matrix(Path(path))
    return centre(matrix[:: int(stride or 1)].float())


def main(
    momenta: Annotated[list[str] | None, typer.Argument(help="files, `::stride` allowed")] = None,
    floors: Annotated[list[float], typer.Option()] = [0.3, 0.4, 0.5, 0.6, 0.66, 0.7],  # noqa: B006
    passes: Annotated[list[int], typer.Option()] = [4, 8, 24, 60],  # noqa: B006
    solvers: Annotated[list[str], typer.Option()] = ["projected_gradient", "smoothed"],  # noqa: B006
    measure: str = "decrease",
    seed: int = 0,
    results: Path = RESULTS,
) -> None:
    """Solve every case and append its figures to the results."""
    done = {tuple(row[k] for k in KEY) for row in read(results)}
    tasks = [
        (name, method, floor, count)
        for name in momenta or ["shipped"]
        for method, floor, count in [
            *((baseline, "", "") for baseline in BASELINES),
            *((s, f, p) for s in solvers for f in floors for p in passes),
        ]
        if (short(name), method, measure, str(floor), str(count), str(seed)) not in done
    ]
    loaded: dict[str, Tensor] = {}
    for name, method, floor, count in track(tasks, description="solving"):
        if name not in loaded:
            loaded = {name: load(name)}
        A = loaded[name]
        row = dict.fromkeys(FIELDS, "") | {
            "momentum": short(name),
            "method": method,
            "measure": measure,
            "floor": floor,
            "passes": count,
            "seed": seed,
            "rows": A.shape[0],
            "dim": A.shape[1],
            "dtype": str(A.dtype).removeprefix("torch."),
            "rowsep": rowsep_version(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "date": datetime.date.today().isoformat(),
        }
        if method in BASELINES:
            found = quality(A, BASELINES[method](A))
            row |= {"rho": found.rho, "alignment": found.alignment, "cosine": found.cosine}
        else:
            found = solve(
                A,
                alignment=float(floor),
                measure=measure,
                solver=method,
                passes=int(count),
                seed=seed,
            )
            row |= {
                "rho": found.rho,
                "bound": found.bound,
                "alignment": found.alignment,
                "cosine": found.cosine,
                "met": found.met,
                "all_passes": found.passes,
            }
        append(results, row)


def short(name: str) -> str:
    """The name a momentum goes by in the results: the file's own, with its stride."""
    return Path(name).name


def read(results: Path) -> list[dict[str, str]]:
    """Rows of the results so far."""
    if not results.exists():
        return []
    with results.open(newline="") as file:
        return list(csv.DictReader(file))


def append(results: Path, row: dict) -> None:
    """Write one row at the end, with the header before the first."""
    new = not results.exists()
    with results.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        for key in ("rho", "bound", "alignment", "cosine"):
            if row[key] != "":
                row[key] = f"{row[key]:.6f}"
        writer.writerow(row)


if __name__ == "__main__":
    typer.run(main)
