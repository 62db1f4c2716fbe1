"""The page: sections of figures, tables and sentences, put into `template.html`."""

import datetime
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from experiments.lm_head import comparison, statements, summary
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, Preset
from experiments.lm_head.results import Results
from experiments.report import committed, head_figures
from experiments.report.head import Experiment, MissingResultsError
from experiments.report.marks import SHOWN_FIRST
from experiments.report.style import BACKGROUNDS, GRID, INK, templates
from experiments.table import read
from rowsep.packing.cli.report import rowsep_version

ALWAYS = "all"
"""Instead of a vocabulary size, for a figure that has none."""


@dataclass(frozen=True)
class Section:
    """One figure with what a reader needs to read it."""

    id: str
    title: str
    reading: str
    """One sentence on how to read the figure."""
    command: str
    date: str
    figures: Mapping[str, go.Figure | None]
    """By vocabulary size, or one under `ALWAYS`."""


def write(output: Path, preset: Preset, preset_name: str, results: Path) -> None:
    """Write the page to a file, whose folder is made.

    Raises:
        MissingResultsError: no run of the preset is finished.
        ResultsError: a file of runs cannot be read.
        OSError: the file cannot be written.
    """
    html = build(preset, preset_name, results)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(html, encoding="utf-8")


def build(preset: Preset, preset_name: str, results: Path) -> str:
    """Return the page as HTML that loads nothing from elsewhere.

    Args:
        preset: the rules of the head experiment.
        preset_name: of it, for the command.
        results: folder of its runs.

    Raises:
        MissingResultsError: no run of the preset is finished.
        ResultsError: a file of runs cannot be read.
    """
    experiment = Experiment(preset, Results(results).records())
    used = experiment.used()
    if not used:
        raise MissingResultsError(
            f"{results} has no finished run of preset {preset_name}: run "
            f"`python -m experiments.lm_head --preset {preset_name}` first, or name another "
            "folder with --results"
        )
    command = " ; ".join(sorted({run.command for run in used}))
    dates = sorted({run.date for run in used})
    date = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    lines = comparison.summarise(preset, experiment.records)
    sections = _head_sections(experiment, lines, command, date) + _committed_sections()
    figures = {
        one.id: {key: _json(made) for key, made in one.figures.items() if made is not None}
        for one in sections
    }
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html").render(
        plotly_js=get_plotlyjs(),
        data=_embedded(
            {
                "figures": figures,
                "templates": templates(),
                "methods": list(experiment.marks),
                "shownFirst": SHOWN_FIRST,
            }
        ),
        sections=sections,
        board=_board(experiment, lines),
        answer=statements.answer(preset, experiment.records),
        statements=statements.statements(preset, experiment.records),
        legend=_legend(experiment),
        vocabs={vocab: bool(experiment.shown(vocab)) for vocab in experiment.vocabs},
        colours={"background": BACKGROUNDS, "ink": INK, "grid": GRID},
        runs=len(used),
        preset=preset_name,
        date=date,
        built=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=rowsep_version(),
    )


def _legend(experiment: Experiment) -> list[dict[str, Any]]:
    """Every method that has a run, with the vocabulary sizes where it has."""
    where: dict[str, list[int]] = {}
    for vocab in experiment.vocabs:
        for one in experiment.shown(vocab):
            where.setdefault(one.name, []).append(vocab)
    return [
        {"name": name, "title": METHODS[name].title, "mark": its, "vocabs": where[name]}
        for name, its in experiment.marks.items()
        if name in where
    ]


def _head_sections(
    experiment: Experiment, lines: list[comparison.Line], command: str, date: str
) -> list[Section]:
    def section(
        id: str, title: str, reading: str, draw: Callable[[Experiment, int], go.Figure | None]
    ) -> Section:
        figures = {str(vocab): draw(experiment, vocab) for vocab in experiment.vocabs}
        return Section(id, title, reading, command, date, figures)

    def intervals(_: Experiment, vocab: int) -> go.Figure | None:
        return head_figures.intervals(experiment, [line for line in lines if line.vocab == vocab])

    return [
        section(
            "leaderboard",
            "Leaderboard",
            "Each point is a method's mean loss minus that of the best AdamW on the same seeds, "
            "the bar its 95 % interval: left of zero is better, across zero is not told apart.",
            intervals,
        ),
        section(
            "curves",
            "Loss while training",
            "Loss on the first validation tokens, mean over the seeds at the best learning rate; "
            "dotted lines are single runs of a sweep that still goes on.",
            head_figures.curves,
        ),
        section(
            "differences",
            "Distance to AdamW while training",
            "Training loss minus that of the best AdamW on the same seeds and batches: below zero "
            "a method is ahead; the axis fits what follows the first fifth of the steps.",
            head_figures.differences,
        ),
        section(
            "sensitivity",
            "Sensitivity to the learning rate",
            "Final loss on the seed of the sweep against the learning rate, as a multiple of the "
            "method's best: the flatter, the less tuning matters; dotted sweeps still go on.",
            head_figures.sensitivity,
        ),
        section(
            "rho",
            "Separation, alignment and loss",
            "Final loss against the mean row separation rho of the steps (left) and their mean "
            "alignment with the momentum (right): if rho drove the loss, points would fall to the "
            "right; open symbols are single runs of a sweep.",
            head_figures.separation,
        ),
        section(
            "frequency",
            "Loss by token frequency",
            "Final loss minus the best AdamW's on targets by their frequency rank in the "
            "vocabulary, with 95 % intervals where there are several seeds: below zero is better "
            "on these tokens.",
            head_figures.frequencies,
        ),
        section(
            "rare",
            "Rare tokens while training",
            f"Loss on the first validation tokens, those of the rarest {1 - BANDS[-2]:.0%} of the "
            "vocabulary alone, minus the best AdamW's on the same seeds: below zero is better; few "
            "tokens, so noisy.",
            head_figures.rare,
        ),
    ]


