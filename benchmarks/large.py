"""A head of GPT-2's size on a CPU: time in bare products and peak memory above the input.

    python -m benchmarks.large [--rows 50257] [--dim 768] [--out benchmarks/large.json]

One exact pass, one gradient pass (the first of the default solver, when most pairs are wrong) and a
solve of four passes, on a momentum-like cloud. One thread, processor time. The bare float32 product
`S S^T` is timed on every eighth block of rows before, between and after, and scaled up. Memory is
resident memory (Linux) above what was held when the task began, the input included in that.
"""

import datetime
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
import typer
from threadpoolctl import threadpool_limits

from benchmarks.clouds import real_like
from benchmarks.machine import cpu, with_peak
from benchmarks.products import product_seconds
from rowsep.packing import solve
from rowsep.packing.pairs import extremes
from rowsep.packing.solvers.geometry import Shell
from rowsep.packing.solvers.projected_gradient import ProjectedGradient


def main(rows: int = 50257, dim: int = 768, out: Path = Path("benchmarks/large.json")) -> None:
    """Measure and write one JSON, saved after each figure."""
    S = real_like(rows, dim)
    report: dict = {
        "command": f"python -m benchmarks.large --rows {rows} --dim {dim}",
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu": cpu(),
        "threads": 1,
        "rows": rows,
        "dim": dim,
        "figures": {},
    }
    units = [product_seconds(S)]
    tasks: dict[str, Callable[[], object]] = {
        "exact pass": lambda: extremes(S),
        "gradient pass": lambda: ProjectedGradient().visit(Shell(S).start(), 1.05, math.inf, 0.0),
        "solve, 4 passes": lambda: solve(S, passes=4),
    }
    for name, task in tasks.items():
        began = time.process_time()
        found, peak = with_peak(task)
        seconds = time.process_time() - began
        units.append(product_seconds(S))
        unit = (units[-1] + units[-2]) / 2
        figures = {
            "seconds": round(seconds, 1),
            "bare_product_seconds": round(unit, 1),
            "bare_products": round(seconds / unit, 2),
            "peak_above_input_MiB": round(peak),
        }
        if name.startswith("solve"):
            figures |= {k: getattr(found, k) for k in ("rho", "alignment", "passes", "met")}
        report["figures"][name] = figures
        out.write_text(json.dumps(report, indent=1) + "\n")
        typer.echo(f"{name}: {figures}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        typer.run(main)
