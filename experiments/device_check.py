"""Check and time `packing` on a GPU in one run: `python -m experiments.device_check`.

    python -m experiments.device_check [--small] [--device cuda|cpu] [--out device_check.json]

One JSON is written, anew after every stage. Stages of correctness hold what the device computes
against float64 on the CPU; stages of time hold passes over all pairs against bare products of the
same size, timed in the same rounds. A stage that fails, raises or overruns its budget is recorded,
the others still run, and the exit status is 1. The full run stays within eight minutes on a GPU;
`--small` runs every stage at tiny sizes on the CPU in seconds. docs/device.md explains the figures.
"""

import argparse
import contextlib
import datetime
import gc
import importlib.metadata
import json
import math
import os
import platform
import shlex
import signal
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch.nn.functional import normalize

from packing import cloud
from packing.io import demo_momentum
from packing.pairs import Forces, PairList, TooManyPairs, extremes, forces, soft_extremes
from packing.solution import Solution
from packing.solve import SOLVERS, solve
from packing.solvers.geometry import Shell
from packing.solvers.projected_gradient import ProjectedGradient, hinge
from packing.solvers.separation import Agreement, Limits, Run, separate

EXACT = 1e-12
"""Relative error allowed of the separation and the diameter."""
FIGURES = 1e-9
"""Error allowed of the figures that a solution reports."""
RHO_MARGIN = 0.02
"""Relative difference allowed between the `rho` of a solve here and on the CPU."""
FLOOR = 0.5
DIAMETER = 1.0
FORCE_ERROR = {torch.float64: 1e-10, torch.float32: 1e-3}
"""Relative error allowed of forces and gradients, Frobenius norm."""
SQUARE_ERROR = {torch.float64: 1e-10, torch.float32: 1e-3}
"""Relative error allowed of a squared distance: float32 products keep that much of the digits
down to 0.001 of the norms."""
BLOCK = 8192
"""Side of a block of the bare products."""


@dataclass(frozen=True)
class Sizes:
    """What is run on."""

    clouds: tuple[tuple[int, int], ...]
    """Shapes of the clouds of the stages of correctness."""
    rows: int
    """Rows of the shipped momentum that are solved for."""
    passes: int
    timed: tuple[tuple[int, int], ...]
    """Shapes of the timed passes."""
    solved: tuple[int, int]
    """Shape of the timed solve."""
    rounds: int
    """Most rounds of timing."""


FULL = Sizes(
    ((600, 48), (9000, 96)), 4096, 12, ((50257, 768), (151936, 1024)), (50257, 768), rounds=7
)
SMALL = Sizes(((300, 12),), 256, 6, ((600, 16), (700, 24)), (600, 16), rounds=3)


@dataclass
class Stage:
    """The record of one stage while it runs."""

    name: str
    device: torch.device
    sizes: Sizes
    console: Console
    deadline: float
    """On the clock of `time.monotonic`."""
    checks: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def at_most(self, name: str, value: float, limit: float) -> None:
        """Record that `value` has to be at most `limit`; NaN is not."""
        passed = bool(value <= limit)
        self.checks.append({"name": name, "value": value, "limit": limit, "passed": passed})
        if not passed:
            self.console.print(f"  [red]failed[/red] {name}: {value:.4g}, at most {limit:.4g}")

    def holds(self, name: str, passed: bool) -> None:
        """Record a condition."""
        self.at_most(f"{name} (0 is yes)", 0.0 if passed else 1.0, 0.0)


def natural(V: int, d: int) -> Tensor:
    """Random directions, norms one give or take 5 %, float64."""
    g = torch.Generator().manual_seed(0)
    size = 1 + 0.05 * torch.randn(V, 1, generator=g, dtype=torch.float64)
    return normalize(torch.randn(V, d, generator=g, dtype=torch.float64)) * size


def uneven(V: int, d: int) -> Tensor:
    """Falling spectrum, row norms over decades, some rows with a near twin, float64."""
    g = torch.Generator().manual_seed(1)
    S = torch.randn(V, d, generator=g, dtype=torch.float64) / torch.arange(1, d + 1).sqrt()
    S[1::40] = S[::40][: len(S[1::40])] * (1 + 1e-3)
    return S * torch.exp(0.5 * torch.randn(V, 1, generator=g, dtype=torch.float64))


