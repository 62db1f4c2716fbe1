"""Which start wins on real momenta: `rho` against the floor on the alignment.

    python -m experiments.codes.front [MOMENTUM ...] [--floors 0.3 ...] [--passes 24 60]

Starts: `momentum` (the solver's own), `code` (`best_code` as it comes), `aligned` (turned and
shared out by `align`), `blended` (that with the momentum mixed in by `blend`, of the least weight
that has the alignment), `random` (independent Gaussian rows). `aligned` and `blended` with 0 passes
are those rows as they are, without a solver. Files may carry a stride, `file.npy::4`; cases in the
results are kept.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track
from torch import Tensor

from experiments.momenta import Names, load, short
from experiments.table import Table
from rowsep.packing import solve
from rowsep.packing.baselines import quality
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.cloud import alignment
from rowsep.packing.codes.aligned import align, blend
from rowsep.packing.codes.best import best_code

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
STARTS = ("momentum", "code", "aligned", "blended", "random")
CODED = ("code", "aligned", "blended")
WEIGHTS = (1e-6, 1e3)
"""Between which the weight of the momentum in a blend is sought."""
BISECTIONS = 24


def main(
    momenta: Names = None,
    floors: Annotated[list[float], typer.Option()] = [0.3, 0.5, 0.6, 0.7],  # noqa: B006
    passes: Annotated[list[int], typer.Option()] = [24, 60],  # noqa: B006
    results: Path = RESULTS,
) -> None:
    """Solve every case with seed 0 and append its figures to the results."""
    table = Table(results, KEY, FIELDS)
    for name in momenta or ["shipped"]:
        cases: list[tuple[str, float | str, int]] = [("aligned", "", 0)]
        cases += [("blended", floor, 0) for floor in floors]
        cases += [(start, f, p) for start in STARTS for f in floors for p in passes]
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
                "origin": code.origin if start in CODED else "",
            }
            least = -1.0 if floor == "" else float(floor)
            table.append(row | figures(A, starts[start](least), least, count))


def states(A: Tensor) -> dict[str, Callable[[float], Tensor | None]]:
    """The rows that each start begins with, by the floor."""
    code = best_code(*A.shape).rows()
    aligned = align(code, A).rows
    return {
        "momentum": lambda floor: None,
        "code": lambda floor: code,
        "aligned": lambda floor: aligned,
        "blended": lambda floor: blended(aligned, A, floor),
        "random": lambda floor: torch.randn(A.shape, generator=torch.Generator().manual_seed(0)),
    }


def blended(rows: Tensor, A: Tensor, floor: float) -> Tensor:
    """Return `blend(rows, A, weight)` of about the least weight that meets the floor."""
    low, high = WEIGHTS
    for _ in range(BISECTIONS):
        weight = math.sqrt(low * high)
        met = alignment(A, blend(rows, A, weight)) >= floor
        low, high = (low, weight) if met else (weight, high)
    return blend(rows, A, high)


def figures(A: Tensor, state: Tensor | None, floor: float, passes: int) -> dict:
    """Quality of the solution, or of the state itself for 0 passes."""
    if passes == 0 and state is not None:
        found, met = quality(A, state), ""
    else:
        found = solve(A, alignment=floor, state=state, passes=passes)
        met = found.met
    exact = {k: f"{getattr(found, k):.6f}" for k in ("rho", "alignment", "cosine")}
    return exact | {"met": met}


if __name__ == "__main__":
    typer.run(main)
