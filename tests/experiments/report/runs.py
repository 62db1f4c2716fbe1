"""A preset of two sizes and what its runs come out at, without training."""

import math
from dataclasses import replace

from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, SMOKE, Preset, Stage

NAMES = ("adamw_95", "row_norm", "separation_65", "muon")
SMALL, LARGE = (replace(SMOKE, vocab=vocab) for vocab in (320, 512))
PRESET = Preset(
    stages=tuple(Stage(training=training, methods=NAMES) for training in (SMALL, LARGE)),
    seeds=(1, 2),
    lrs=2,
    extensions=0,
)
BETTER = {"adamw_95": 0.0, "row_norm": -0.3, "separation_65": 0.2, "muon": 0.0}
"""By how much each loss is below AdamW's, which the page must find out from the runs."""


def outcome(run):
    """What `train` would return of a run, from a formula."""
    best = METHODS[run.name].lrs[1]
    loss = 4.0 - BETTER[run.name] + 0.01 * run.seed + abs(math.log(run.lr / best)) / 10
    loss += 0.001 * run.seed * (run.name != "adamw_95")
    diverged = run.name == "row_norm" and run.lr > 1.5 * best
    evaluations = [{"step": 6, "loss": loss + 1, "band_losses": [loss] * len(BANDS)}]
    if run.name == "row_norm":
        del evaluations[0]["band_losses"]
    return {
        "val_loss": math.inf if diverged else loss,
        "bits_per_byte": math.inf if diverged else loss / 2,
        "band_losses": [] if diverged else [loss + band for band in BANDS],
        "diverged": diverged,
        "seconds": 1.0,
        "head_share": 0.25,
        "history": {
            "train": [{"step": step, "loss": loss + 1 / step} for step in (4, 8, 12)],
            "evaluations": evaluations,
            "measures": [
                {"step": step, "rho": step / 8, "alignment": 0.7, "backward_rank": step + run.seed}
                | {"logit_rms_centred": 2.0, "log_odds": 0.1 * step, "log_odds_bound": 0.5 + step}
                for step in (1, 3, 4)
            ],
        },
    }
