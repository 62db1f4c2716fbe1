"""Which start wins on real momenta: `rho` against the floor on the alignment.

    python -m experiments.codes.front [MOMENTUM ...] [--floors 0.3 ...] [--passes 24 60]

Starts: `momentum` (the solver's own), `code` (`best_code` as it comes), `aligned` (turned and
shared out by `align`), `random` (independent Gaussian rows). `aligned` with 0 passes is that code
as it is, without a solver. Files may carry a stride, `file.npy::4`; cases in the results are kept.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track
from torch import Tensor

from experiments.momenta import load, short
from experiments.table import Table
from packing import solve
from packing.baselines import quality
from packing.bounds import rho_upper_bound
from packing.codes.aligned import align
from packing.codes.best import best_code

RESULTS = Path(__file__).parent / "front.csv"
KEY = ("momentum", "start", "floor", "passes")
FIELDS = (
    *KEY,
    "rows",
    "dim",
    "rho",
    "bound",
    "alignment",
    "cosine",
    "met",
    "origin",
    "rowsep",
    "torch",
    "python",
    "date",
)
STARTS = ("momentum", "code", "aligned", "random")


def main(
    momenta: Annotated[list[str] | None, typer.Argument(help="files, `::stride` allowed")] = None,
    floors: Annotated[list[float], typer.Option()] = [0.3, 0.5, 0.6, 0.7],  # noqa: B006
    passes: Annotated[list[int], typer.Option()] = [24, 60],  # noqa: B006
    results: Path = RESULTS,
) -> None:
    """Solve every case with seed 0 and append its figures to the results."""
    table = Table(results, KEY, FIELDS)
    for name in momenta or ["shipped"]:
        cases = [("aligned", "", 0), *((s, f, p) for s in STARTS for f in floors for p in passes)]
        left = table.left([(short(name), *case) for case in cases])
        if not left:
            continue
        A = load(name)
        code = best_code(*A.shape)
        starts = states(A)
        for _, start, floor, count in track(left, description=short(name)):
            row = {
                "momentum": short(name),
                "start": start,
                "floor": floor,
                "passes": count,
                "rows": A.shape[0],
                "dim": A.shape[1],
                "bound": f"{rho_upper_bound(*A.shape):.6f}",
                "origin": code.origin if start in ("code", "aligned") else "",
            }
            table.append(row | figures(A, starts[start], floor, count))


def states(A: Tensor) -> dict[str, Tensor | None]:
    """The rows that each start begins with."""
    code = best_code(*A.shape).rows()
    generator = torch.Generator().manual_seed(0)
    return {
        "momentum": None,
        "code": code,
        "aligned": align(code, A).rows,
        "random": torch.randn(A.shape, generator=generator),
    }


def figures(A: Tensor, state: Tensor | None, floor: float | str, passes: int) -> dict:
    """Quality of the solution, or of the state itself for 0 passes."""
    if passes == 0 and state is not None:
        found, met = quality(A, state), ""
    else:
        found = solve(A, alignment=float(floor), state=state, passes=passes)
        met = found.met
    exact = {k: f"{getattr(found, k):.6f}" for k in ("rho", "alignment", "cosine")}
    return exact | {"met": met}


if __name__ == "__main__":
    typer.run(main)
