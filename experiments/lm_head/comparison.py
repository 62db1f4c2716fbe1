"""The comparison: paired mean differences of the validation loss with 95 % t-intervals.

Two methods are compared on the seeds that both have finished at their best learning rates. Equal
seeds share weights and batches, so the difference is taken seed by seed. The interval says nothing
about other data, sizes or budgets, and one in twenty misses by chance: a table of many has some.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scipy import stats

from experiments.lm_head.plan import Cell, best_lr, cells, on_edge, sweep
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record

CONFIDENCE = 0.95
ADAMW = "adamw"
"""How the names of all AdamW begin."""
ROW_NORM = "row_norm"


class Interval(NamedTuple):
    """A mean of paired differences and where it lies with 95 % confidence; NaN if unknown."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """What the interval supports, for a loss minus a reference's."""
        if self.high < 0:
            return "better"
        if self.low > 0:
            return "worse"
        return "not told apart" if self.pairs > 1 else "too few seeds"


class Line(NamedTuple):
    """One method on one training."""

    vocab: int
    name: str
    lr: float | None
    """Best of the sweep; None while that goes on."""
    edge: bool
    """Whether it lies at the end of the range that was tried."""
    seeds: int
    """Finished seeds of the comparison."""
    loss: float
    """Mean over them, nats a token."""
    bits_per_byte: float
    to_adamw: Interval
    """Against `best_adamw`."""
    to_row_norm: Interval
    head_share: tuple[float, float]
    """Least and largest share of the step time in the head's optimiser; processors differ."""


class Progress(NamedTuple):
    """How far one method on one training has come."""

    vocab: int
    name: str
    lrs: int
    """Learning rates of the sweep that are finished."""
    lrs_of: int
    """Learning rates of the sweep as far as it is known; more follow a best one on the edge."""
    swept: bool
    seeds: int
    seeds_of: int

    @property
    def state(self) -> str:
        """The same in words."""
        if self.swept:
            whole = self.seeds == self.seeds_of
            return "finished" if whole else f"{self.seeds} of {self.seeds_of} seeds"
        if self.lrs:
            return f"sweep: {self.lrs} of at least {self.lrs_of} learning rates"
        return "not begun"


