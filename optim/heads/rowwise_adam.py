"""RowwiseAdam: adaptive row lengths, one scale for the singular values, a bounded diameter."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rowsep.packing import checks, cloud
from rowsep.packing.metric import Metric

from ..hidden_metric import HiddenMetric
from ..updates.in_metric import whitened_as
from ..updates.rows import as_rows
from ..updates.rowwise_adam import followed_gram, followed_row_rms, rowwise_adam
from .base import real_rows
from .reporting import ReportingOptimizer, log_odds_bound
from .sharding import gathered

GRAMS = ("step", "averaged", "hidden")


class BoundedReport(NamedTuple):
    """What a step did to one parameter; `_asdict()` gives numbers that a logger takes.

    Diameter, alignment and cosine are in the metric if there is one.
    """

    diameter: float
    """Bound on the distance of two rows of the update, attained within rounding: 1 within
    rounding, 0 for a zero update."""
    alignment: float
    """Share of the largest first-order decrease at this diameter."""
    cosine: float
    """Of the update and the centred momentum."""
    log_odds: float | None
    """`lr * diameter * radius`: no pair's log-odds changed by more in the step, decay apart; None
    without a `radius`."""


class RowwiseAdam(ReportingOptimizer[BoundedReport]):
    """Momentum over the RMS of each row's gradients, then the polar factor, at diameter one.

        r_i^2 <- beta2 r_i^2 + (1 - beta2) ||g_i - mean(g)||^2        one number a token
        X = (a_i / r_i),  A the centred momentum;  P ~ X G^(-1/2),  G = X^T X
        W <- (1 - lr weight_decay) W - lr P / D(P)

    Rows whose gradients cancel move less than rows whose gradients agree; the directions of the
    space move alike, as far as the damped polar factor of `rowsep.optim.updates.right_polar` brings
    them; and `lr` means what it means for `RowSeparation`: a step changes no token pair's log-odds
    by more than `lr * ||h||` at a hidden state h.

    The Gram matrix G may be followed over the steps (`gram="averaged"`, one-sided Shampoo on rows
    of one scale):

        G <- beta3 G + (1 - beta3) Z^T Z / ||Z||_F^2,  Z = ((g_i - mean(g)) / r_i), centred

    In a metric Sigma (`rowsep.packing.metric`) the method runs on the head `W Sigma^(1/2)`: `a_i`
    and `g_i` are multiplied by `Sigma^(-1/2)`, P too, D is that of `P Sigma^(1/2)`, and a step
    changes no pair's log-odds by more than `lr * sqrt(h^T Sigma^-1 h)`. With `gram="hidden"` Sigma
    takes the place of G and nothing else is multiplied: `P = X Sigma^(-1/2)`, with the diameter and
    the bound of the metric. Which rule is steepest where: docs/explanation/metric.md.

    The update does not depend on the scale of the gradients, and is zero if they are. The first
    steps need no correction, as one factor common to all rows does not change the update; rows
    that join later, by a larger `num_real_rows`, start with long steps.

    State per parameter: `momentum_buffer`; `row_rms`, shape (V,); and with `gram="averaged"`
    `gram`, shape (d, d); both whole on every rank.
    """

    fitted = ("momentum_buffer", "row_rms")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-1,
        *,
        momentum: float = 0.8,
        beta2: float = 0.999,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        polar: bool = True,
        num_steps: int = 5,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
        radius: float | None = None,
        gram: str = "step",
        beta3: float = 0.95,
        metric: Tensor | Metric | HiddenMetric | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: diameter of the step: the largest change of a pair's log-odds per unit of the
                hidden state's norm. A few rows, of tokens hardly seen before, are far longer than
                the rest, so it is to be larger than that of `RowSeparation`:
                docs/how-to/floor_and_lr.md.
            momentum: decay of the average, in [0, 1).
            beta2: decay of the average of squares, in [momentum^2, 1): with less, rows whose
                gradients have stopped would take the whole step.
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            polar: bring the singular values of the scaled rows to one scale, by `gram`.
            num_steps: polynomials of the inverse root, see `rowsep.optim.updates.right_polar`.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding; they are not moved, but for decay, and
                count nowhere.
            radius: bound on the norm of the hidden states, such as `sqrt(d)` behind an RMS norm
                without gain; only for `log_odds` in `last_step`. In a metric, bound on
                `sqrt(h^T Sigma^-1 h)`.
            gram: G is that of the rows themselves ("step", the polar factor), its average
                ("averaged"), or the second moment of the hidden states ("hidden", which needs
                `metric`).
            beta3: decay of the average G, in [0, 1).
            metric: second moment of the hidden states, shape (d, d), a
                `rowsep.packing.metric.Metric`, or a `rowsep.optim.HiddenMetric` that follows them;
                None for the plain metric.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        options = dict(
            lr=lr,
            momentum=momentum,
            beta2=beta2,
            nesterov=nesterov,
            weight_decay=weight_decay,
            polar=polar,
            num_steps=num_steps,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
            radius=radius,
            gram=gram,
            beta3=beta3,
            metric=metric,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_size(options["beta2"], "beta2")
        beta, beta2 = options["momentum"], options["beta2"]
        if not beta**2 <= beta2 < 1:
            raise ValueError(
                f"beta2 is {beta2}, expected less than 1 and at least momentum**2 = {beta**2:g}"
            )
        checks.check_count(options["num_steps"], "num_steps", 1)
        checks.check_choice(options["gram"], "gram", GRAMS)
        if options["gram"] == "hidden" and options["metric"] is None:
            raise ValueError(
                "gram is 'hidden' but metric is None; give the second moment of the hidden states, "
                "such as a rowsep.optim.HiddenMetric that follows the head"
            )
        if options["gram"] != "step" and not options["polar"]:
            raise ValueError(f"gram is {options['gram']!r} but polar is False; leave one out")
        if checks.check_size(options["beta3"], "beta3") >= 1:
            raise ValueError(f"beta3 is {options['beta3']}, expected less than 1")

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(p, group)
        rows, dim = p.shape[group["vocab_dim"]], p.shape[1 - group["vocab_dim"]]
        like = torch.zeros(0, dtype=state["momentum_buffer"].dtype, device=p.device)
        state["row_rms"] = like.new_zeros(rows)
        if group["gram"] == "averaged":
            state["gram"] = like.new_zeros(dim, dim)
        return state

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        names = ("row_rms", "gram") if group["gram"] == "averaged" else ("row_rms",)
        if not all(name in state for name in names):  # cleared, or loaded without
            state.update(self._new_state(p, group) | state)
        before, whole = {name: state[name] for name in names}, gathered(grad)
        axis, mask, metric = group["vocab_dim"], real_rows(whole, group), _before_rows(group)
        rms = followed_row_rms(
            before["row_rms"].to(p.device),
            whole,
            group["beta2"],
            vocab_dim=axis,
            mask=mask,
            metric=metric,
        )
        followed = {"row_rms": rms}
        if group["gram"] == "averaged":
            followed["gram"] = followed_gram(
                before["gram"].to(p.device),
                whole,
                rms,
                group["beta3"],
                vocab_dim=axis,
                mask=mask,
                metric=metric,
            )
        try:
            state.update(followed)
            super()._step_parameter(p, grad, group)
        except BaseException:  # an update that fails leaves everything as it was
            state.update(before)
            raise

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        mask, axis = real_rows(momentum, group), group["vocab_dim"]
        rows = as_rows(momentum, axis)
        metric = group["metric"]
        hidden = group["gram"] == "hidden"
        followed = rowwise_adam(
            rows,
            state["row_rms"],
            polar=group["polar"] and not hidden,
            num_steps=group["num_steps"],
            mask=mask,
            metric=_before_rows(group),
            gram=state["gram"] if group["gram"] == "averaged" else None,
        )
        if hidden and metric is not None:
            followed = whitened_as(followed, metric)
        found, eps = cloud.diameter(followed, mask, metric=metric).value, _eps(followed, metric)
        # how far the exact pass may be off (`rowsep.packing.pairs.extremes`), and the rounding of
        # the product: centred rows are no longer than the diameter, so eps at most
        error = (rows.shape[1] + 64) * 2**-50 + (0.0 if metric is None else metric.error)
        factor = (1 - error - 4 * eps) / found if found > 0 else 0.0
        update, diameter = followed * factor, found * factor * (1 + error + 2 * eps)
        self._report = BoundedReport(
            diameter=diameter,
            alignment=cloud.alignment(rows, update, mask, diameter=diameter, metric=metric),
            cosine=cloud.cosine(rows, update, mask, metric=metric),
            log_odds=log_odds_bound(group, diameter),
        )
        return as_rows(update, axis)


def _before_rows(group: dict[str, Any]) -> Metric | None:
    """The metric in which rows are scaled: the plain one where Sigma takes the place of G."""
    return None if group["gram"] == "hidden" else group["metric"]


def _eps(update: Tensor, metric: Metric | None) -> float:
    """A rounding of the update as the metric sees it: roots stretch it by their condition."""
    eps = torch.finfo(update.dtype).eps
    return eps if metric is None else eps * metric.condition
