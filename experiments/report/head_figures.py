"""The figures of the head experiment, one function each, for one vocabulary size.

All return None if there is nothing to draw yet.
"""

import math
from collections.abc import Sequence
from textwrap import wrap

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from experiments.lm_head.comparison import Interval, Line, mean, paired_interval
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS
from experiments.report.details import band_titles
from experiments.report.head import Experiment, Shown, curve
from experiments.report.marks import Mark
from experiments.report.style import GREY, figure, trace

ROW_HEIGHT = 44
"""Pixels of a line of the leaderboard, which the page gives to those that are shown."""


def intervals(experiment: Experiment, lines: Sequence[Line]) -> go.Figure | None:
    """Draw the loss minus the best AdamW's with its interval for the lines of one vocabulary."""
    drawn = [
        line for line in lines if line.to_adamw.pairs > 1 and math.isfinite(line.to_adamw.mean)
    ]
    if not drawn:
        return None
    title = "loss minus the best<br>AdamW's, nats"  # two lines, for a phone
    made = figure(title, "", height=125, meta={"row": ROW_HEIGHT})
    made.update_yaxes(autorange="reversed", showgrid=False)
    for line in drawn:
        one = line.to_adamw
        made.add_trace(
            trace(
                line.name,
                experiment.marks[line.name],
                mode="markers",
                x=[one.mean],
                y=["<br>".join(wrap(METHODS[line.name].title, 18, break_on_hyphens=False))],
                error_x={"type": "data", "array": [one.high - one.mean], "thickness": 1.8},
                hovertemplate=f"{one.mean:+.4f} [{one.low:+.4f}, {one.high:+.4f}], "
                f"{one.pairs} seeds: {one.verdict}",
            )
        )
    made.add_vline(x=0, line_color=GREY, line_width=1)
    return made


def curves(experiment: Experiment, vocab: int) -> go.Figure | None:
    """Draw the validation loss on the way, mean over the seeds."""
    made = figure("step", "loss, nats a token")
    for one in experiment.shown(vocab):
        found = curve([record.history for record in one.runs.values()], "evaluations")
        made.add_trace(
            trace(
                one.name,
                experiment.marks[one.name],
                dashed=not one.final,
                x=list(found),
                y=list(found.values()),
                hovertemplate="%{y:.4f}<extra>" + one.label + "</extra>",
            )
        )
    made.update_layout(hovermode="x")
    return _unless_empty(made)


def differences(
    experiment: Experiment, vocab: int, part: str = "train", band: int | None = None
) -> go.Figure | None:
    """Draw a loss on the way minus the best AdamW's, mean over the seeds that both have.

    Args:
        experiment: its runs.
        vocab: vocabulary size.
        part: of the histories, as in `head.curve`.
        band: as there.
    """
    adamw = experiment.adamw(vocab)
    if adamw is None:
        return None
    made = figure("step", "loss minus the best AdamW's, nats")
    references = {seed: record.history for seed, record in adamw.runs.items()}
    for one in experiment.shown(vocab):
        seeds = sorted(one.runs.keys() & references.keys())
        if not seeds or one is adamw:
            continue
        mine = curve([one.runs[seed].history for seed in seeds], part, band)
        theirs = curve([references[seed] for seed in seeds], part, band)
        steps = [step for step in mine if step in theirs]
        if not steps:
            continue
        made.add_trace(
            trace(
                one.name,
                experiment.marks[one.name],
                dashed=not one.final,
                x=steps,
                y=[mine[step] - theirs[step] for step in steps],
                hovertemplate="%{y:+.4f}<extra>" + one.label + "</extra>",
            )
        )
    made.update_layout(hovermode="x")
    made.update_yaxes(range=_late_range(made))
    made.add_hline(y=0, line_color=GREY, line_width=1)
    return _unless_empty(made)


def rare(experiment: Experiment, vocab: int) -> go.Figure | None:
    """Draw the validation loss on the rarest tokens on the way, minus the best AdamW's."""
    return differences(experiment, vocab, "evaluations", len(BANDS) - 1)


def sensitivity(experiment: Experiment, vocab: int) -> go.Figure | None:
    """Draw the final loss of the sweep against the learning rate over the best one."""
    made = figure("learning rate / best one", "loss, nats a token")
    made.update_xaxes(
        type="log",
        tickvals=[2.0**k for k in range(-6, 7)],
        ticktext=[f"1/{2**-k}" if k < 0 else str(2**k) for k in range(-6, 7)],
    )
    for one in experiment.shown(vocab):
        finite = [record for record in one.tried if math.isfinite(record.val_loss)]
        if not finite:
            continue
        best = min(finite, key=lambda record: record.val_loss)
        made.add_trace(
            trace(
                one.name,
                experiment.marks[one.name],
                dashed=not one.swept,
                x=[record.run.lr / best.run.lr for record in finite],
                y=[record.val_loss for record in finite],
                text=[f"lr {record.run.lr:g}" for record in finite],
                hovertemplate="%{y:.4f} at %{text}<extra>" + one.label + "</extra>",
            )
        )
    return _unless_empty(made)


