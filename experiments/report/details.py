"""What the mean loss hides: losses by token frequency, and what the updates were like.

    python -m experiments.report.details [--preset cpu] [--results FOLDER]

Prints a Markdown table of the methods whose seeds have begun, and how near the bound on the
log-odds the logged steps came. A value that was not logged stays empty.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from experiments.lm_head.comparison import mean
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, PRESETS
from experiments.lm_head.record import Record
from experiments.lm_head.summary import number, preset_with_runs
from experiments.markdown import markdown_table
from experiments.report.head import Experiment, Shown


class Details(NamedTuple):
    """One method on one training, over the finished seeds of the comparison."""

    vocab: int
    name: str
    seeds: int
    bands: tuple[float, ...]
    """Mean final loss on the targets of each of `diagnostics.BANDS`, nats a token."""
    rho: float
    """Median over the logged steps of delta / D of the change of the weights."""
    alignment: float
    """Median of the alignment of the change with the average of gradients it followed."""
    rank: float
    """Mean effective rank of the gradient that the head passes back, last logged step."""
    logits: float
    """Mean root mean square of the centred logits, last logged step."""
    log_odds: float
    """Median over the logged steps of the largest realised change of a log-odds, nats."""
    of_bound: float
    """Largest ratio of it to `lr D radius`, all logged steps."""


def details(experiment: Experiment) -> list[Details]:
    """Return a line for every method that has a finished seed, lowest loss first."""
    found = []
    for vocab in experiment.vocabs:
        final = [one for one in experiment.shown(vocab) if one.final]
        found += [_details(vocab, one) for one in sorted(final, key=lambda x: x.loss)]
    return found


def markdown(lines: Sequence[Details]) -> str:
    """Return the details as a Markdown table, one row a method, with a line end."""
    head = ["V", "method", "seeds", *band_titles(), "rho", "alignment", "rank back", "logits"]
    head += ["log-odds", "of the bound"]
    rows = []
    for one in lines:
        row = [
            str(one.vocab),
            METHODS[one.name].title,
            str(one.seeds),
            *(number(x, ".3f") for x in one.bands),
        ]
        row += [number(one.rho, ".1g"), number(one.alignment, ".2f"), number(one.rank, ".1f")]
        row += [number(one.logits, ".2f"), number(one.log_odds, ".2f"), number(one.of_bound, ".2f")]
        rows.append(row)
    return markdown_table(head, rows)


def bound_sentence(experiment: Experiment) -> str:
    """Say how near its bound the change of the log-odds came, over all runs of the preset."""
    runs = experiment.used()
    shares = log_odds_shares(runs)
    if not shares:
        return f"No log-odds were logged in {len(runs)} runs."
    return (
        f"In {len(shares)} logged steps of {len(runs)} runs no token pair's log-odds changed by "
        f"more than {math.ceil(1000 * max(shares)) / 1000:.3f} of the bound."
    )


def log_odds_shares(runs: Iterable[Record]) -> list[float]:
    """Return the realised largest change of a log-odds over its bound, for every logged step."""
    return [
        measure["log_odds"] / measure["log_odds_bound"]
        for run in runs
        for measure in run.history["measures"]
        if measure.get("log_odds_bound") and "log_odds" in measure
    ]


def band_titles() -> list[str]:
    """Like "top 1 %", "to 10 %", "to 50 %", "rarest"."""
    middle = [f"to {100 * end:g} %" for end in BANDS[1:-1]]
    return [f"top {100 * BANDS[0]:g} %", *middle, "rarest"]


def _details(vocab: int, one: Shown) -> Details:
    runs = list(one.runs.values())
    measured = [run.history["measures"] for run in runs if run.history["measures"]]
    measures = [measure for each in measured for measure in each]
    last = [each[-1] for each in measured]
    shares = log_odds_shares(runs)
    return Details(
        vocab=vocab,
        name=one.name,
        seeds=len(runs),
        bands=tuple(
            mean(run.band_losses[band] for run in runs if run.band_losses)
            for band in range(len(BANDS))
        ),
        rho=_median(measures, "rho"),
        alignment=_median(measures, "alignment"),
        rank=mean(one["backward_rank"] for one in last if "backward_rank" in one),
        logits=mean(one["logit_rms_centred"] for one in last if "logit_rms_centred" in one),
        log_odds=_median(measures, "log_odds"),
        of_bound=max(shares, default=math.nan),
    )


def _median(measures: Sequence[dict[str, Any]], name: str) -> float:
    values = [measure[name] for measure in measures if name in measure]
    return statistics.median(values) if values else math.nan


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "cpu",
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = Path(
        __file__
    ).parent.parent
    / "lm_head"
    / "results",
) -> None:
    """Print the details of what is finished."""
    experiment = Experiment(*preset_with_runs(preset, results))
    lines = details(experiment)
    if not lines:
        raise typer.BadParameter(
            f"{results} has no finished seed of preset {preset}: give the preset that its runs "
            f"are of, or run `python -m experiments.lm_head --preset {preset}`"
        )
    print(markdown(lines))
    print(bound_sentence(experiment))


if __name__ == "__main__":
    typer.run(main)
