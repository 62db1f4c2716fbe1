"""The finished runs of the head experiment as its figures need them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.lm_head.comparison import best_adamw, finished, mean
from experiments.lm_head.plan import Cell, cells, sweep
from experiments.lm_head.presets import METHODS, Preset
from experiments.lm_head.record import Record
from experiments.report.marks import Mark, mark


class MissingResultsError(ValueError):
    """What the report is made of is not there."""


@dataclass(frozen=True)
class Shown:
    """One method on one training: the runs that stand for it."""

    name: str
    """Key of the method."""
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
        """Title of the method, and whether it is not final."""
        title = METHODS[self.name].title
        return title if self.final else f"{title} (sweep so far)"


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
        self.marks = self._marks()
        """By method; those to be shown first in front."""

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

    def _marks(self) -> dict[str, Mark]:
        """Return every method of the preset with its mark, those to be shown first in front.

        First the best method of each head optimiser, then the others, then those that have no
        run; within each those at most vocabulary sizes first, then by their distance to the best
        AdamW, the mean over the sizes.
        """
        gaps: dict[str, list[float]] = {cell.name: [] for cell in cells(self.preset)}
        for vocab in self.vocabs:
            adamw = self.adamw(vocab)
            for one in self.shown(vocab):
                gaps[one.name].append(one.loss - (0.0 if adamw is None else adamw.loss))
        ranked = sorted(gaps, key=lambda name: (-len(gaps[name]), mean(gaps[name])))
        best = {METHODS[name].optimizer: name for name in reversed(ranked)}.values()
        ranked.sort(key=lambda name: (not gaps[name], name not in best))
        return {name: mark(index) for index, name in enumerate(ranked)}

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
