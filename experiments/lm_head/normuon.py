"""NorMuon: Muon with one adaptive length a row, the published rule nearest to rowwise Adam."""

from typing import Any

from torch import Tensor

from rowsep import optim
from rowsep.optim.updates import right_polar
from rowsep.packing import checks

SCALE = 0.2
"""Root mean square of an update's entries at learning rate 1, so that one of AdamW carries over."""


class NorMuon(optim.HeadOptimizer):
    """The polar factor of the momentum, over the RMS of each of its rows, at a fixed norm.

        P ~ N (N^T N)^(-1/2),  N the momentum, not centred
        v_i <- beta2 v_i + (1 - beta2) ||p_i||^2 / d
        X = (p_i / sqrt(v_i));  W <- W - lr 0.2 sqrt(V d) X / ||X||_F

    Li, Liu, Liang, Chen and Zhao, arXiv 2510.05491. The polar factor is
    `rowsep.optim.updates.right_polar` where the authors have Newton and Schulz's; the scale is the
    paper's, the look-ahead of their code.

    `rowsep.optim.RowwiseAdam` divides the momentum before the polar factor, by the RMS of the
    gradients over a thousand steps, and holds the diameter where this holds the norm.

    State per parameter: `momentum_buffer`, and `row_squares`, shape (V, 1).
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        *,
        momentum: float = 0.95,
        beta2: float = 0.95,
        nesterov: bool = True,
        num_steps: int = 5,
    ):
        """Take the parameters and the options; the defaults are the authors'.

        Args:
            params: matrices with a row per token.
            lr: root mean square of the entries of a step, over 0.2.
            momentum: decay of the average of gradients.
            beta2: decay of the average of squares, in [0, 1).
            nesterov: look ahead by one gradient.
            num_steps: polynomials of the polar factor.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        options = dict(
            lr=lr,
            momentum=momentum,
            beta2=beta2,
            nesterov=nesterov,
            num_steps=num_steps,
            weight_decay=0.0,
            vocab_dim=0,
            num_real_rows=None,
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
        return state | {"row_squares": state["momentum_buffer"].new_zeros(len(p), 1)}

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        polar = right_polar(momentum, alpha=0.0, num_steps=group["num_steps"], center=False)
        squares = state["row_squares"]
        squares.lerp_(polar.square().mean(dim=1, keepdim=True), 1 - group["beta2"])
        rows = polar / (squares.sqrt() + 1e-10)
        return rows * (SCALE * rows.numel() ** 0.5 / rows.norm().clamp_min(1e-30))
