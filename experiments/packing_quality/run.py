"""Separation, cost and memory of every solver, code and baseline over V and d, without a momentum.

    python -m experiments.packing_quality.run [--rows 256 ...] [--dims 16 ...] [--most-minutes 10]

Methods:

    gaussian                    independent rows, scaled to unit norm: the floor
    code                        `best_code(V, d)`, all of its rows made and measured
    projected_gradient          `rowsep.packing.solve` from Gaussian rows, floor -1 (none)
    smoothed                    the same
    guttman                     the same
    code, projected_gradient    the same from the rows of the code

`rho` is measured exactly on the rows returned. Seconds are the processor's, one thread, and
`products` is their ratio to the bare float32 product of all rows with all rows, timed before and
after in the same process. Memory is the peak above what was held before. The cheapest cases come
first; those that are expected to take more than `--most-minutes` are not begun. Cases in the
results are kept.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
import typer
from rich.progress import track
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.machine import cpu, with_peak
from benchmarks.products import product_seconds
from experiments.table import Table
from rowsep.packing import cloud, solve
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.codes import best_code

RESULTS = Path(__file__).parent / "results.csv"
ROWS = (256, 1024, 4096, 16384, 65536)
DIMS = (16, 64, 256, 1024)
PASSES = {256: 60, 1024: 60, 4096: 24, 16384: 12, 65536: 4}
"""Of the solvers, by the number of rows; other numbers take those of the next larger one."""
PRODUCTS_A_PASS = 1.5
"""For the forecast alone."""
FLOPS = 2e10
KEY = ("rows", "dim", "method", "passes", "seed")
FIELDS = (
    *KEY,
    "rho",
    "bound",
    "share",
    "origin",
    "seconds",
    "products",
    "peak_MiB",
    "rowsep",
    "torch",
    "python",
    "cpu",
    "date",
    "command",
)


class Case(NamedTuple):
    """A method on a number of rows and dimensions; 0 passes for what has none."""

    rows: int
    dim: int
    method: str
    passes: int
    seed: int


def cases(rows: list[int], dims: list[int], seed: int) -> list[Case]:
    """Return every case, the cheapest first; no code has fewer rows than dimensions here."""
    found = []
    for V in rows:
        passes = PASSES[min((k for k in PASSES if k >= V), default=max(PASSES))]
        for d in dims:
            if V <= d:
                continue
            found += [Case(V, d, "gaussian", 0, seed), Case(V, d, "code", 0, seed)]
            found += [Case(V, d, method, passes, seed) for method in SOLVED]
    return sorted(found, key=lambda case: (case.rows**2 * case.dim, case.passes))


def gaussian(case: Case) -> Tensor:
    """Unit rows in random directions, float32."""
    generator = torch.Generator().manual_seed(case.seed)
    rows = torch.randn(case.rows, case.dim, generator=generator)
    return torch.nn.functional.normalize(rows, dim=1)


def solved(case: Case) -> Tensor:
    """The rows of a solver, from those of its start, with no floor on the alignment."""
    start, _, solver = case.method.rpartition(", ")
    rows = best_code(case.rows, case.dim).rows() if start else gaussian(case)
    found = solve(rows, alignment=-1.0, solver=solver, passes=case.passes, seed=case.seed)
    return found.update


def made(case: Case) -> Tensor:
    """All rows of the code."""
    return best_code(case.rows, case.dim).rows()


SOLVED = ("projected_gradient", "smoothed", "guttman", "code, projected_gradient")
METHODS: dict[str, Callable[[Case], Tensor]] = {
    "gaussian": gaussian,
    "code": made,
    **dict.fromkeys(SOLVED, solved),
}


def forecast(case: Case) -> float:
    """Return about how many seconds a case takes."""
    return (2 + PRODUCTS_A_PASS * case.passes) * 2 * case.rows**2 * case.dim / FLOPS


def unit_seconds(case: Case, least: float = 0.2) -> float:
    """Processor seconds of a bare product, the mean over at least `least` seconds."""
    rows, began, taken = gaussian(case), time.process_time(), []
    while not taken or time.process_time() - began < least:
        taken.append(product_seconds(rows))
    return statistics.mean(taken)


def measure(case: Case) -> dict[str, object]:
    """Run a case; its row of the results."""
    before = unit_seconds(case)
    began = time.process_time()
    rows, peak = with_peak(lambda: METHODS[case.method](case))
    seconds = time.process_time() - began
    product = (before + unit_seconds(case)) / 2
    rho, bound = cloud.ratio(rows).value, rho_upper_bound(case.rows, case.dim)
    coded = "code" in case.method
    return {
        **case._asdict(),
        "rho": f"{rho:.6f}",
        "bound": f"{bound:.6f}",
        "share": f"{rho / bound:.4f}",
        "origin": best_code(case.rows, case.dim).origin if coded else "",
        "seconds": f"{seconds:.3g}",
        "products": f"{seconds / product:.3g}",
        "peak_MiB": f"{peak:.0f}",
        "cpu": cpu(),
        "command": "python -m experiments.packing_quality.run",
    }


def main(
    rows: Annotated[list[int], typer.Option()] = list(ROWS),  # noqa: B006
    dims: Annotated[list[int], typer.Option()] = list(DIMS),  # noqa: B006
    most_minutes: Annotated[float, typer.Option(help="no case that is expected to take more")] = 10,
    seed: int = 0,
    results: Path = RESULTS,
) -> None:
    """Measure what is missing and append it to the results; Ctrl-C keeps what is done."""
    table = Table(results, KEY, FIELDS)
    left = table.left(cases(rows, dims, seed))
    begun = [case for case in left if forecast(case) <= 60 * most_minutes]
    for case in track(begun, description="packing"):
        table.append(measure(case))
    for case in left:
        if case not in begun:
            minutes = forecast(case) / 60
            typer.echo(
                f"{case.method}, {case.rows} x {case.dim}: about {minutes:.0f} min, left out"
            )


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        typer.run(main)
