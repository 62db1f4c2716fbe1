"""The finished runs of the head experiment as its figures need them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.lm_head.comparison import best_adamw, finished, mean
from experiments.lm_head.plan import Cell, cells, sweep
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record


class MissingResultsError(ValueError):
    """What the report is made of is not there."""


@dataclass(frozen=True)
class Shown:
    """One method on one training: the runs that stand for it."""

    name: str
    final: bool
    """Whether they are the paired seeds; else the best run of the sweep as far as it is."""
    runs: dict[int, Record]
    """By seed."""
    tried: Sequence[Record]
    """Finished runs of the sweep, by ascending learning rate."""
    swept: bool

    @property
    def lr(self) -> float:
        """Learning rate of `runs`."""
        return next(iter(self.runs.values())).run.lr

    @property
    def loss(self) -> float:
        """Mean final loss of `runs`, nats a token."""
        return mean(one.val_loss for one in self.runs.values())

    @property
    def label(self) -> str:
        """Name, and whether it is not final."""
        return self.name if self.final else f"{self.name} (sweep so far)"


class Experiment:
    """Finished runs seen through a preset."""

    def __init__(self, preset: Preset, records: Sequence[Record]):
        """Find the runs that stand for each method of the preset."""
        self.preset = preset
        self.records = records
        self.by_key = {one.key: one for one in records}
        self.losses = {key: one.val_loss for key, one in self.by_key.items()}
        listed = cells(preset)
        self.vocabs = list(dict.fromkeys(cell.training.vocab for cell in listed))
        self._shown = {
            vocab: [
                one
                for cell in listed
                if cell.training.vocab == vocab and (one := self._show(cell)) is not None
            ]
            for vocab in self.vocabs
        }

    def shown(self, vocab: int) -> list[Shown]:
        """Return the methods of a training that have a finite run, in the order of the preset."""
        return self._shown[vocab]

    def adamw(self, vocab: int) -> Shown | None:
        """Return the AdamW that the summary compares with, before that the best of a sweep."""
        shown = self.shown(vocab)
        name = best_adamw((one.name, len(one.runs), one.loss) for one in shown if one.final)
        if name is None:
            name = best_adamw((one.name, 1, one.loss) for one in shown)
        return next((one for one in shown if one.name == name), None)

    def used(self) -> list[Record]:
        """Return the runs that belong to the preset."""
        keys = {
            record.key
            for vocab in self.vocabs
            for one in self.shown(vocab)
            for record in (*one.runs.values(), *one.tried)
        }
        return [record for record in self.records if record.key in keys]

    def _show(self, cell: Cell) -> Shown | None:
        tried, over = sweep(cell, self.preset, self.losses)
        keys = [cell.run(lr, self.preset.sweep_seed).key for lr in tried]
        done = [self.by_key[key] for key in keys if key in self.by_key]
        runs = finished(cell, self.preset, self.by_key, self.losses)
        best = min(done, key=lambda one: one.val_loss, default=None)
        if not runs and best is not None and math.isfinite(best.val_loss):
            return Shown(cell.name, False, {self.preset.sweep_seed: best}, done, over)
        return Shown(cell.name, True, dict(runs), done, over) if runs else None


def curve(
    histories: Sequence[Mapping[str, Any]], part: str, band: int | None = None
) -> dict[int, float]:
    """Return the mean loss over runs by step, at the steps where all of them have it.

    Args:
        histories: of runs, at least one.
        part: "train" or "evaluations".
        band: of `diagnostics.BANDS`, for the loss on its targets; None for all targets.
    """
    each = [
        {
            one["step"]: one["loss"] if band is None else one["band_losses"][band]
            for one in history[part]
            if band is None or "band_losses" in one
        }
        for history in histories
    ]
    steps = sorted(set.intersection(*(set(one) for one in each)))
    return {step: mean(one[step] for one in each) for step in steps}
