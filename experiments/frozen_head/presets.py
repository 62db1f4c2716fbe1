"""The head optimisers and what each preset runs, as data.

Learning rates are in each optimiser's own unit, as in `experiments.lm_head.presets`; the middle one
of each method is the best of a first look at V = 4096.
"""

from dataclasses import replace

from experiments.frozen_head.config import Training
from experiments.lm_head.config import Method
from experiments.lm_head.presets import Preset, Stage


def adamw(title: str, *betas: float, lrs: tuple[float, ...] = (3e-3, 6e-3, 12e-3)) -> Method:
    """AdamW without decay and with a small eps: gradients of rare tokens are far below 1e-8."""
    options = {"betas": betas, "eps": 1e-10, "weight_decay": 0.0}
    return Method(title=title, optimizer="AdamW", options=options, lrs=lrs)


METHODS: dict[str, Method] = {
    "adamw_95": adamw("AdamW, beta2 0.95", 0.9, 0.95, lrs=(1.5e-3, 3e-3, 6e-3)),
    "adamw_99": adamw("AdamW, beta2 0.99", 0.9, 0.99),
    "adamw_look_ahead": Method(
        title="AdamW with look-ahead",
        optimizer="NAdam",
        options={"betas": (0.8, 0.99), "eps": 1e-10, "decoupled_weight_decay": True},
        lrs=(1.5e-3, 3e-3, 6e-3),
    ),
    "rowwise_adam": Method(title="Rowwise Adam", optimizer="RowwiseAdam", lrs=(0.15, 0.3, 0.6)),
    "rowwise_adam_rows": Method(
        title="Rowwise Adam without the polar step",
        optimizer="RowwiseAdam",
        options={"polar": False},
        lrs=(0.5, 1.0, 2.0),
    ),
    "averaged_gram": Method(
        title="Row RMS, then averaged Gram^(-1/2)", optimizer="AveragedGram", lrs=(0.5, 1.0, 2.0)
    ),
    "hidden_covariance": Method(
        title="Row RMS, then hidden covariance^(-1/2)",
        optimizer="HiddenCovariance",
        lrs=(0.5, 1.0, 2.0),
    ),
    "right_polar": Method(
        title="Right polar factor, 8 steps",
        optimizer="RightPolarGradM",
        options={"momentum": 0.9, "num_steps": 8},
        lrs=(0.05, 0.1, 0.2),
    ),
    "row_then_polar": Method(
        title="Row-then-polar",
        optimizer="HybridPolarGradM",
        options={"order": "row_then_polar", "momentum": 0.9, "alpha": 0.0},
        lrs=(0.05, 0.1, 0.2),
    ),
    "normuon": Method(
        title="NorMuon, tuned decays",
        optimizer="NorMuon",
        options={"momentum": 0.8, "beta2": 0.999},
        lrs=(0.15, 0.3, 0.6),
    ),
    "muon": Method(
        title="Muon", optimizer="Muon", options={"weight_decay": 0.0}, lrs=(0.05, 0.1, 0.2)
    ),
    "row_norm": Method(title="Row normalisation", optimizer="RowNormM", lrs=(0.015, 0.03, 0.06)),
    "hidden_row_norm": Method(
        title="Row normalisation, hidden metric", optimizer="HiddenRowNorm", lrs=(0.05, 0.1, 0.2)
    ),
    "sign": Method(title="Sign of the momentum", optimizer="Signum", lrs=(5e-4, 1e-3, 2e-3)),
    "separation_70": Method(
        title="Row separation, floor 0.7",
        optimizer="RowSeparation",
        options={"alignment": 0.7, "passes": 4, "nesterov": False},
        lrs=(0.015, 0.03, 0.06),
    ),
    "steepest": Method(
        title="Steepest step",
        optimizer="SteepestDescent",
        options={"passes": 2, "warm_start": True, "nesterov": False},
        lrs=(0.015, 0.03, 0.06),
    ),
}

LEADERS = ("adamw_99", "averaged_gram", "rowwise_adam", "hidden_covariance", "right_polar")
OTHERS = (
    "adamw_look_ahead",
    "adamw_95",
    "normuon",
    "row_norm",
    "row_then_polar",
    "rowwise_adam_rows",
    "hidden_row_norm",
    "muon",
    "sign",
)
SLOW = ("separation_70", "steepest")
COMPARED = ("adamw_99", "averaged_gram", "rowwise_adam")

SHORT = Training(windows=384, held_out=32, steps=180, evaluate_every=45)
SMALL = Training()
FULL = Training(vocab=49152, evaluate_every=150)


def preset(
    training: Training,
    *stages: tuple[str, ...],
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5),
    extensions: int = 4,
) -> Preset:
    """Stages on one training, from three learning rates of each method."""
    return Preset(
        stages=tuple(Stage(training=training, methods=methods) for methods in stages),
        seeds=seeds,
        lrs=3,
        extensions=extensions,
        table=METHODS,
    )


PRESETS: dict[str, Preset] = {
    "short": preset(SHORT, LEADERS, OTHERS, SLOW, seeds=(1, 2, 3)),
    "look": preset(SMALL, LEADERS, OTHERS, SLOW, seeds=()),
    "small": preset(SMALL, LEADERS, OTHERS, SLOW),
    "pretrained": preset(replace(SMALL, start="pretrained"), LEADERS, OTHERS),
    "shift": preset(replace(SMALL, start="pretrained", text="shakespeare"), LEADERS, OTHERS),
    "full": preset(FULL, COMPARED, LEADERS, OTHERS, seeds=(1, 2, 3)),
}
"""`short` has under half of the text and the steps of `look`; `look` is the sweep of `small`."""
