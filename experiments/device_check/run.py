"""The stages in order, and the command."""

import argparse
import gc
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console

from experiments.device_check.correctness import (
    check_extremes,
    check_forces,
    check_pair_list,
    check_soft_extremes,
    check_solvers,
)
from experiments.device_check.inputs import FULL, SMALL, Sizes
from experiments.device_check.record import Stage, facts, run_stage, write
from experiments.device_check.timing import time_passes, time_solve, time_steps


def stages(sizes: Sizes) -> dict[str, tuple[float, Callable[[Stage], None]]]:
    """Budget in seconds and function of every stage, by name; under eight minutes together."""
    chosen: dict[str, tuple[float, Callable[[Stage], None]]] = {
        "extremes": (40, check_extremes),
        "forces": (60, check_forces),
        "soft_extremes": (60, check_soft_extremes),
        "pair_list": (25, check_pair_list),
        "solvers": (75, check_solvers),
    }
    for shape, budget in zip(sizes.timed, (55, 100), strict=True):
        name = f"passes {shape[0]} x {shape[1]}"
        chosen[name] = budget, lambda stage, shape=shape: time_passes(stage, shape)
    V, d = sizes.solved
    chosen[f"solve {V} x {d}"] = 40, time_solve
    chosen[f"steps {V} x {d}"] = 24, time_steps
    return chosen


def main(arguments: list[str] | None = None) -> int:
    """Run every stage; 0 if all passed, 1 if not, 2 if there is no device to run on."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.device_check",
        description="Check and time all-pairs passes, solvers and optimisers on a device.",
    )
    parser.add_argument("--small", action="store_true", help="every stage at tiny sizes")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="cuda; cpu with --small")
    parser.add_argument("--out", type=Path, default=Path("device_check.json"))
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    device = torch.device(options.device or ("cpu" if options.small else "cuda"))
    if device.type == "cuda" and not torch.cuda.is_available():
        console.print("torch sees no CUDA device; --device cpu runs without, --small quickly")
        return 2
    sizes = SMALL if options.small else FULL
    given = sys.argv[1:] if arguments is None else arguments
    record = facts(device) | {
        "command": shlex.join(["python", "-m", "experiments.device_check", *given]),
        "small": options.small,
        "passed": False,
        "complete": False,
        "stages": {},
    }
    console.print(f"{record['device']['name']}, torch {torch.__version__}")
    chosen = stages(sizes)
    for name, (budget, work) in chosen.items():
        console.print(f"[bold]{name}[/bold], at most {budget:g} s")
        stage = Stage(name, device, sizes, console, time.monotonic() + budget)
        made = record["stages"][name] = run_stage(stage, budget, work)
        console.print(f"  {made['status']}, {len(made['checks'])} checks, {made['seconds']:.1f} s")
        record["complete"] = len(record["stages"]) == len(chosen)
        record["passed"] = record["complete"] and all(
            entry["status"] == "passed" for entry in record["stages"].values()
        )
        write(record, options.out)
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    console.print(f"{'passed' if record['passed'] else '[red]not passed[/red]'}, {options.out}")
    return 0 if record["passed"] else 1
