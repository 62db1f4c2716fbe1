"""RowNormM: momentum with row-normalised updates (Lau and Su, arXiv 2605.18106)."""

from typing import Any

from torch import Tensor

from rowsep.packing import checks
from rowsep.packing.metric import Metric

from ..hidden_metric import HiddenMetric
from ..updates.row_norm import row_norm
from .base import HeadOptimizer, real_rows


class RowNormM(HeadOptimizer):
    """Row-normalised momentum: every token moves by about `lr` per step.

        u_i = a_i / (||a_i|| + eps),  A the centred momentum;  u centred again;  W <- W - lr u

    As published: an average of the gradients as momentum, no Nesterov, no bias correction, no
    factor for the shape. Centring, an option there and used for heads, is the default here. In a
    metric (`rowsep.packing.metric`) `||a_i Sigma^(-1/2)||` is the length and `a_i Sigma^-1` the
    direction: the same method on the head `W Sigma^(1/2)`.
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
        eps: float = 1e-8,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
        metric: Tensor | Metric | HiddenMetric | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: length by which a row moves before the second centring.
            momentum: decay of the average, in [0, 1).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            center: subtract the mean row before and after; off for embeddings in the paper.
            eps: see `rowsep.optim.updates.row_norm`.
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
            center=center,
            eps=eps,
            vocab_dim=vocab_dim,
            num_real_rows=num_real_rows,
            metric=metric,
        )
        super().__init__(params, options)

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_size(options["eps"], "eps")

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return row_norm(
            momentum,
            center=group["center"],
            eps=group["eps"],
            vocab_dim=group["vocab_dim"],
            mask=real_rows(momentum, group),
            metric=group["metric"],
        )
