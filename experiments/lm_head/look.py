"""One run with options of its own, for a look before a method is added to a preset.

    python -m experiments.lm_head.look row_norm --lr 0.08 --option momentum=0.9

Trains the method on the cpu preset's first training with the sweep's seed and prints the loss,
how far the step moved the log-odds of the pair that it moved most, and the head's share of the
time. Nothing is kept: a look is no comparison.
"""

import ast
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer

from experiments.lm_head.config import Run, Training
from experiments.lm_head.corpus import load_corpus
from experiments.lm_head.presets import METHODS, SMALL
from experiments.lm_head.train import train


class Seen(NamedTuple):
    """What a look shows."""

    loss: float
    """Validation loss after the last step, nats a token."""
    log_odds: float
    """Median over the measured steps of the largest change of a log-odds, nats."""
    head_share: float
    """Of a step's processor time, in the head's optimiser."""


def look(
    name: str, lr: float, options: dict[str, Any], training: Training, seed: int, cache: Path
) -> Seen:
    """Train a method with some of its options replaced, without evaluations on the way.

    Raises:
        ValueError: no such method, or an option that its optimiser refuses.
        TypeError: an option that its optimiser does not have.
    """
    if name not in METHODS:
        raise ValueError(f"method is {name!r}, expected one of {', '.join(METHODS)}")
    method = replace(METHODS[name], options=dict(METHODS[name].options) | options)
    quiet = replace(training, evaluate_every=training.steps + 1)
    outcome = train(Run.of(quiet, name, method, lr, seed), load_corpus(quiet, cache))
    assert outcome is not None  # nothing stops it
    changes = [measure["log_odds"] for measure in outcome["history"]["measures"]]
    return Seen(outcome["val_loss"], statistics.median(changes), outcome["head_share"])


def main(
    name: Annotated[str, typer.Argument(help="of a method in presets.py")],
    lr: Annotated[float, typer.Option()],
    option: Annotated[list[str], typer.Option(help="NAME=VALUE, a Python literal")] = [],  # noqa: B006
    seed: int = 0,
    cache: Path = Path(".cache/lm_head"),
) -> None:
    """Train once and print the loss."""
    options = {}
    for text in option:
        key, _, value = text.partition("=")
        try:
            options[key] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            raise typer.BadParameter(f"--option is {text!r}, expected NAME=LITERAL") from None
    try:
        seen = look(name, lr, options, SMALL, seed, cache)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(
        f"{name}, lr {lr:g}, {options or 'no other options'}, seed {seed}: "
        f"{seen.loss:.4f}, {seen.log_odds:.2f} nats a step, {seen.head_share:.0%} of the time"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    typer.run(main)
