"""What a step of each head optimiser costs, in bare products and as a share of a training step.

    python -m benchmarks.optimizers [--large] [--only TEXT] [--out benchmarks/optimizers.json]

The unit is one float32 product `A A^T` of a head's size (2 V^2 d operations), timed on every
eighth block of rows before and after each optimiser and scaled up. One thread, processor time,
the median of the rounds. `--large` takes a head of GPT-2's size, 50257 x 768, instead of
8192 x 256: half an hour and 3 GiB, and leaves out Muon, whose bfloat16 a CPU may have to emulate.

The share is that of a training step of a model with N = 124 million parameters on T = 500 000
tokens, 6 N T operations, done at the throughput of the bare product:

    share = units * 2 V^2 d / (6 N T)

Results of other shapes in the file are kept; with `--only`, those of optimisers whose names do not
hold the text too.
"""

import datetime
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import typer
from threadpoolctl import threadpool_limits
from torch.nn import Parameter

from benchmarks.clouds import real_like
from benchmarks.head_optimisers import OPTIMISERS
from benchmarks.machine import cpu
from benchmarks.products import product_seconds

PARAMETERS, TOKENS = 124e6, 5e5


def seconds_of_a_step(make: Callable, grad: torch.Tensor, rounds: int) -> float:
    """Median processor seconds of a step, leaving out the first of several, which makes state."""
    p = Parameter(torch.zeros_like(grad))
    p.grad = grad
    optimiser = make([p])
    times = []
    for _ in range(rounds):
        began = time.process_time()
        optimiser.step()
        times.append(time.process_time() - began)
    return statistics.median(times[1:] or times)


def main(
    large: bool = False, only: str = "", out: Path = Path("benchmarks/optimizers.json")
) -> None:
    """Measure one shape and add it to the JSON, saved after each figure."""
    rows, dim = (50257, 768) if large else (8192, 256)
    report = json.loads(out.read_text()) if out.exists() else {}
    shape = f"{rows}x{dim}"
    figures: dict = report[shape]["figures"] if only and shape in report else {}
    report[shape] = {
        "command": "python -m benchmarks.optimizers" + (" --large" if large else ""),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": 1,
        "figures": figures,
    }
    grad = real_like(rows, dim)
    training = 6 * PARAMETERS * TOKENS / (2 * rows**2 * dim)
    units = [product_seconds(grad)]
    for name, make in OPTIMISERS.items():
        if only not in name or (large and name.startswith("Muon")):
            continue
        solving = name.startswith(("RowSeparation", "SteepestDescent"))
        seconds = seconds_of_a_step(make, grad, 1 if large and solving else 4)
        units.append(product_seconds(grad))
        cost = seconds / ((units[-1] + units[-2]) / 2)
        figures[name] = {
            "seconds": round(seconds, 3),
            "bare_products": round(cost, 4),
            "share_of_training_step": round(cost / training, 6),
            "cpu": cpu(),
            "date": datetime.date.today().isoformat(),
        }
        out.write_text(json.dumps(report, indent=1) + "\n")
        typer.echo(f"{name}: {figures[name]}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        typer.run(main)
