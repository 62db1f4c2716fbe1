"""All-pairs passes against the bare product `S S^T` and against peers, in the same run.

    python -m benchmarks.pairs [--quick] [--out FILE]

Every figure is a ratio of medians of processor time: waiting for a busy machine does not count, and
the methods take turns, round after round, so that what other load does to caches and clock falls on
all alike. The unit is one blockwise float32 product of all rows with all rows (2 V^2 d operations,
blocks of 1024), on one thread.
"""

import argparse
import datetime
import importlib.metadata
import json
import math
import platform
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.clouds import CACHE, natural, optimised, reach_of, real_like, structured
from benchmarks.iterates import late_iterate
from benchmarks.machine import cpu
from benchmarks.products import bare
from rowsep.packing.pairs import PairList, extremes, forces, soft_extremes
from rowsep.packing.pairs.blocked.sweep import sweep
from rowsep.packing.pairs.rows import prepare
from rowsep.packing.solvers.projected_gradient import hinge

SHAPES = ((8192, 256), (16384, 768))
QUICK = ((2048, 128),)
SHARE = 0.01
"""Active pairs of the pair list."""
SHARES = (0.005, 0.01, 0.02, 0.05)
"""Active pairs of the gradient passes."""
PASSES = 24
"""Passes of the solver up to its late iterate."""
LACKS = {
    "torch.cdist": "pairs, exact values, gradient",
    "sklearn": "maximum, gradient, certificate (float64 products)",
    "faiss": "maximum, self-exclusion, gradient, certificate, symmetry",
}


def cdist(S: Tensor) -> tuple[float, float]:
    """Least and greatest distance by `torch.cdist` over the upper triangle, 512 blocks."""
    low, high = math.inf, 0.0
    parts = S.split(512)
    for k, rows in enumerate(parts):
        for columns in parts[k:]:
            tile = torch.cdist(rows, columns)
            high = max(high, float(tile.max()))
            if columns is rows:
                tile.fill_diagonal_(math.inf)
            low = min(low, float(tile.min()))
    return low, high


def sklearn_nearest(S: Tensor) -> float:
    """Least distance by scikit-learn's brute force."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(S.numpy()).kneighbors()
    return float(found[0].min())


def faiss_nearest(S: Tensor) -> float:
    """Least distance by faiss, the first neighbour being the row itself."""
    import faiss

    index = faiss.IndexFlatL2(S.shape[1])
    index.add(S.numpy())
    return float(index.search(S.numpy(), 2)[0][:, 1].min())


def methods(V: int, d: int) -> dict[str, Callable[[], object]]:
    """What is measured at one shape, by name; the unit comes first."""
    kinds = {"natural": natural(V, d), "real-like": real_like(V, d), "optimised": optimised(V, d)}
    random, tied = kinds["natural"], kinds["optimised"]
    chosen: dict[str, Callable[[], object]] = {"bare product": lambda: bare(random)}
    for name, S in kinds.items():
        chosen[f"extremes, {name}"] = lambda S=S: extremes(S, impl="blocked")
    late = late_iterate(kinds["real-like"] - kinds["real-like"].mean(0), PASSES)
    ends: dict[str, Any] = {"near": late.near**2, "far": late.far**2}
    share = forces(late.rows, hinge(late.near, late.far), **ends).pairs / (V * (V - 1) / 2)
    chosen[f"forces, pass {PASSES} of a solve ({share:.2%})"] = lambda: forces(
        late.rows, hinge(late.near, late.far), **ends
    )
    chosen["forces, tiles of q alone"] = lambda: deque(sweep(prepare(tied, exponent=0)), maxlen=0)
    for share in SHARES:
        reach = reach_of(tied, share)
        push = hinge(reach, math.inf)
        chosen[f"forces, {share:.1%} of pairs, optimised"] = lambda push=push, reach=reach: forces(
            tied, push, near=reach**2, far=math.inf
        )
    reach = reach_of(tied, SHARE)
    push = hinge(reach, math.inf)
    kept = PairList(tied, near=reach**2, far=math.inf, skin=0.005)
    chosen["PairList, build"] = lambda: PairList(tied, near=reach**2, far=math.inf, skin=0.005)
    chosen[f"PairList, forces, {kept.pairs / (V * (V - 1) / 2):.1%}"] = lambda: kept.forces(
        tied, push
    )
    chosen["forces, every pair (dense)"] = lambda: forces(random, torch.reciprocal)
    sharp = math.log(V * (V - 1) / 2) / 0.01
    chosen["soft extremes, gap 1 %, natural"] = lambda: soft_extremes(random, sharp)
    chosen["soft extremes, gap 1 %, optimised"] = lambda: soft_extremes(tied, sharp)
    chosen["soft extremes, beta 20, optimised"] = lambda: soft_extremes(tied, 20.0)
    chosen["torch.cdist blockwise"] = lambda: cdist(random)
    chosen["sklearn NearestNeighbors"] = lambda: sklearn_nearest(random)
    chosen["faiss IndexFlatL2, k = 2"] = lambda: faiss_nearest(random)
    return chosen


def measure(chosen: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of every method in every round, taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in track(range(rounds), "rounds", console=Console(stderr=True)):
        for name, run in chosen.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return seconds


def facts() -> dict[str, str]:
    """What the figures depend on."""
    packages = ("torch", "numpy", "scikit-learn", "faiss-cpu")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return versions | {
        "python": platform.python_version(),
        "cpu": f"{cpu()} ({torch.backends.cpu.get_cpu_capability()})",
        "threads": str(torch.get_num_threads()),
        "date": datetime.date.today().isoformat(),
    }


def report(console: Console, shape: tuple[int, int], seconds: dict[str, list[float]]) -> dict:
    """Print one shape's table and return its figures."""
    unit = statistics.median(seconds["bare product"])
    rate = 2 * shape[0] ** 2 * shape[1] / unit / 1e9
    table = Table(title=f"{shape[0]} x {shape[1]}: unit {unit:.3f} s, {rate:.0f} Gflop/s")
    table.add_column("method")
    table.add_column("ratio", justify="right")
    table.add_column("range", justify="right")
    table.add_column("what it cannot do")
    figures = {}
    for name, times in seconds.items():
        ratios = sorted(t / u for t, u in zip(times, seconds["bare product"], strict=True))
        ratio = statistics.median(times) / unit
        lacks = next((LACKS[peer] for peer in LACKS if name.startswith(peer)), "")
        table.add_row(name, f"{ratio:.3f}", f"{ratios[0]:.2f} - {ratios[-1]:.2f}", lacks)
        figures[name] = {"ratio": ratio, "seconds": times}
    console.print(table)
    return figures


def write(result: dict[str, object], path: Path) -> None:
    """Keep what has been measured so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="All-pairs passes against a bare product.")
    parser.add_argument("--quick", action="store_true", help="one small shape, a minute")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=CACHE / "pairs.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        console = Console(width=120)
        result: dict[str, object] = {"facts": facts()}
        console.print(result["facts"])
        for name, S in ({} if options.quick else structured()).items():
            tasks = {"bare product": partial(bare, S), f"extremes, {name}": partial(extremes, S)}
            result[name] = report(console, (len(S), S.shape[1]), measure(tasks, options.rounds))
            write(result, options.out)
        for shape in QUICK if options.quick else SHAPES:
            seconds = measure(methods(*shape), options.rounds)
            result[f"{shape[0]}x{shape[1]}"] = report(console, shape, seconds)
            write(result, options.out)
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