def paired_interval(differences: Sequence[float]) -> Interval:
    """Return the mean of independent differences with its two-sided Student t-interval.

        mean +- t(n-1, 0.975) s / sqrt(n),   s^2 = sum (x - mean)^2 / (n-1)

    Exact for normal differences. With one difference the interval is the whole line, with none the
    mean is NaN; an infinite difference, of a diverged run, makes it infinite.
    """
    n = len(differences)
    if n == 0:
        return Interval(math.nan, -math.inf, math.inf, 0)
    centre = mean(differences)
    if n == 1 or not math.isfinite(centre):
        return Interval(centre, -math.inf, math.inf, n)
    s = math.sqrt(sum((x - centre) ** 2 for x in differences) / (n - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * s / math.sqrt(n)
    return Interval(centre, centre - half, centre + half, n)


def best_adamw(methods: Iterable[tuple[str, int, float]]) -> str | None:
    """Return the AdamW that others are compared with: of least mean loss, once all are finished.

    Until then means over different seeds say little, so the one of most seeds is taken, and of
    least mean loss among those.

    Args:
        methods: name, number of finished seeds and their mean loss of each method.

    Returns:
        Its name, None if no AdamW has a finished seed.
    """
    found = [(-seeds, loss, name) for name, seeds, loss in methods if name.startswith(ADAMW)]
    found = [one for one in found if one[0] < 0]
    return min(found)[2] if found else None


def summarise(preset: Preset, records: Sequence[Record]) -> list[Line]:
    """Return a line for every method of a preset that has begun, by training, best first."""
    by_key, losses = _by_key(records)
    lines: list[Line] = []
    for training in dict.fromkeys(cell.training for cell in cells(preset)):
        group = [cell for cell in cells(preset) if cell.training == training]
        compared = {cell.name: finished(cell, preset, by_key, losses) for cell in group}
        adamw = best_adamw(
            (name, len(mine), mean(one.val_loss for one in mine.values()))
            for name, mine in compared.items()
        )
        found = []
        for cell in group:
            mine = compared[cell.name]
            lr = best_lr(cell, preset, losses)
            if lr is None and not mine:
                continue
            found.append(
                Line(
                    vocab=training.vocab,
                    name=cell.name,
                    lr=lr,
                    edge=on_edge(cell, preset, losses),
                    seeds=len(mine),
                    loss=mean(one.val_loss for one in mine.values()),
                    bits_per_byte=mean(one.bits_per_byte for one in mine.values()),
                    to_adamw=_against(mine, compared.get(adamw or "", {})),
                    to_row_norm=_against(mine, compared.get(ROW_NORM, {})),
                    head_share=_range([one.head_share for one in mine.values()]),
                )
            )
        lines += sorted(found, key=lambda line: (math.isnan(line.loss), line.loss))
    return lines


class Difference(NamedTuple):
    """One method on one training beside a named one."""

    vocab: int
    name: str
    loss: float
    """Mean over its finished seeds, nats a token."""
    interval: Interval
    """Its loss minus the named method's."""


def differences(preset: Preset, records: Sequence[Record], reference: str) -> list[Difference]:
    """Return the paired differences of all methods that have begun to one of them, least first.

    Raises:
        ValueError: the preset has no such method, or no seed of it is finished.
    """
    by_key, losses = _by_key(records)
    found = []
    for cell in cells(preset, (reference,)):
        theirs = finished(cell, preset, by_key, losses)
        compared = [
            (other.name, finished(other, preset, by_key, losses))
            for other in dict.fromkeys(cells(preset))
            if other.training == cell.training and other.name != reference
        ]
        group = [
            Difference(
                vocab=cell.training.vocab,
                name=name,
                loss=mean(one.val_loss for one in mine.values()),
                interval=_against(mine, theirs),
            )
            for name, mine in compared
            if mine.keys() & theirs.keys()
        ]
        found += sorted(group, key=lambda one: one.interval.mean)
    if not found:
        raise ValueError(f"no finished seed of {reference} to compare with")
    return found


def progress(preset: Preset, records: Sequence[Record]) -> list[Progress]:
    """Return how far every method of a preset is, begun or not, in the order of the preset."""
    by_key, losses = _by_key(records)
    found = []
    for cell in cells(preset):
        tried, over = sweep(cell, preset, losses)
        found.append(
            Progress(
                vocab=cell.training.vocab,
                name=cell.name,
                lrs=sum(cell.run(lr, preset.sweep_seed).key in losses for lr in tried),
                lrs_of=len(tried),
                swept=over,
                seeds=len(finished(cell, preset, by_key, losses)),
                seeds_of=len(preset.seeds),
            )
        )
    return found


def finished(
    cell: Cell,
    preset: Preset,
    by_key: Mapping[str, Record],
    losses: Mapping[str, float],
) -> dict[int, Record]:
    """Return the finished runs of the comparison at the best learning rate, by seed.

    Args:
        cell: one method on one training.
        preset: the rules.
        by_key: finished runs by key.
        losses: final losses by key.
    """
    lr = best_lr(cell, preset, losses)
    if lr is None:
        return {}
    keys = {seed: cell.run(lr, seed).key for seed in preset.seeds}
    return {seed: by_key[key] for seed, key in keys.items() if key in by_key}


def _by_key(
    records: Sequence[Record],
) -> tuple[dict[str, Record], dict[str, float]]:
    """The finished runs and their final losses, by key."""
    return {one.key: one for one in records}, {one.key: one.val_loss for one in records}


def _against(mine: Mapping[int, Record], other: Mapping[int, Record]) -> Interval:
    shared = sorted(mine.keys() & other.keys())
    return paired_interval([mine[s].val_loss - other[s].val_loss for s in shared])


def _range(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (math.nan, math.nan)


def mean(values: Iterable[float]) -> float:
    """Return the mean, NaN of nothing."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan
