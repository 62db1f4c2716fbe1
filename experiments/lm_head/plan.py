"""What to run next, from what is finished: sweeps over learning rates, then paired seeds.

For a method and a training, learning rates are tried on the sweep's seed until the best one lies
between two others; then the seeds of the comparison are run at the best. The sweep's seed is not
one of them, so choosing the best of several does not favour what has more to choose from.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from experiments.lm_head.config import Method, Run
from experiments.lm_head.presets import METHODS, Preset


@dataclass(frozen=True)
class Cell:
    """One method on one training."""

    training: Any
    name: str
    table: Mapping[str, Method] = field(default_factory=lambda: METHODS, compare=False, repr=False)

    @property
    def method(self) -> Method:
        """Its entry in the table."""
        return self.table[self.name]

    def run(self, lr: float, seed: int) -> Run:
        """Return one of its runs."""
        return _run(self, lr, seed)


@lru_cache(maxsize=4096)
def _run(cell: Cell, lr: float, seed: int) -> Run:
    return Run.of(cell.training, cell.name, cell.method, lr, seed)


def cells(preset: Preset, only: tuple[str, ...] = ()) -> list[Cell]:
    """Return the cells of a preset in order, those of the methods in `only` if there are any.

    Raises:
        ValueError: `only` names a method that the preset does not have.
    """
    listed = [
        Cell(stage.training, name, preset.table)
        for stage in preset.stages
        for name in stage.methods
    ]
    names = {cell.name for cell in listed}
    unknown = sorted(set(only) - names)
    if unknown:
        raise ValueError(f"no method {', '.join(unknown)} here: {', '.join(sorted(names))}")
    return [cell for cell in listed if not only or cell.name in only]


def candidates(cell: Cell, preset: Preset) -> tuple[float, ...]:
    """Return every learning rate that the sweep may come to, ascending.

    The method's own, the middle `preset.lrs` of them, and `preset.extensions` more on either side.
    """
    own = cell.method.lrs
    skip = max(0, (len(own) - preset.lrs) // 2)
    own = own[skip : skip + preset.lrs]
    ratio = own[1] / own[0]
    below = [own[0] / ratio**k for k in range(preset.extensions, 0, -1)]
    above = [own[-1] * ratio**k for k in range(1, preset.extensions + 1)]
    return tuple(float(f"{lr:.4g}") for lr in (*below, *own, *above))


def sweep(cell: Cell, preset: Preset, losses: Mapping[str, float]) -> tuple[list[float], bool]:
    """Return the learning rates of the sweep so far, and whether it is over.

    A sweep is over when all of its learning rates are finished and the best one is not on the
    edge, or the extensions are used up.

    Args:
        cell: what is tuned.
        preset: the rules.
        losses: final loss of every finished run, by key.
    """
    all_lrs = candidates(cell, preset)
    low, high = preset.extensions, preset.extensions + preset.lrs
    while True:
        tried = list(all_lrs[low:high])
        found = [losses.get(cell.run(lr, preset.sweep_seed).key) for lr in tried]
        if any(loss is None for loss in found):
            return tried, False
        best = min(range(len(tried)), key=lambda i: _loss(found[i]))
        used = len(tried) - preset.lrs
        if used >= preset.extensions or 0 < best < len(tried) - 1:
            return tried, True
        low, high = (low - 1, high) if best == 0 else (low, high + 1)


def best_lr(cell: Cell, preset: Preset, losses: Mapping[str, float]) -> float | None:
    """Return the learning rate of least loss in a sweep that is over, else None."""
    tried, over = sweep(cell, preset, losses)
    if not over:
        return None
    return min(tried, key=lambda lr: losses[cell.run(lr, preset.sweep_seed).key])


def on_edge(cell: Cell, preset: Preset, losses: Mapping[str, float]) -> bool:
    """Return whether a sweep that is over has its best learning rate at the end of its range."""
    tried, _ = sweep(cell, preset, losses)
    return best_lr(cell, preset, losses) in (tried[0], tried[-1])


def pending(preset: Preset, losses: Mapping[str, float], only: tuple[str, ...] = ()) -> list[Run]:
    """Return the runs that can be started now, the most useful first.

    Stage by stage: within one, the sweeps, then seed after seed over all methods, so that every
    comparison grows evenly.
    """
    runs: list[Run] = []
    for stage in preset.stages:
        sweeps: list[Run] = []
        seeds: list[tuple[int, Run]] = []
        for name in stage.methods:
            if only and name not in only:
                continue
            cell = Cell(stage.training, name, preset.table)
            tried, over = sweep(cell, preset, losses)
            if over:
                lr = best_lr(cell, preset, losses)
                assert lr is not None
                seeds += [(i, cell.run(lr, seed)) for i, seed in enumerate(preset.seeds)]
            else:
                sweeps += [cell.run(lr, preset.sweep_seed) for lr in tried]
        runs += sweeps + [run for _, run in sorted(seeds, key=lambda pair: pair[0])]
    return [run for run in runs if run.key not in losses]


def forecast(preset: Preset, losses: Mapping[str, float], only: tuple[str, ...] = ()) -> int:
    """Return how many runs are left, if no sweep is extended beyond what it has tried so far."""
    left = 0
    for cell in cells(preset, only):
        tried, over = sweep(cell, preset, losses)
        left += sum(cell.run(lr, preset.sweep_seed).key not in losses for lr in tried)
        if over:
            lr = best_lr(cell, preset, losses)
            assert lr is not None
            left += sum(cell.run(lr, seed).key not in losses for seed in preset.seeds)
        else:
            left += len(preset.seeds)
    return left


def _loss(loss: float | None) -> float:
    return math.inf if loss is None or math.isnan(loss) else loss
