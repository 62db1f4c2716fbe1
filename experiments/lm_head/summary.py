"""The comparison: paired mean differences of the validation loss with 95 % t-intervals.

    python -m experiments.lm_head.summary [--preset cpu] [--results FOLDER]

Two methods are compared on the seeds that both have finished at their best learning rates. Equal
seeds share weights and batches, so the difference is taken seed by seed. The interval says nothing
about other data, sizes or budgets, and one in twenty misses by chance: a table of many has some.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Column, Table
from scipy import stats

from experiments.lm_head.plan import Cell, best_lr, cells, on_edge
from experiments.lm_head.presets import PRESETS, Preset
from experiments.lm_head.results import Results

CONFIDENCE = 0.95
ROW_NORM = "row_norm"


class Interval(NamedTuple):
    """A mean of paired differences and where it lies with 95 % confidence; NaN if unknown."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """What the interval supports, for a loss less a reference's."""
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
    """Against the AdamW of least mean loss."""
    to_row_norm: Interval
    head_share: float
    """Mean share of the step time in the head's optimiser."""


def paired_interval(differences: Sequence[float]) -> Interval:
    """Return the mean of independent differences with its two-sided Student t-interval.

        mean +- t(n-1, 0.975) s / sqrt(n),   s^2 = sum (x - mean)^2 / (n-1)

    Exact for normal differences. With one difference the interval is the whole line, with none the
    mean is NaN; an infinite difference, of a diverged run, makes it infinite.
    """
    n = len(differences)
    if n == 0:
        return Interval(math.nan, -math.inf, math.inf, 0)
    mean = sum(differences) / n
    if n == 1 or not math.isfinite(mean):
        return Interval(mean, -math.inf, math.inf, n)
    s = math.sqrt(sum((x - mean) ** 2 for x in differences) / (n - 1))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * s / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def summarise(preset: Preset, rows: Sequence[Mapping[str, str]]) -> list[Line]:
    """Return a line for every method of a preset that has begun, by training, best first."""
    by_key = {row["key"]: row for row in rows}
    losses = {key: float(row["val_loss"]) for key, row in by_key.items()}
    lines: list[Line] = []
    for training in dict.fromkeys(cell.training for cell in cells(preset)):
        group = [cell for cell in cells(preset) if cell.training == training]
        finished = {cell.name: _finished(cell, preset, by_key, losses) for cell in group}
        adamw = min(
            (name for name in finished if name.startswith("adamw") and finished[name]),
            key=lambda name: _mean([float(r["val_loss"]) for r in finished[name].values()]),
            default="",
        )
        found = []
        for cell in group:
            mine = finished[cell.name]
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
                    loss=_mean([float(r["val_loss"]) for r in mine.values()]),
                    bits_per_byte=_mean([float(r["bits_per_byte"]) for r in mine.values()]),
                    to_adamw=_against(mine, finished.get(adamw, {})),
                    to_row_norm=_against(mine, finished.get(ROW_NORM, {})),
                    head_share=_mean([float(r["head_share"]) for r in mine.values()]),
                )
            )
        lines += sorted(found, key=lambda line: (math.isnan(line.loss), line.loss))
    return lines


def show(lines: Sequence[Line], console: Console) -> None:
    """Print the comparison."""
    table = Table("V", Column("method", no_wrap=True), "lr", "seeds", "loss", "bits")
    for header in ("less AdamW's", "less row norm's", "time"):
        table.add_column(header)
    for line in lines:
        lr = "" if line.lr is None else f"{line.lr:g}{' (edge)' if line.edge else ''}"
        table.add_row(
            str(line.vocab),
            line.name,
            lr,
            str(line.seeds),
            f"{line.loss:.4f}",
            f"{line.bits_per_byte:.4f}",
            _cell(line.to_adamw),
            _cell(line.to_row_norm),
            f"{line.head_share:.0%}",
        )
    console.print(table)


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "cpu",
    results: Annotated[Path, typer.Option(help="folder of runs.csv")] = Path(__file__).parent
    / "results",
) -> None:
    """Print the comparison of what is finished."""
    show(summarise(PRESETS[preset], Results(results).rows()), Console())


def _finished(
    cell: Cell,
    preset: Preset,
    by_key: Mapping[str, Mapping[str, str]],
    losses: Mapping[str, float],
) -> dict[int, Mapping[str, str]]:
    """Finished rows of the comparison by seed."""
    lr = best_lr(cell, preset, losses)
    if lr is None:
        return {}
    keys = {seed: cell.run(lr, seed).key for seed in preset.seeds}
    return {seed: by_key[key] for seed, key in keys.items() if key in by_key}


def _against(
    mine: Mapping[int, Mapping[str, str]], other: Mapping[int, Mapping[str, str]]
) -> Interval:
    shared = sorted(mine.keys() & other.keys())
    return paired_interval(
        [float(mine[s]["val_loss"]) - float(other[s]["val_loss"]) for s in shared]
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _cell(interval: Interval) -> str:
    if interval.pairs == 0:
        return ""
    if interval.low == interval.high:
        return "0"
    return f"{interval.mean:+.4f} ± {interval.high - interval.mean:.4f}\n{interval.verdict}"


if __name__ == "__main__":
    typer.run(main)
