"""Passes and solves against bare products of the same size, timed in the same rounds."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from benchmarks.head_optimisers import OPTIMISERS
from benchmarks.iterates import late_iterate
from benchmarks.products import bare
from experiments.device_check.correctness import DIAMETER
from experiments.device_check.inputs import momentum
from experiments.device_check.record import Stage
from rowsep.optim import RowSeparation
from rowsep.packing.pairs import PairList, TooManyPairs, extremes, forces
from rowsep.packing.solution import Solution
from rowsep.packing.solve import solve
from rowsep.packing.solvers.projected_gradient import hinge

BLOCK = 8192
"""Side of a block of the bare products."""


@contextlib.contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Float32 products at a precision: "highest" is float32, "high" is TF32 on a GPU.

    This is the setting behind `torch.backends.cuda.matmul.allow_tf32`, which follows it.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def product(S: Tensor, precision: str = "highest") -> None:
    """Every block of `S S^T`, nothing kept."""
    with matmul_precision(precision):
        bare(S, BLOCK)


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """Time of one call: by events on a GPU, by the wall clock on a CPU."""
    if device.type != "cuda":
        began = time.perf_counter()
        run()
        return time.perf_counter() - began
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    start.record()
    run()
    stop.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(stop) / 1e3


def peak_of(run: Callable[[], object], device: torch.device) -> int | None:
    """Bytes of device memory that one call needs above what is held before; None on a CPU."""
    if device.type != "cuda":
        run()
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def time_passes(stage: Stage, shape: tuple[int, int]) -> None:
    """Passes over all pairs and bare products, taking turns; ratios of medians."""
    A = momentum(*shape, stage.device)
    seen = late_iterate(A, 4)
    S, near, far = seen.rows, seen.near, seen.far
    half = S.bfloat16()
    ends: dict[str, Any] = {"near": near**2, "far": far**2}
    weight = hinge(near, far)
    methods: dict[str, Callable[[], object]] = {
        "product, bfloat16": lambda: product(half),
        "product, tf32": lambda: product(S, "high"),
        "product, float32": lambda: product(S),
        "extremes, momentum": lambda: extremes(A),
        "extremes, iterate": lambda: extremes(S),
        "forces, iterate": lambda: forces(S, weight, **ends),
        "forces, every pair": lambda: forces(S, torch.reciprocal),
    }
    pairs = shape[0] * (shape[0] - 1) // 2
    active = forces(S, weight, **ends).pairs
    stage.figures |= {"shape": list(shape), "active_share": active / pairs}
    try:
        listed = PairList(S, **ends, skin=0.005)
    except TooManyPairs as error:
        stage.figures["pair_list"] = str(error)
    else:
        stage.figures["pair_list"] = f"{listed.pairs / pairs:.3%} of the pairs listed"
        methods["PairList, build"] = lambda: PairList(S, **ends, skin=0.005)
        methods["PairList, forces"] = lambda: listed.forces(S, weight)
    peaks = {}
    for name, run in methods.items():
        run()
        peaks[name] = peak_of(run, stage.device)
    times: dict[str, list[float]] = {name: [] for name in methods}
    units = [name for name in methods if name.startswith("product")]
    result = stage.figures["methods"] = {}
    for k in range(stage.sizes.rounds):
        began = time.monotonic()
        for name, run in methods.items():
            times[name].append(seconds_of(run, stage.device))
        stage.console.print(f"  round {k + 1}: {time.monotonic() - began:.2f} s")
        medians = {name: statistics.median(spent) for name, spent in times.items()}
        for name, spent in times.items():
            result[name] = {
                "seconds": list(spent),
                "median": medians[name],
                "ratio": {unit: medians[name] / medians[unit] for unit in units},
                "peak_bytes_above_input": peaks[name],
            }
        if time.monotonic() + 1.5 * (time.monotonic() - began) > stage.deadline:
            break


def time_solve(stage: Stage) -> None:
    """A solve of four passes with everything around it."""
    A = momentum(*stage.sizes.solved, stage.device)
    solve(A[: min(len(A), 4096)], passes=1)
    spent: list[float] = []
    while True:
        made: list[Solution] = []
        spent.append(seconds_of(lambda made=made: made.append(solve(A, passes=4)), stage.device))
        stage.console.print(f"  solve {len(spent)}: {spent[-1]:.2f} s")
        if len(spent) == stage.sizes.rounds or time.monotonic() + 2 * spent[-1] > stage.deadline:
            break
    found = made[-1]
    stage.figures |= {
        "shape": list(stage.sizes.solved),
        "seconds": spent,
        "median": statistics.median(spent),
        "passes": found.passes,
        "rho": found.rho,
        "alignment": found.alignment,
        "peak_bytes_above_input": peak_of(lambda: solve(A, passes=4), stage.device),
    }
    stage.at_most("diameter", found.diameter, DIAMETER)
    stage.holds("floor", found.met)


def time_steps(stage: Stage) -> None:
    """A step of each optimiser of a head; the one that separates is repeatable and feasible."""
    gradient = momentum(*stage.sizes.solved, stage.device)
    half = gradient.bfloat16()
    units: dict[str, Callable[[], object]] = {
        "product, bfloat16": lambda: product(half),
        "product, tf32": lambda: product(gradient, "high"),
        "product, float32": lambda: product(gradient),
    }
    medians = {}
    for name, run in units.items():
        run()
        spent = [seconds_of(run, stage.device) for _ in range(stage.sizes.rounds)]
        medians[name] = statistics.median(spent)
    steps = stage.figures["steps"] = {}
    for name, make in OPTIMISERS.items():
        if time.monotonic() > stage.deadline - 5:
            stage.figures["left out"] = f"{name} and what follows: the budget is spent"
            break
        weight = Parameter(torch.zeros_like(gradient))
        weight.grad = gradient
        optimiser = make([weight])
        optimiser.step()
        seconds = seconds_of(optimiser.step, stage.device)
        ratios = {unit: seconds / median for unit, median in medians.items()}
        steps[name] = {"seconds": seconds, "ratio": ratios}
        stage.console.print(f"  {name}: {seconds:.3f} s")
    first, second = (Parameter(torch.zeros_like(gradient)) for _ in range(2))
    reports = []
    for weight in (first, second):
        weight.grad = gradient
        optimiser = RowSeparation([weight], passes=2)
        optimiser.step()
        reports += optimiser.last_step.values()
    stage.holds("the same step twice", torch.equal(first, second))
    stage.at_most("diameter of a step", reports[0].diameter, DIAMETER)
    stage.at_most("missing to the diameter of a step", DIAMETER - reports[0].diameter, 1e-5)