def clouds(V: int, d: int) -> dict[str, Tensor]:
    """Clouds that are hard in different ways, by name, shape (V, d), float64, on the CPU."""
    random = natural(V, d)
    equal = random.clone()
    equal[V // 2] = equal[V // 3]
    return {
        "natural": random,
        "uneven": uneven(V, d),
        "shifted": random + 30,
        "equal rows": equal,
    }


def momentum(V: int, d: int, device: torch.device) -> Tensor:
    """A random momentum: falling spectrum, row norms over decades, float32, on the device."""
    g = torch.Generator(device).manual_seed(2)
    A = torch.randn(V, d, generator=g, device=device)
    A /= torch.arange(1, d + 1, device=device).sqrt()
    return A.mul_(torch.randn(V, 1, generator=g, device=device).mul_(1.2).exp_())


def reference(S: Tensor) -> tuple[Tensor, str]:
    """The entries of `S` in float64 on the CPU, and the implementation to trust there."""
    return S.cpu().double(), "naive" if len(S) <= 1000 else "blocked"


def apart(found: Tensor, true: Tensor) -> float:
    """`||found - true|| / ||true||`, 0.0 where both are zero."""
    difference, size = float((found.cpu().double() - true).norm()), float(true.norm())
    return difference / size if size > 0 else difference


def off(found: float, true: float) -> float:
    """Relative error of a number."""
    return abs(found - true) / abs(true) if true else abs(found)


def check_extremes(stage: Stage) -> None:
    """Separation and diameter in every dtype, with the pairs that attain them."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                true, found = extremes(given, impl=impl), extremes(here, impl="blocked")
                name = f"{shape}, {kind}, {dtype}"
                stage.at_most(f"separation, {name}", off(found.delta, true.delta), EXACT)
                stage.at_most(f"diameter, {name}", off(found.diameter, true.diameter), EXACT)
                for figure, pair in ((true.delta, found.closest), (true.diameter, found.farthest)):
                    distance = float((given[pair[0]] - given[pair[1]]).norm())
                    stage.at_most(f"pair {pair}, {name}", off(distance, figure), EXACT)
        mask = torch.arange(shape[0]) % 3 > 0
        S = natural(*shape).float()
        given, impl = reference(S)
        true = extremes(given, mask=mask, impl=impl)
        found = extremes(S.to(stage.device), mask=mask.to(stage.device), impl="blocked")
        stage.at_most(f"separation, {shape}, mask", off(found.delta, true.delta), EXACT)
        stage.at_most(f"diameter, {shape}, mask", off(found.diameter, true.diameter), EXACT)


def reach_of(S: Tensor, share: float) -> float:
    """The distance below which about this share of the pairs of a float64 cloud lie."""
    r = torch.cdist(S[:256], S).flatten()
    r = r[r > 1e-9].sort().values
    return float(r[int(share * len(r))]) * (1 + 1e-10)  # on no pair, so that counts agree


def check_forces(stage: Stage) -> None:
    """Forces of all pairs, of few and of very few, on both sides."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            ranges = {"every pair": (math.inf, 0.0)}
            for share in (0.02, 0.001):
                ranges[f"{share:.1%} near"] = reach_of(S, share), math.inf
            ranges["both sides"] = reach_of(S, 0.01), reach_of(S, 0.99)
            for dtype in (torch.float64, torch.float32):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                for which, (near, far) in ranges.items():
                    weight = torch.reciprocal if near == math.inf else hinge(near, far)
                    ends: dict[str, Any] = {"near": near**2, "far": far**2}
                    true = forces(given, weight, **ends, impl=impl)
                    for way, most in (("listed", None), ("dense", 0)):
                        found = forces(here, weight, **ends, impl="blocked", max_pairs=most)
                        name = f"{shape}, {kind}, {dtype}, {which}, {way}"
                        error = apart(found.force, true.force)
                        stage.at_most(f"force, {name}", error, FORCE_ERROR[dtype])
                        for side in ("nearest", "farthest"):
                            error = apart(getattr(found, side), getattr(true, side))
                            stage.at_most(f"{side}, {name}", error, SQUARE_ERROR[dtype])
                        if dtype == torch.float64:
                            stage.holds(f"pairs, {name}", found.pairs == true.pairs)


def check_soft_extremes(stage: Stage) -> None:
    """The smoothed condition number and its gradient, blunt and sharp."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            for dtype in (torch.float64, torch.float32):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                for beta in (2.0, 20.0, 200.0):
                    true = soft_extremes(given, beta, impl=impl)
                    found = soft_extremes(here, beta, impl="blocked")
                    name = f"{shape}, {kind}, {dtype}, beta {beta:g}"
                    if math.isinf(true.value):
                        stage.holds(f"value, {name}", found.value == true.value)
                        stage.holds(f"gradient, {name}", not bool(found.gradient.any()))
                        continue
                    limit = FORCE_ERROR[dtype]
                    stage.at_most(f"value, {name}", off(found.value, true.value), limit)
                    stage.at_most(f"gradient, {name}", apart(found.gradient, true.gradient), limit)
                    stage.at_most(f"separation, {name}", off(found.delta, true.delta), EXACT)


def check_pair_list(stage: Stage) -> None:
    """Forces from a list, where it was made and after rows have moved."""
    for shape in stage.sizes.clouds:
        S = natural(*shape)
        near, far = reach_of(S, 0.01), reach_of(S, 0.999)
        for dtype in (torch.float64, torch.float32):
            here = S.to(dtype).to(stage.device)
            listed = PairList(here, near=near**2, far=far**2, skin=0.01)
            g = torch.Generator().manual_seed(3)
            move = normalize(torch.randn(shape, generator=g, dtype=dtype)).to(here)
            for way, rows in (("at rest", here), ("moved", here + 0.49 * listed.reach * move)):
                given, impl = reference(rows)
                weight = hinge(near, far)
                true = forces(given, weight, near=near**2, far=far**2, impl=impl)
                found = listed.forces(rows, weight)
                name = f"{shape}, {dtype}, {way}"
                stage.holds(f"covered, {name}", listed.covers(rows))
                stage.at_most(f"force, {name}", apart(found.force, true.force), FORCE_ERROR[dtype])
                if dtype == torch.float64:
                    stage.holds(f"pairs, {name}", found.pairs == true.pairs)
            stage.holds(f"a far move is not covered, {dtype}", not listed.covers(here + move))
            empty = PairList(here, near=0.0, far=math.inf, skin=0.01)
            none = empty.forces(here, torch.zeros_like)
            stage.holds(f"no force from an empty list, {dtype}", not bool(none.force.any()))


def check_solvers(stage: Stage) -> None:
    """Every solver on the shipped momentum: feasible, honest, as far as on the CPU."""
    A = demo_momentum()[: stage.sizes.rows].float()
    here = A.to(stage.device)
    cases = [(solver, "decrease") for solver in SOLVERS] + [("smoothed", "cosine")]
    for solver, measure in cases:
        options: dict[str, Any] = {
            "solver": solver,
            "measure": measure,
            "alignment": FLOOR,
            "diameter": DIAMETER,
            "passes": stage.sizes.passes,
        }
        found, true = solve(here, **options), solve(A, **options)
        name = f"{solver}, {measure}"
        check_solution(stage, name, A, found, measure)
        stage.at_most(f"rho against the CPU, {name}", off(found.rho, true.rho), RHO_MARGIN)
        stage.figures[name] = {"rho": found.rho, "rho_cpu": true.rho, "passes": found.passes}
    half = here.half()
    found = solve(half, mask=torch.arange(len(A), device=here.device) > 8, passes=2)
    stage.at_most("diameter, float16 with a mask", found.diameter, DIAMETER)


def check_solution(stage: Stage, name: str, A: Tensor, found: Solution, measure: str) -> None:
    """A solution is on the device, feasible, and its figures are those of its update."""
    update = found.update.cpu().double()
    ends = extremes(update, impl="naive" if len(update) <= 1000 else "blocked")
    alignment = cloud.alignment(A.double(), update, diameter=ends.diameter)
    cosine = cloud.cosine(A.double(), update)
    held = alignment if measure == "decrease" else cosine
    stage.holds(f"device, {name}", found.update.device.type == stage.device.type)
    stage.at_most(f"diameter, {name}", ends.diameter, DIAMETER)
    stage.at_most(f"missing to the floor, {name}", max(0.0, FLOOR - held), FIGURES)
    for figure, value in (
        ("delta", ends.delta),
        ("diameter", ends.diameter),
        ("rho", ends.delta / ends.diameter),
        ("alignment", alignment),
        ("cosine", cosine),
    ):
        error = abs(getattr(found, figure) - value)
        stage.at_most(f"reported {figure}, {name}", error, FIGURES)


class Recorder(ProjectedGradient):
    """A solver that remembers its last iterate and what counted as wrong there."""

    rows: Tensor
    near: float
    far: float

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        """The pass of the solver, remembered."""
        self.rows, self.near, self.far = rows, near, far
        return super().visit(rows, near, far, part)


def iterate(A: Tensor, passes: int) -> Recorder:
    """The rows that projected gradient visits in its last of some passes from momentum `A`."""
    recorder, geometry = Recorder(), Shell(A)
    run = Run(geometry.start(), math.inf)
    separate(
        geometry, FLOOR, recorder, run, Limits(passes), lambda *_: Agreement(FLOOR, FLOOR, FLOOR)
    )
    return recorder


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


def bare(S: Tensor, precision: str = "highest") -> None:
    """Every block of `S S^T`, nothing kept."""
    with matmul_precision(precision):
        for rows in S.split(BLOCK):
            for columns in S.split(BLOCK):
                torch.mm(rows, columns.T)


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
    seen = iterate(A, 4)
    S, near, far = seen.rows, seen.near, seen.far
    half = S.bfloat16()
    ends: dict[str, Any] = {"near": near**2, "far": far**2}
    weight = hinge(near, far)
    methods: dict[str, Callable[[], object]] = {
        "product, bfloat16": lambda: bare(half),
        "product, tf32": lambda: bare(S, "high"),
        "product, float32": lambda: bare(S),
        "extremes, momentum": lambda: extremes(A),
        "extremes, iterate": lambda: extremes(S),
        "forces, listed": lambda: forces(S, weight, **ends),
        "forces, dense": lambda: forces(S, weight, **ends, max_pairs=0),
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
    return chosen


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in the block after some seconds, where the system can."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() != threading.main_thread():
        yield
        return

    def overrun(*_: object) -> None:
        raise TimeoutError(f"the stage overran its budget of {seconds:g} s")

    before = signal.signal(signal.SIGALRM, overrun)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_stage(stage: Stage, budget: float, work: Callable[[Stage], None]) -> dict[str, Any]:
    """Run one stage and return its record; nothing that goes wrong in it gets out."""
    began = time.monotonic()
    error = None
    try:
        with within(budget):
            work(stage)
            if stage.device.type == "cuda":
                torch.cuda.synchronize(stage.device)
    except Exception as caught:
        error = "".join(traceback.format_exception(caught, limit=-6))
        stage.console.print(f"  [red]error[/red] {type(caught).__name__}: {caught}", markup=True)
    failed = [check["name"] for check in stage.checks if not check["passed"]]
    status = "error" if error else "failed" if failed else "passed"
    return {
        "status": status,
        "seconds": time.monotonic() - began,
        "budget_seconds": budget,
        "error": error,
        "failed": failed,
        "checks": stage.checks,
        "figures": stage.figures,
    }


def facts(device: torch.device) -> dict[str, Any]:
    """What the figures depend on."""
    about: dict[str, Any] = {"type": device.type, "name": platform.processor() or "cpu"}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        about |= {
            "name": properties.name,
            "capability": [properties.major, properties.minor],
            "memory_bytes": properties.total_memory,
        }
    try:
        own = importlib.metadata.version("rowsep")
    except importlib.metadata.PackageNotFoundError:
        own = "not installed"
    return {
        "device": about,
        "versions": {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "rowsep": own,
        },
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write(record: dict[str, Any], path: Path) -> None:
    """Replace the JSON in one step; what is not finite is written as a word."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(_finite(record), indent=1, allow_nan=False) + "\n")
    os.replace(draft, path)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: list[str] | None = None) -> int:
    """Run every stage; 0 if all passed, 1 if not, 2 if there is no device to run on."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.device_check",
        description="Check and time all-pairs passes and solvers on a device.",
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


if __name__ == "__main__":
    sys.exit(main())
