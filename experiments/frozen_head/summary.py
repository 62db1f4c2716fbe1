"""What is finished of a preset: the sweeps, the comparison, and how soon AdamW's loss is reached.

python -m experiments.frozen_head.summary [--preset look] [--results FOLDER]
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from experiments.frozen_head.config import BANDS, Training
from experiments.frozen_head.presets import METHODS, PRESETS
from experiments.lm_head.comparison import best_adamw, finished, mean, summarise
from experiments.lm_head.plan import Cell, cells, sweep
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record
from experiments.lm_head.results import SUFFIX, Results, ResultsError
from experiments.lm_head.statements import answer, statements
from experiments.lm_head.summary import markdown, number
from experiments.markdown import markdown_table

RESULTS = Path(__file__).parent / "results"


def swept(preset: Preset, records: Sequence[Record]) -> str:
    """Return the best run of each method's sweep as a Markdown table, best first.

    A band without targets has no loss.
    """
    by_key = {one.key: one for one in records}
    rows = []
    for cell in dict.fromkeys(cells(preset)):
        tried, over = sweep(cell, preset, {key: one.val_loss for key, one in by_key.items()})
        keys = [cell.run(lr, preset.sweep_seed).key for lr in tried]
        found = [by_key[key] for key in keys if key in by_key]
        if found:
            best = min(found, key=lambda one: (math.isnan(one.val_loss), one.val_loss))
            lrs = ", ".join(f"{one.run.lr:g}" for one in found)
            bands = " / ".join(number(loss, ".2f") for loss in best.band_losses)
            seconds = f"{best.seconds / best.run.training.steps:.2f}"
            title = METHODS[cell.name].title + ("" if over else " (not finished)")
            figures = (f"{best.val_loss:.3f}", f"{best.run.lr:g}", lrs, bands, seconds)
            rows.append((best.val_loss, (title, *figures)))
    ends = " / ".join(f"to {end}" for end in BANDS)
    head = ("head", "loss", "at lr", "learning rates", f"{ends} / rest", "s a step")
    return markdown_table(head, [row for _, row in sorted(rows)])


class Reached(NamedTuple):
    """How soon a method is at the final loss of the best AdamW; means over the shared seeds."""

    name: str
    seeds: int
    steps: float
    """As a share of all steps; NaN if a seed never is."""
    seconds: float
    """Of the processor, as a share of AdamW's own."""


def reached(preset: Preset, records: Sequence[Record]) -> list[Reached]:
    """Return when each method reaches AdamW's final loss, soonest first; none without an AdamW.

    Between two evaluations the loss is taken to be linear. The schedules end together, so a method
    that stopped there would be better off with a shorter one.
    """
    by_key = {one.key: one for one in records}
    losses = {key: one.val_loss for key, one in by_key.items()}
    runs = {cell: finished(cell, preset, by_key, losses) for cell in dict.fromkeys(cells(preset))}
    adamw = best_adamw(
        (cell.name, len(mine), mean(one.val_loss for one in mine.values()))
        for cell, mine in runs.items()
    )
    if adamw is None:
        return []
    theirs: dict[int, Record] = next(mine for cell, mine in runs.items() if cell.name == adamw)
    found = [_reached(cell, mine, theirs) for cell, mine in runs.items() if mine.keys() & theirs]
    return sorted(found, key=lambda one: (math.isnan(one.steps), one.steps))


def _reached(cell: Cell, mine: dict[int, Record], theirs: dict[int, Record]) -> Reached:
    shared = sorted(mine.keys() & theirs.keys())
    at = [crossing(mine[seed], theirs[seed].val_loss) for seed in shared]
    return Reached(
        name=cell.name,
        seeds=len(shared),
        steps=mean(steps / cell.training.steps for steps, _ in at),
        seconds=mean(
            seconds / theirs[seed].seconds for seed, (_, seconds) in zip(shared, at, strict=True)
        ),
    )


def crossing(record: Record, level: float) -> tuple[float, float]:
    """Return steps and seconds at which a run is first at a loss, NaN if it never is."""
    course = [(one["step"], one["seconds"], one["loss"]) for one in record.history["evaluations"]]
    course.append((record.run.training.steps, record.seconds, record.val_loss))
    before = None
    for step, seconds, loss in course:
        if loss <= level:
            if before is None:
                return step, seconds
            share = (before[2] - level) / (before[2] - loss)
            at = [
                then + share * (now - then)
                for then, now in zip(before, (step, seconds, loss), strict=True)
            ]
            return at[0], at[1]
        before = (step, seconds, loss)
    return math.nan, math.nan


def markdown_reached(found: Sequence[Reached]) -> str:
    """Return it as a Markdown table, "" for what is never reached."""
    head = ("head", "seeds", "share of the steps", "processor time, AdamW's is 1")
    rows = [
        (METHODS[one.name].title, str(one.seeds), number(one.steps, ".2f"))
        + (number(one.seconds, ".2f"),)
        for one in found
    ]
    return markdown_table(head, rows)


def tables(preset: Preset, records: Sequence[Record]) -> str:
    """Return all that is known of a preset as Markdown."""
    parts = ["Sweeps, one seed:", "", swept(preset, records)]
    lines = [line for line in summarise(preset, records) if line.seeds]
    if lines:
        parts += ["Paired seeds:", "", markdown(lines, METHODS), answer(preset, records), ""]
        parts += [f"- {one.text}" for one in statements(preset, records)]
        parts += ["", "When AdamW's final loss is reached:", ""]
        parts += [markdown_reached(reached(preset, records))]
    return "\n".join(parts)


def read(name: str, results: Path = RESULTS) -> tuple[Preset, list[Record]]:
    """Return a preset by its name and the finished runs of a folder.

    Raises:
        typer.BadParameter: there is no such preset, or no file of runs that can be read.
    """
    if name not in PRESETS:
        raise typer.BadParameter(f"preset is {name!r}, expected one of {', '.join(PRESETS)}")
    store = Results(results, Training)
    if not store.files():
        raise typer.BadParameter(f"no *{SUFFIX} in {results}: give the folder of --results")
    try:
        return PRESETS[name], store.records()
    except ResultsError as error:
        raise typer.BadParameter(str(error)) from None


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "look",
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = RESULTS,
) -> None:
    """Print what is finished of a preset."""
    print(tables(*read(preset, results)))


if __name__ == "__main__":
    typer.run(main)
