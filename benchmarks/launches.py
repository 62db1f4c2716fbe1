"""What calls of this package would launch, wait for, copy and move on a CUDA device.

    python -m benchmarks.launches [--lines] [--only TEXT] [--out benchmarks/launches.json]

No device is needed: the counts are of `benchmarks.simulated_cuda`, which says what they are and
what they leave out. They are predictions; nothing here was measured on a device. Two shapes, 3 and
6 tiles of 4096 x 4096 pairs, tell what grows with the number of rows; a minute. `--lines` gives
every count to the line of the source that causes it. Tests hold the counts at small sizes to those
in `benchmarks.launch_budgets`.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import torch
import typer
from torch import Tensor
from torch.nn import Parameter

from benchmarks.clouds import real_like
from benchmarks.simulated_cuda import SimulatedCuda, on_device
from rowsep import optim
from rowsep.packing import pairs, rows, solve
from rowsep.packing.pairs import rows as pair_rows
from rowsep.packing.pairs import tiles

SHAPES = ((8192, 256), (12288, 256))

Prepare = Callable[[Tensor], Callable[[], object]]
"""From a momentum on the device to the call that is counted."""


def step_of(make: Callable[[list[Parameter]], torch.optim.Optimizer], before: int = 0) -> Prepare:
    """A step of an optimiser, `before` steps after its first."""

    def prepare(grad: Tensor) -> Callable[[], object]:
        p = Parameter(torch.zeros_like(grad))
        p.grad = grad
        optimiser = make([p])
        for _ in range(before):
            optimiser.step()
        return optimiser.step

    return prepare


CALLS: dict[str, Prepare] = {
    "pairs.extremes": lambda A: lambda: pairs.extremes(A),
    "solve(passes=4)": lambda A: lambda: solve(A, passes=4),
    "RowSeparation": step_of(optim.RowSeparation),
    "RowwiseAdam": step_of(optim.RowwiseAdam),
    "RowNormM": step_of(optim.RowNormM),
    "NorMuon": step_of(optim.NorMuon),
    "RightPolarGradM": step_of(optim.RightPolarGradM),
    # foreach is what torch takes on CUDA for tensors of its own class; the first step makes state
    "torch.optim.AdamW": step_of(lambda p: torch.optim.AdamW(p, foreach=True), before=1),
    "torch.optim.Muon": step_of(torch.optim.Muon, before=1),
}


def count(prepare: Prepare, grad: Tensor) -> SimulatedCuda:
    """Count one call at a momentum, given on the CPU."""
    with SimulatedCuda() as counts:
        call = prepare(on_device(grad))
        counts.reset()
        call()
    return counts


@contextlib.contextmanager
def small_tiles(side: int, dim: int) -> Iterator[None]:
    """Tiles of `side` rows and blocks of as many rows of dimension `dim`, for small clouds."""
    with (
        mock.patch.object(tiles, "WIDE_BLOCK", side),
        mock.patch.object(pair_rows, "WIDE_CHUNK", side * dim),
        mock.patch.object(rows, "WIDE_BLOCK_ENTRIES", side * dim),
    ):
        yield


def main(
    lines: bool = False,
    only: str = "",
    out: Path = Path("benchmarks/launches.json"),
) -> None:
    """Count the calls whose names hold a text and add them to the JSON, saved after each."""
    report = json.loads(out.read_text()) if out.exists() else {}
    for V, d in SHAPES:
        grad = real_like(V, d)
        made = report.setdefault(f"{V}x{d}", {})
        made |= {"command": "python -m benchmarks.launches", "torch": torch.__version__}
        for name, prepare in CALLS.items():
            if only not in name:
                continue
            found = count(prepare, grad)
            figures = made.setdefault("figures", {})[name] = found.figures()
            typer.echo(f"{V} x {d}, {name}: {found.report(100 if lines else 0)}")
            if lines:
                figures |= {"lines": found.lines}
            out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    typer.run(main)
