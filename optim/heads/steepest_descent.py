"""SteepestDescent: momentum with the steepest step of bounded diameter."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rowsep.packing import checks
from rowsep.packing.metric import Metric
from rowsep.packing.solvers.steepest.flow import Flow

from ..hidden_metric import HiddenMetric
from ..updates.steepest import steepest
from .base import real_rows
from .reporting import ReportingOptimizer

PAIRS_A_ROW = 24
"""Of the flow kept for the next step; solvers leave about 20."""


class SteepestReport(NamedTuple):
    """What a step did to one parameter; `_asdict()` gives numbers that a logger takes."""

    diameter: float
    """Largest distance of two rows of the update, in the metric if there is one: 1 within rounding,
    0 for a zero update."""
    alignment: float
    """Share of the largest first-order decrease that Jung's theorem allows at this diameter."""
    gap: float
    """No update of this diameter decreases the loss to first order by more than 1/(1 - gap)."""
    passes: int
    """All-pairs passes spent, those that certify the figures included."""


class SteepestDescent(ReportingOptimizer[SteepestReport]):
    """Momentum with the steepest update of diameter 1: `W <- W - lr argmax_{D(S) <= 1} <m, S>`.

    `RowSeparation` without separation: `lr` means the same, the first-order decrease is as large as
    `passes` passes make it, and tokens with momenta of one direction move as one.

    State per parameter: `momentum_buffer`, and with `warm_start` `flow_pairs`, `flow_weights` and
    `flow_positions`, the flow of the step before: 24 pairs a row, zero until there was an update.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        *,
        momentum: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        passes: int = 8,
        warm_start: bool = False,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
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
            passes: most all-pairs passes, at least 2; see `rowsep.optim.updates.steepest`.
            warm_start: go on from the flow of the step before, so that few passes come nearer to
                the optimum from step to step. Without effect up to 300 rows.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding and are not moved, but for decay.
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
            passes=passes,
            warm_start=warm_start,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
            metric=metric,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_count(options["passes"], "passes", 2)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(p, group)
        if group["warm_start"]:
            rows, dim = p.shape if group["vocab_dim"] == 0 else p.shape[::-1]
            like = torch.zeros(0, dtype=state["momentum_buffer"].dtype, device=p.device)
            none = Flow(like.new_zeros(0, 2).long(), like, like.new_zeros(rows, dim))
            state.update(_kept(none, like.dtype))
        return state

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        start = None
        if group["warm_start"] and "flow_weights" in state and bool(state["flow_weights"].any()):
            # parameters may have moved to another device since the flow was kept
            names = ("flow_pairs", "flow_weights", "flow_positions")
            start = Flow(*(state[name].to(momentum.device) for name in names))
        update, step = steepest(
            momentum,
            passes=group["passes"],
            start=start,
            vocab_dim=group["vocab_dim"],
            mask=real_rows(momentum, group),
            metric=group["metric"],
        )
        self._report = SteepestReport(step.diameter, step.alignment, step.gap, step.passes)
        if group["warm_start"] and step.value > 0:
            state.update(_kept(step.flow, momentum.dtype))
        return update


def _kept(flow: Flow, dtype: torch.dtype) -> dict[str, Tensor]:
    """A flow as state of a fixed size: its heaviest pairs, weights of sum 1, zeros behind them."""
    size = PAIRS_A_ROW * len(flow.positions)
    count = min(size, len(flow.weights))
    heaviest = flow.weights.topk(count).indices.sort().values
    weights = flow.weights[heaviest]
    pairs = flow.pairs.new_zeros(size, 2)
    pairs[:count] = flow.pairs[heaviest]
    padded = weights.new_zeros(size, dtype=dtype)
    padded[:count] = weights / weights.sum()
    return {
        "flow_pairs": pairs,
        "flow_weights": padded,
        "flow_positions": flow.positions.to(dtype),
    }
