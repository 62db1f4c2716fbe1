"""RowSeparation: the Muon-like optimiser for language-model heads.

Muon brings the singular values of a hidden matrix's momentum to one scale. A head's rows belong to
tokens, and what a step does to the log-odds of two tokens is the distance of their rows in the
update, so this optimiser brings those distances to one scale (docs/how-to/floor_and_lr.md).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rowsep.packing import Solution, checks, cloud
from rowsep.packing.metric import Metric
from rowsep.packing.solve import MEASURES, SOLVERS

from ..hidden_metric import HiddenMetric
from ..updates.row_separation import PRECONDITIONERS, row_separation
from ..updates.rows import as_rows
from .base import real_rows
from .reporting import ReportingOptimizer, log_odds_bound


class StepReport(NamedTuple):
    """What a step did to one parameter; `_asdict()` gives numbers that a logger takes.

    Distances, alignment and cosine are in the metric if there is one.
    """

    diameter: float
    """Largest distance of two rows of the update: 1 within rounding, 0 for a zero update."""
    delta: float
    """Smallest distance of two rows of the update."""
    rho: float
    """`delta / diameter`, between 0 and 1."""
    alignment: float
    """Share of the largest first-order decrease at this diameter, with the momentum as it is."""
    cosine: float
    """Of the update and the centred momentum."""
    met: bool
    """Whether the floor was met (on what `precondition` made of the momentum)."""
    passes: int
    """All-pairs passes spent, those that certify the figures included."""
    log_odds: float | None
    """`lr * diameter * radius`: no pair's log-odds changed by more in the step, decay apart; None
    without a `radius`."""


class RowSeparation(ReportingOptimizer[StepReport]):
    """Momentum with row-separated updates: `W <- (1 - lr weight_decay) W - lr S`, D(S) = 1.

    S maximises the smallest distance of its rows among updates of diameter at most 1 that keep
    `alignment`, the share of the largest first-order decrease of the loss. A step changes no token
    pair's log-odds by more than `lr * ||h||` at a hidden state h: that is the meaning of `lr`. In a
    metric (`rowsep.packing.metric`) D is that of `S Sigma^(1/2)`, and the bound is
    `lr * sqrt(h^T Sigma^-1 h)`.

    The update does not depend on the scale of the gradients, and is zero if they are. It is
    computed in float32 (float64 for float64 parameters) and exact to its rounding; adding it to a
    parameter of a shorter dtype rounds it once more.

    State per parameter: `momentum_buffer`, `step` (steps taken, from which equal rows are parted
    anew each time), and with `warm_start` `separated`, shape (real rows, d), zero until there was
    an update to start from.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        *,
        momentum: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        alignment: float = 0.65,
        measure: str = "decrease",
        passes: int = 4,
        solver: str = "projected_gradient",
        precondition: str = "none",
        warm_start: bool = False,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
        radius: float | None = None,
        seed: int = 0,
        metric: Tensor | Metric | HiddenMetric | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: diameter of the step: the largest change of a pair's log-odds per unit of the
                hidden state's norm.
            momentum: decay of the average, in [0, 1).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            alignment: floor on the agreement with the momentum, -1 to 1. Up to 0.707 it can be
                met in the measure "decrease" for every momentum.
            measure: "decrease" or "cosine", see `rowsep.packing.solve`.
            passes: all-pairs passes of the solver, at least 1; the cost of a step.
            solver: "projected_gradient", "smoothed" or "guttman".
            precondition: "none", "right_polar", "left_polar", "row_norm" or "row_then_polar":
                what of the momentum the update is to agree with.
            warm_start: start from the rows of the step before instead of from the momentum.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding; they are not moved, but for decay, and
                count nowhere.
            radius: bound on the norm of the hidden states, such as `sqrt(d)` behind an RMS norm
                without gain; only for `log_odds` in `last_step`. In a metric, bound on
                `sqrt(h^T Sigma^-1 h)`.
            seed: parts equal rows, differently in every step.
            metric: second moment of the hidden states, shape (d, d), a
                `rowsep.packing.metric.Metric`, or a `rowsep.optim.HiddenMetric` that follows them;
                None for the plain metric.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        options = dict(
            lr=lr,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            alignment=alignment,
            measure=measure,
            passes=passes,
            solver=solver,
            precondition=precondition,
            warm_start=warm_start,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
            radius=radius,
            seed=seed,
            metric=metric,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_floor(options["alignment"], "alignment")
        checks.check_choice(options["measure"], "measure", MEASURES)
        checks.check_choice(options["solver"], "solver", tuple(SOLVERS))
        checks.check_choice(options["precondition"], "precondition", tuple(PRECONDITIONERS))
        checks.check_count(options["passes"], "passes", 1)
        checks.check_count(options["seed"], "seed", 0)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(p, group)
        dtype = state["momentum_buffer"].dtype
        state["step"] = 0
        if group["warm_start"]:
            rows, dim = p.shape if group["vocab_dim"] == 0 else p.shape[::-1]
            real = rows if group["num_real_rows"] is None else group["num_real_rows"]
            state["separated"] = torch.zeros(real, dim, dtype=dtype, device=p.device)
        return state

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        mask, step, start = real_rows(momentum, group), state.get("step", 0), None
        metric = group["metric"]
        if group["warm_start"] and "separated" in state and bool(state["separated"].any()):
            start = state["separated"]
        update, solution = row_separation(
            momentum,
            alignment=group["alignment"],
            measure=group["measure"],
            passes=group["passes"],
            solver=group["solver"],
            precondition=group["precondition"],
            start=start,
            vocab_dim=group["vocab_dim"],
            mask=mask,
            seed=group["seed"] + step,
            metric=metric,
        )
        self._report = _report(solution, as_rows(momentum, group["vocab_dim"]), mask, group, metric)
        state["step"] = step + 1
        if group["warm_start"] and solution.diameter > 0:
            state["separated"] = solution.state
        return update


def _report(
    solution: Solution,
    momentum: Tensor,
    mask: Tensor | None,
    group: dict[str, Any],
    metric: Metric | None,
) -> StepReport:
    alignment, cosine = solution.alignment, solution.cosine
    if group["precondition"] != "none" and solution.diameter > 0:
        alignment = cloud.alignment(
            momentum, solution.update, mask, diameter=solution.diameter, metric=metric
        )
        cosine = cloud.cosine(momentum, solution.update, mask, metric=metric)
    return StepReport(
        diameter=solution.diameter,
        delta=solution.delta,
        rho=solution.rho,
        alignment=alignment,
        cosine=cosine,
        met=solution.met,
        passes=solution.passes,
        log_odds=log_odds_bound(group, solution.diameter),
    )
