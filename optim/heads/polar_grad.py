"""RightPolarGradM, LeftPolarGradM and HybridPolarGradM (Lau and Su, arXiv 2605.18106).

    W <- W - lr u,   u = nu^alpha polar(m)     m an average of the gradients

by five steps of the Polar Express, as published: a damped polar factor, which on well-conditioned
momenta is 9 % from the exact one (`rowsep.optim.updates.right_polar` has figures). Unlike the
published classes these centre by default (the paper does for heads), take `eps` relative to the
momentum and call the decay of the average `momentum`.
"""

from typing import Any

from torch import Tensor

from rowsep.packing import checks

from ..updates.hybrid import ORDERS, hybrid
from ..updates.left_polar import left_polar
from ..updates.right_polar import right_polar
from .base import HeadOptimizer, real_rows


class PolarGradM(HeadOptimizer):
    """What the three classes share: options and their checks."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        *,
        momentum: float = 0.95,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        alpha: float = 1.0,
        num_steps: int = 5,
        center: bool = True,
        eps: float = 1e-8,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
    ):
        """Take the parameters and the options, each of which a group may override.

        Args:
            params: matrices, named or not, or groups of them.
            lr: factor of the update.
            momentum: decay of the average, in [0, 1).
            nesterov: look ahead by one gradient.
            weight_decay: decoupled: weights are multiplied by `1 - lr * weight_decay`.
            alpha: power of the nuclear norm `nu`. With 1 the length of a step is proportional to
                the gradients, as in gradient descent; with 0 their scale is lost, as in Muon.
            num_steps: of the Polar Express, at least 1.
            center: subtract the mean row before and after.
            eps: damping, see `rowsep.optim.updates.right_polar`.
            vocab_dim: the axis that counts tokens, 0 or 1.
            num_real_rows: rows from here on are padding and are not moved, but for decay.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                nesterov=nesterov,
                weight_decay=weight_decay,
                alpha=alpha,
                num_steps=num_steps,
                center=center,
                eps=eps,
                vocab_dim=vocab_dim,
                num_real_rows=num_real_rows,
            ),
        )

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_size(options["alpha"], "alpha")
        checks.check_count(options["num_steps"], "num_steps", 1)
        checks.check_size(options["eps"], "eps")


def polar_options(momentum: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a polar update, from the options of a group."""
    chosen = ("alpha", "num_steps", "center", "eps", "vocab_dim")
    return {name: group[name] for name in chosen} | {"mask": real_rows(momentum, group)}


class RightPolarGradM(PolarGradM):
    """Momentum with the right polar factor: `u = nu^alpha M (M^T M)^(-1/2)`, for tall matrices."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return right_polar(momentum, **polar_options(momentum, group))


class LeftPolarGradM(PolarGradM):
    """Momentum with the left polar factor: `u = nu^alpha (M M^T)^(-1/2) M`, for wide matrices.

    It needs memory for V^2 numbers: meant for routers, not for heads.
    """

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return left_polar(momentum, **polar_options(momentum, group))


class HybridPolarGradM(PolarGradM):
    """Momentum with rows normalised after the polar factor, or before it.

    `order="polar_then_row"`, the default of the published class, loses `alpha`; the published
    experiments use `order="row_then_polar"`, whose update grows with `nu`, at most
    `sqrt(min(V, d) V)`, whatever the scale of the gradients.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        *,
        order: str = "polar_then_row",
        momentum: float = 0.95,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        alpha: float = 1.0,
        num_steps: int = 5,
        center: bool = True,
        eps: float = 1e-8,
        vocab_dim: int = 0,
        num_real_rows: int | None = None,
    ):
        """Take `order`, "polar_then_row" or "row_then_polar", and the options of `PolarGradM`.

        Raises:
            TypeError, ValueError: an argument is not as there.
        """
        HeadOptimizer.__init__(
            self,
            params,
            dict(
                lr=lr,
                order=order,
                momentum=momentum,
                nesterov=nesterov,
                weight_decay=weight_decay,
                alpha=alpha,
                num_steps=num_steps,
                center=center,
                eps=eps,
                vocab_dim=vocab_dim,
                num_real_rows=num_real_rows,
            ),
        )

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        super()._check_options(options)
        checks.check_choice(options["order"], "order", ORDERS)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        return hybrid(momentum, order=group["order"], **polar_options(momentum, group))