def _committed_sections() -> list[Section]:
    codes, measured = read(committed.CODES), read(committed.QUALITY)
    front = read(committed.FRONT)
    quality_commands = "python -m experiments.codes.table"
    if measured:
        quality_commands += " ; python -m experiments.packing_quality.run"
    momentum = front[0]["momentum"] if front else "one momentum"
    return [
        Section(
            "tradeoff",
            "Separation against alignment",
            "What each solver reaches on the shipped momentum (4096 x 128) at several floors on "
            "the alignment: up and to the right is better.",
            "python -m experiments.separation.run shipped",
            committed.date(committed.SEPARATION),
            {ALWAYS: committed.separation(read(committed.SEPARATION))},
        ),
        Section(
            "fronts",
            "Where the solver starts from",
            f"The same trade on {momentum} by the rows that the projected gradient starts from: "
            "up and to the right is better.",
            f"python -m experiments.codes.front {momentum}",
            committed.date(committed.FRONT),
            {ALWAYS: committed.fronts(front) if front else None},
        ),
        Section(
            "steepest",
            "How steep a step can be",
            "Alignment of row normalisation and of the steepest step found, with the upper bound "
            "that no step of the same diameter exceeds.",
            "python -m experiments.steepest.run",
            committed.date(committed.STEEPEST),
            {ALWAYS: committed.steepest(read(committed.STEEPEST))},
        ),
        Section(
            "quality",
            "Packing quality without a momentum",
            "rho of V rows in d dimensions as a share of its upper bound: 1 cannot be exceeded; "
            "less than 1 may be the bound's fault or the rows'.",
            quality_commands,
            committed.date(committed.CODES, committed.QUALITY),
            {ALWAYS: committed.quality(codes, measured)},
        ),
        Section(
            "minimal-diameter",
            "Minimal diameter of n points",
            "Least ratio of largest to smallest distance known: lower is better, and nothing lies "
            "below the dotted line of its dimension.",
            "python -m experiments.minimal_diameter.run && "
            "python -m experiments.minimal_diameter.records",
            committed.records_date(),
            {ALWAYS: committed.minimal_diameter()},
        ),
    ]


def _board(experiment: Experiment, lines: list[comparison.Line]) -> list[dict[str, Any]]:
    """The rows of the leaderboard: every method of the preset, begun or not."""
    by_name = {(line.vocab, line.name): line for line in lines}
    ranked = {key: rank for rank, key in enumerate(by_name)}
    states = comparison.progress(experiment.preset, experiment.records)
    states.sort(key=lambda one: (one.vocab, ranked.get((one.vocab, one.name), len(ranked))))
    return [
        {
            "progress": one,
            "title": METHODS[one.name].title,
            "mark": experiment.marks[one.name],
            **_cells(by_name.get((one.vocab, one.name))),
        }
        for one in states
    ]


def _cells(line: comparison.Line | None) -> dict[str, Any]:
    """Numbers of a line, None where there is none."""
    if line is None:
        empty = ("loss", "bits", "lr", "time", "time_text", "to_adamw", "to_row_norm")
        return {**dict.fromkeys(empty), "edge": False}

    def number(value: float | None) -> float | None:
        return None if value is None or math.isnan(value) else value

    def interval(one: comparison.Interval) -> comparison.Interval | None:
        return None if one.pairs == 0 or math.isnan(one.mean) else one

    return {
        "loss": number(line.loss),
        "bits": number(line.bits_per_byte),
        "lr": line.lr,
        "edge": line.edge,
        "time": number(line.head_share[0]),
        "time_text": summary.share(*line.head_share),
        "to_adamw": interval(line.to_adamw),
        "to_row_norm": interval(line.to_row_norm),
    }


def _json(made: go.Figure) -> dict[str, Any]:
    text = made.to_json()
    assert text is not None
    return json.loads(text)


def _embedded(value: Any) -> str:
    """JSON that may stand in a script element, whatever its strings hold."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
