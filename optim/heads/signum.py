"""Signum: momentum with the sign as update, the baseline that Scion takes for heads."""

from typing import Any

from torch import Tensor

from ..updates.sign import sign
from .base import HeadOptimizer, real_rows


class Signum(HeadOptimizer):
    """Momentum with the sign as update: `W <- W - lr sign(m)`, centred over the vocabulary.

    Bernstein, Wang, Azizzadenesheli and Anandkumar, ICML 2018. Scion (Pethick et al., arXiv
    2502.07529) divides the sign by d: its step `lr` is `lr / d` here.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        *,
        momentum: float = 0.95,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        center: bool = True,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: by which every entry moves before the second centring.
            momentum: decay of the average, in [0, 1).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            center: subtract the mean row before and after.
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
            center=center,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
        )
        super().__init__(params, options)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return sign(
            momentum,
            center=group["center"],
            vocab_dim=group["vocab_dim"],
            mask=real_rows(momentum, group),
        )
