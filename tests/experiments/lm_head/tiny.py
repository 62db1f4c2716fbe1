"""A training of a few steps, a plan over it, and finished runs without training."""

import math
from dataclasses import replace

from experiments.lm_head import plan
from experiments.lm_head.config import Run
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, SMOKE, Preset, Stage
from experiments.lm_head.record import Record

TINY = replace(
    SMOKE,
    vocab=320,  # the steepest step of 300 rows or fewer is solved exactly, which takes long
    d=16,
    layers=1,
    context=16,
    steps=6,
    validation_tokens=64,
    evaluate_tokens=32,
    evaluate_every=2,
    measure_every=2,
)
PLANNED = Preset(
    stages=(Stage(training=TINY, methods=("adamw_95", "row_norm")),), seeds=(1, 2), extensions=2
)


def tiny(name="row_norm", *, lr=None, seed=0, training=TINY):
    method = METHODS[name]
    return Run.of(training, name, method, lr or method.lrs[2], seed)


def record(run, loss, **more):
    """The record of a run that came out at a loss; `more` replaces its fields."""
    fields = dict(
        run=run,
        val_loss=loss,
        bits_per_byte=1.5,
        band_losses=(loss,) * len(BANDS),
        diverged=math.isinf(loss),
        seconds=1.0,
        head_share=0.25,
        history={"train": [], "evaluations": [], "measures": []},
        corpus="none",
        rowsep="0",
        torch="0",
        python="0",
        machine="none",
        commit="none",
        date="2026-01-01",
        command="none",
    )
    return Record(**fields | more)


def finish(preset, loss):
    """Run the plan to its end with losses from a function; the runs in order."""
    losses, done = {}, []
    while runs := plan.pending(preset, losses):
        done.append(runs[0])
        losses[runs[0].key] = loss(runs[0])
    return done, losses


def valley(centre):
    return lambda run: abs(math.log(run.lr / centre))


def records(preset, loss):
    """The finished runs of a plan with losses from a function."""
    done, losses = finish(preset, loss)
    return [record(run, losses[run.key]) for run in done]


def level(run):
    """A loss that is least at the middle learning rate, and of row_norm about 0.5 higher."""
    return valley(METHODS[run.name].lrs[2])(run) + (0.5 + 0.01 * run.seed) * (
        run.name == "row_norm"
    )
