"""RowwiseAdam: adaptive row lengths, one scale for the singular values, a bounded diameter."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rowsep.packing import checks, cloud

from ..updates.rows import as_rows
from ..updates.rowwise_adam import followed_row_rms, rowwise_adam
from .base import real_rows
from .reporting import ReportingOptimizer, log_odds_bound
from .sharding import gathered


class BoundedReport(NamedTuple):
    """What a step did to one parameter; `_asdict()` gives numbers that a logger takes."""

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
        X = (a_i / r_i),  A the centred momentum;  P ~ X (X^T X)^(-1/2)
        W <- (1 - lr weight_decay) W - lr P / D(P)

    Rows whose gradients cancel move less than rows whose gradients agree; the directions of the
    space move alike, as far as the damped polar factor of `rowsep.optim.updates.right_polar` brings
    them; and `lr` means what it means for `RowSeparation`: a step changes no token pair's log-odds
    by more than `lr * ||h||` at a hidden state h.

    The update does not depend on the scale of the gradients, and is zero if they are. The first
    steps need no correction, as one factor common to all rows does not change the update; rows
    that join later, by a larger `num_real_rows`, start with long steps.

    State per parameter: `momentum_buffer`, and `row_rms`, shape (V,), whole on every rank.
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
            polar: bring the singular values of the scaled rows to one scale.
            num_steps: polynomials of the polar factor, see `rowsep.optim.updates.right_polar`.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding; they are not moved, but for decay, and
                count nowhere.
            radius: bound on the norm of the hidden states, such as `sqrt(d)` behind an RMS norm
                without gain; only for `log_odds` in `last_step`.

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

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(p, group)
        rows = p.shape[group["vocab_dim"]]
        state["row_rms"] = torch.zeros(rows, dtype=state["momentum_buffer"].dtype, device=p.device)
        return state

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if "row_rms" not in state:  # cleared, or loaded without
            state.update(self._new_state(p, group) | state)
        before, whole = state["row_rms"], gathered(grad)
        mask = real_rows(whole, group)
        followed = followed_row_rms(
            before.to(p.device), whole, group["beta2"], vocab_dim=group["vocab_dim"], mask=mask
        )
        try:
            state["row_rms"] = followed
            super()._step_parameter(p, grad, group)
        except BaseException:  # an update that fails leaves everything as it was
            state["row_rms"] = before
            raise

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        mask, axis = real_rows(momentum, group), group["vocab_dim"]
        rows = as_rows(momentum, axis)
        followed = rowwise_adam(
            rows,
            state["row_rms"],
            polar=group["polar"],
            num_steps=group["num_steps"],
            mask=mask,
        )
        found, eps = cloud.diameter(followed, mask).value, torch.finfo(followed.dtype).eps
        # how far the exact pass may be off (`rowsep.packing.pairs.extremes`), and the rounding of
        # the product: centred rows are no longer than the diameter, so eps at most
        error = (rows.shape[1] + 64) * 2**-50
        factor = (1 - error - 4 * eps) / found if found > 0 else 0.0
        update, diameter = followed * factor, found * factor * (1 + error + 2 * eps)
        self._report = BoundedReport(
            diameter=diameter,
            alignment=cloud.alignment(rows, update, mask, diameter=diameter),
            cosine=cloud.cosine(rows, update, mask),
            log_odds=log_odds_bound(group, diameter),
        )
        return as_rows(update, axis)
