"""NorMuon: Muon with one adaptive length a row, the published rule nearest to rowwise Adam."""

from typing import Any

import torch
from torch import Tensor

from rowsep.packing import checks

from ..updates.normuon import followed_row_squares, normuon
from ..updates.right_polar import right_polar
from .base import HeadOptimizer, real_rows


class NorMuon(HeadOptimizer):
    """The polar factor of the momentum, over the RMS of each of its rows, at a fixed norm.

        P ~ N (N^T N)^(-1/2),  N the momentum, looked ahead
        v_i <- beta2 v_i + (1 - beta2) ||p_i||^2 / d                  one number a token
        X = (p_i / sqrt(v_i));  W <- (1 - lr weight_decay) W - lr 0.2 sqrt(V d) X / ||X||_F

    Li, Liu, Liang, Chen and Zhao, arXiv 2510.05491; the look-ahead is of their code.

    `RowwiseAdam` divides the momentum before the polar factor, by the RMS of the gradients, and
    holds the diameter where this holds the norm: a step of this one has no bound on the change of
    a pair's log-odds.

    State per parameter: `momentum_buffer`, and `row_squares`, shape (V,), whole on every rank.
    """

    fitted = ("momentum_buffer", "row_squares")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.6e-2,
        *,
        momentum: float = 0.95,
        beta2: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        num_steps: int = 5,
        center: bool = True,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: five times the root mean square of the entries of a step.
            momentum: decay of the average, in [0, 1).
            beta2: decay of the average of squares, in [0, 1). The authors have 0.95 for both; on
                heads 0.8 and 0.999 trained better (docs/results).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            num_steps: polynomials of the polar factor, see `rowsep.optim.updates.right_polar`.
            center: subtract the mean row of the momentum, of its polar factor and of the update, as
                the softmax ignores it; the authors do not.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding and are not moved, but for decay.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        options = dict(
            lr=lr,
            momentum=momentum,
            beta2=beta2,
            nesterov=nesterov,
            weight_decay=weight_decay,
            num_steps=num_steps,
            center=center,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_size(options["beta2"], "beta2")
        if options["beta2"] >= 1:
            raise ValueError(f"beta2 is {options['beta2']}, expected less than 1")
        checks.check_count(options["num_steps"], "num_steps", 1)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = super()._new_state(p, group)
        rows, dtype = p.shape[group["vocab_dim"]], state["momentum_buffer"].dtype
        return state | {"row_squares": torch.zeros(rows, dtype=dtype, device=p.device)}

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        axis, mask = group["vocab_dim"], real_rows(momentum, group)
        polar = right_polar(
            momentum,
            alpha=0.0,
            num_steps=group["num_steps"],
            center=group["center"],
            vocab_dim=axis,
            mask=mask,
        )
        before = state["row_squares"].to(polar.device)
        squares = followed_row_squares(before, polar, group["beta2"], vocab_dim=axis)
        state["row_squares"] = squares
        return normuon(polar, squares, center=group["center"], vocab_dim=axis, mask=mask)
