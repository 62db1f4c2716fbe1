"""The table of head optimisers and what each preset runs, as data.

Learning rates are in each optimiser's own unit: of an entry for AdamW and sign, of a row for row
normalisation, of the diameter for row separation. All of one family take the same average of
gradients, decay 0.95 without Nesterov's look-ahead, as RowNormM was published; torch's Muon is as
its authors use it. Those in `TUNED` have their own. No head is decayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.lm_head.config import Method, Training

ADAMW_LRS = (1e-3, 2e-3, 4e-3, 8e-3, 16e-3)
SIGN_LRS = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
ROW_LRS = (0.01, 0.02, 0.04, 0.08, 0.16)
POLAR_LRS = (0.05, 0.1, 0.2, 0.4, 0.8)
HYBRID_LRS = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
DIAMETER_LRS = (0.02, 0.04, 0.08, 0.16, 0.32)
NORMUON_LRS = (2e-3, 4e-3, 8e-3, 16e-3, 32e-3)
ROWWISE_LRS = (0.03, 0.06, 0.12, 0.24, 0.48)


def adamw(title: str, beta2: float) -> Method:
    """AdamW with the eps of nanochat: gradients of rare tokens are far below 1e-8."""
    options = {"betas": (0.9, beta2), "eps": 1e-10, "weight_decay": 0.0}
    return Method(title=title, optimizer="AdamW", options=options, lrs=ADAMW_LRS)


def separation(title: str, optimizer: str = "RowSeparation", **options: Any) -> Method:
    """Row separation at floor 0.65 with 4 passes and no look-ahead, but for `options`."""
    base: dict[str, Any] = {"alignment": 0.65, "passes": 4, "nesterov": False}
    return Method(title=title, optimizer=optimizer, options=base | options, lrs=DIAMETER_LRS)


def variant(title: str, optimizer: str, **options: Any) -> Method:
    """One of `variants` at the same floor and passes."""
    return Method(
        title=title,
        optimizer=optimizer,
        options=options | {"alignment": 0.65, "passes": 4},
        lrs=DIAMETER_LRS,
    )


METHODS: dict[str, Method] = {
    "adamw_95": adamw("AdamW, beta2 0.95", 0.95),
    "adamw_99": adamw("AdamW, beta2 0.99", 0.99),
    "row_norm": Method(title="Row normalisation", optimizer="RowNormM", lrs=ROW_LRS),
    "row_then_polar": Method(
        title="Row-then-polar",
        optimizer="HybridPolarGradM",
        options={"order": "row_then_polar"},
        lrs=HYBRID_LRS,
    ),
    "muon": Method(title="Muon", optimizer="Muon", options={"weight_decay": 0.0}, lrs=ROW_LRS),
    "sign": Method(title="Sign of the momentum", optimizer="Signum", lrs=SIGN_LRS),
    "right_polar": Method(title="Right polar factor", optimizer="RightPolarGradM", lrs=POLAR_LRS),
    "separation_65": separation("Row separation, floor 0.65"),
    "separation_50": separation("Row separation, floor 0.5", alignment=0.5),
    "separation_70": separation("Row separation, floor 0.7", alignment=0.7),
    "separation_cosine_65": separation("Row separation, cosine 0.65", measure="cosine"),
    "steepest": Method(
        title="Steepest step",
        optimizer="SteepestDescent",
        options={"passes": 2, "warm_start": True, "nesterov": False},
        lrs=DIAMETER_LRS,
    ),
    # decays of the averages and look-ahead tuned too, but in `normuon`
    # (docs/results/heads_method.md)
    "rowwise_adam_80": Method(
        title="Rowwise Adam", optimizer="RowwiseAdam", options={"momentum": 0.8}, lrs=ROWWISE_LRS
    ),
    "adamw_look_ahead": Method(
        title="AdamW with look-ahead",
        optimizer="NAdam",
        options={"betas": (0.8, 0.99), "eps": 1e-10, "decoupled_weight_decay": True},
        lrs=ADAMW_LRS,
    ),
    "muon_80": Method(
        title="Muon, decay 0.8",
        optimizer="Muon",
        options={"momentum": 0.8, "weight_decay": 0.0},
        lrs=ROW_LRS,
    ),
    "normuon": Method(title="NorMuon", optimizer="NorMuon", lrs=NORMUON_LRS),
    "normuon_80": Method(
        title="NorMuon, tuned decays",
        optimizer="NorMuon",
        options={"momentum": 0.8, "beta2": 0.999},
        lrs=NORMUON_LRS,
    ),
    "row_then_polar_look_ahead": Method(
        title="Row-then-polar with look-ahead",
        optimizer="HybridPolarGradM",
        options={"order": "row_then_polar", "momentum": 0.9, "nesterov": True},
        lrs=HYBRID_LRS,
    ),
    # the ablation: one part taken away or replaced
    "row_norm_uncentred": Method(
        title="Row normalisation, not centred",
        optimizer="RowNormM",
        options={"center": False},
        lrs=ROW_LRS,
    ),
    "row_norm_nesterov": Method(
        title="Row normalisation with look-ahead",
        optimizer="RowNormM",
        options={"nesterov": True},
        lrs=ROW_LRS,
    ),
    "row_norm_90": Method(
        title="Row normalisation, decay 0.9",
        optimizer="RowNormM",
        options={"momentum": 0.9},
        lrs=ROW_LRS,
    ),
    "row_then_polar_90": Method(
        title="Row-then-polar, decay 0.9",
        optimizer="HybridPolarGradM",
        options={"order": "row_then_polar", "momentum": 0.9},
        lrs=HYBRID_LRS,
    ),
    "separation_90": separation("Row separation, decay 0.9", momentum=0.9),
    "row_norm_diameter": Method(
        title="Row normalisation at diameter one", optimizer="RowNormDiameter", lrs=DIAMETER_LRS
    ),
    "row_norm_code": Method(
        title="Row normalisation with a random code",
        optimizer="RowNormCode",
        options={"alignment": 0.65},
        lrs=DIAMETER_LRS,
    ),
    "separation_none": separation("Row separation, floor 1", alignment=1.0),
    "separation_one_pass": separation("Row separation, one pass", passes=1),
    "separation_twelve_passes": separation("Row separation, twelve passes", passes=12),
    "separation_nesterov": separation("Row separation with look-ahead", nesterov=True),
    "separation_warm": separation("Row separation, warm start", warm_start=True),
    "separation_code_start": separation("Row separation from a random code", "CodeStart"),
    "separation_heavy_rows": variant(
        "Row separation, heavy rows alone", "HeavyRows", threshold=0.01
    ),
    "separation_right_polar": separation(
        "Row separation of the polar factor", precondition="right_polar"
    ),
    "separation_row_then_polar": separation(
        "Row separation of row-then-polar", precondition="row_then_polar"
    ),
    "separation_rows_alike": variant("Row separation, all rows alike", "WeighedRows", power=0.0),
    "separation_heavy_first": variant("Row separation, heavy rows first", "WeighedRows", power=2.0),
    "separation_signal": variant("Row separation, rows by signal", "SignalRows"),
    "separation_hidden_metric": variant(
        "Row separation, hidden metric", "HiddenMetric", damping=0.01
    ),
    "rowwise_adam_90": Method(
        title="Rowwise Adam, decay 0.9",
        optimizer="RowwiseAdam",
        options={"momentum": 0.9},
        lrs=ROWWISE_LRS,
    ),
    "rowwise_adam_rows": Method(
        title="Rowwise Adam without the polar step",
        optimizer="RowwiseAdam",
        options={"momentum": 0.8, "polar": False},
        lrs=ROWWISE_LRS,
    ),
    "rowwise_adam_plain": Method(
        title="Rowwise Adam without look-ahead",
        optimizer="RowwiseAdam",
        options={"momentum": 0.8, "nesterov": False},
        lrs=ROWWISE_LRS,
    ),
    "rowwise_adam_separated": Method(
        title="Rowwise Adam, then separation",
        optimizer="SeparatedRowwiseAdam",
        options={"floor": 0.95, "momentum": 0.8},
        lrs=ROWWISE_LRS,
    ),
    "rowwise_adam_cut": Method(
        title="Rowwise Adam, long rows cut",
        optimizer="CutRowwiseAdam",
        options={"cap": 2.0, "momentum": 0.8},
        lrs=ROWWISE_LRS,
    ),
    "separation_falling_floor": replace(
        separation("Row separation, falling floor"), schedule={"alignment": (0.7, 0.5)}
    ),
    "separation_rising_floor": replace(
        separation("Row separation, rising floor"), schedule={"alignment": (0.5, 0.7)}
    ),
}

FIRST = ("adamw_95", "row_norm", "separation_65", "row_then_polar")
SECOND = ("adamw_99", "muon", "sign", "right_polar")
THIRD = ("separation_70", "separation_50", "separation_cosine_65")
TUNED = ("rowwise_adam_80", "adamw_look_ahead", "muon_80", "row_then_polar_look_ahead")
SLOW = ("steepest",)
NORMUON = ("normuon", "normuon_80")
REFERENCES = ("adamw_95", "row_norm", "separation_65", "adamw_look_ahead", "rowwise_adam_80")
"""Those of the cpu preset that the ablation is read against; the runs are the same ones."""
PARTS = (
    "row_norm_uncentred",
    "row_norm_diameter",
    "separation_none",
    "row_norm_code",
    "separation_heavy_rows",
    "separation_warm",
    "separation_one_pass",
    "separation_twelve_passes",
)
AVERAGES = (
    "row_norm_90",
    "row_norm_nesterov",
    "row_then_polar_90",
    "separation_90",
    "separation_nesterov",
)
ROWWISE = (
    "rowwise_adam_90",
    "rowwise_adam_rows",
    "rowwise_adam_plain",
    "rowwise_adam_separated",
    "rowwise_adam_cut",
)
IDEAS = (
    "separation_right_polar",
    "separation_row_then_polar",
    "separation_signal",
    "separation_hidden_metric",
    "separation_rows_alike",
    "separation_heavy_first",
    "separation_falling_floor",
    "separation_rising_floor",
    "separation_code_start",
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Methods that are tuned and then compared before the next stage begins."""

    training: Any
    methods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What to run.

    Args:
        stages: in this order.
        seeds: of the comparison, at the best learning rate; not those of the sweep.
        sweep_seed: of the sweep over learning rates.
        lrs: how many of a method's learning rates are tried first.
        extensions: at most this many more, while the best one lies on the edge.
        table: the methods by name.
    """

    stages: tuple[Stage, ...]
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    sweep_seed: int = 0
    lrs: int = 5
    extensions: int = 4
    table: Mapping[str, Method] = field(default_factory=lambda: METHODS, compare=False, repr=False)


SMALL = Training()
LARGE = Training(vocab=8192, steps=200)
SMOKE = Training(
    text="docs",
    vocab=512,
    d=32,
    context=32,
    batch=4,
    steps=12,
    validation_tokens=256,
    evaluate_tokens=128,
    evaluate_every=6,
    measure_every=3,
)
GPU = Training(
    tokenizer="gpt2",
    vocab=50257,
    d=768,
    layers=12,
    heads=12,
    context=1024,
    batch=32,
    steps=320,
    embed_lr=0.003,
    evaluate_tokens=32768,
    device="cuda",
    precision="bfloat16",
)

PRESETS: dict[str, Preset] = {
    "smoke": Preset(
        stages=(Stage(training=SMOKE, methods=FIRST),), seeds=(1, 2), lrs=2, extensions=0
    ),
    "cpu": Preset(
        stages=(
            Stage(training=SMALL, methods=FIRST),
            Stage(training=SMALL, methods=SECOND),
            Stage(training=LARGE, methods=FIRST),
            Stage(training=SMALL, methods=TUNED),
            Stage(training=LARGE, methods=TUNED),
            Stage(training=SMALL, methods=THIRD),
            Stage(training=LARGE, methods=SECOND),
            Stage(training=SMALL, methods=SLOW),
            Stage(training=SMALL, methods=NORMUON),
            Stage(training=LARGE, methods=NORMUON),
        )
    ),
    "ablation": Preset(
        stages=tuple(
            Stage(training=SMALL, methods=methods)
            for methods in (REFERENCES, PARTS, AVERAGES, ROWWISE, IDEAS)
        )
    ),
    "gpu": Preset(
        stages=(Stage(training=GPU, methods=FIRST + SECOND + TUNED + NORMUON),), seeds=(1, 2, 3)
    ),
}