def separation(experiment: Experiment, vocab: int) -> go.Figure | None:
    """Draw the final loss against mean rho and mean alignment of the measured steps."""
    made = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.08)
    base = figure("rho of the steps", "loss, nats a token")
    made.update_layout(base.layout)
    made.update_xaxes(title_text="alignment", row=1, col=2)
    made.update_xaxes(rangemode="tozero", nticks=4)
    for one in experiment.shown(vocab):
        measures = [
            measure for record in one.runs.values() for measure in record.history["measures"]
        ]
        if not measures or not math.isfinite(one.loss):
            continue
        rho = mean(measure["rho"] for measure in measures)
        alignment = mean(measure["alignment"] for measure in measures)
        told = f"loss {one.loss:.4f}, rho {rho:.3f}, alignment {alignment:.3f}"
        for column, x in enumerate((rho, alignment), 1):
            made.add_trace(_point(one, experiment.marks[one.name], x, told), row=1, col=column)
    return _unless_empty(made)


def frequencies(experiment: Experiment, vocab: int) -> go.Figure | None:
    """Draw the loss minus the best AdamW's by frequency of the target, with intervals."""
    adamw = experiment.adamw(vocab)
    if adamw is None:
        return None
    made = figure("", "loss minus the best AdamW's, nats")
    others = [one for one in experiment.shown(vocab) if one is not adamw]
    for index, one in enumerate(others):
        found = [_band_interval(one, adamw, band) for band in range(len(BANDS))]
        kept = [(i, interval) for i, interval in enumerate(found) if interval.pairs > 0]
        if not kept:
            continue
        shift = 0.7 * ((index + 0.5) / len(others) - 0.5)
        halves = [i.high - i.mean if math.isfinite(i.high) else 0.0 for _, i in kept]
        made.add_trace(
            trace(
                one.name,
                experiment.marks[one.name],
                mode="markers",
                x=[i + shift for i, _ in kept],
                y=[interval.mean for _, interval in kept],
                error_y={"type": "data", "array": halves, "thickness": 1.2, "width": 2},
                hovertemplate="%{y:+.4f}<extra>" + one.label + "</extra>",
            )
        )
    made.update_xaxes(
        tickvals=list(range(len(BANDS))),
        ticktext=band_titles(),
        range=[-0.5, len(BANDS) - 0.5],
        showgrid=False,
        zeroline=False,
    )
    made.add_hline(y=0, line_color=GREY, line_width=1)
    for edge in range(1, len(BANDS)):
        made.add_vline(x=edge - 0.5, line_color=GREY, line_width=0.5, line_dash="dot")
    return _unless_empty(made)


def _band_interval(one: Shown, other: Shown, band: int) -> Interval:
    """The loss on one of `diagnostics.BANDS` less another method's; diverged runs have none."""
    both = [
        (one.runs[seed].band_losses, other.runs[seed].band_losses)
        for seed in sorted(one.runs.keys() & other.runs.keys())
    ]
    return paired_interval([mine[band] - theirs[band] for mine, theirs in both if mine and theirs])


def _late_range(made: go.Figure) -> list[float] | None:
    """The range of y after the first fifth of the steps, where curves are still far apart."""
    last = max((step for drawn in made.data for step in drawn.x), default=0)
    late = [y for drawn in made.data for x, y in zip(drawn.x, drawn.y, strict=True) if x > last / 5]
    late = [y for y in late if math.isfinite(y)]
    if not late:
        return None
    low, high = min(0.0, *late), max(0.0, *late)
    room = 0.05 * (high - low) or 0.01
    return [low - room, high + room]


def _point(one: Shown, its: Mark, x: float, told: str) -> go.Scatter:
    drawn = trace(
        one.name,
        its,
        mode="markers",
        x=[x],
        y=[one.loss],
        cliponaxis=False,
        hovertemplate=told + "<extra>" + one.label + "</extra>",
    )
    symbol = its.symbol if one.final else f"{its.symbol}-open"
    drawn.update(marker={"symbol": symbol, "size": 10, "line": {"width": 1.5, "color": its.colour}})
    return drawn


def _unless_empty(made: go.Figure) -> go.Figure | None:
    return made if len(tuple(made.data)) else None
