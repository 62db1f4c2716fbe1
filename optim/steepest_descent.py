"""SteepestDescent: momentum with the steepest step of bounded diameter."""

from typing import Any

from torch import Tensor

from optim.base import HeadOptimizer, real_rows
from optim.updates.steepest import steepest
from packing import checks


class SteepestDescent(HeadOptimizer):
    """Momentum with the steepest update of diameter 1: `W <- W - lr argmax_{D(S) <= 1} <m, S>`.

    `RowSeparation` without separation: `lr` means the same, the first-order decrease is as large as
    `passes` passes make it, and tokens with momenta of one direction move as one.
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
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: diameter of the step: the largest change of a pair's log-odds per unit of the
                hidden state's norm.
            momentum: decay of the average, in [0, 1).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            passes: most all-pairs passes, at least 2; see `optim.updates.steepest`.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding and are not moved, but for decay.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        options = dict(
            lr=lr,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            passes=passes,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_count(options["passes"], "passes", 2)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return steepest(
            momentum,
            passes=group["passes"],
            vocab_dim=group["vocab_dim"],
            mask=real_rows(momentum, group),
        )[0]
