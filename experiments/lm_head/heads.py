"""The head optimisers by name: those of `optim`, of torch, and the variants of the ablation.

A variant takes one part of `RowSeparation` away or replaces it. None is meant for use elsewhere.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

import optim
from optim.updates import row_norm, row_separation
from packing import checks, cloud


class RowNormDiameter(optim.RowNormM):
    """Row normalisation brought to diameter one: the bound on the step without the separation."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        return at_diameter_one(super()._update(momentum, group, state))


class RowNormCode(optim.HeadOptimizer):
    """Row normalisation blended with a fixed random code: separation that the data did not choose.

    `u = n + t c` at diameter one, with n the row-normalised momentum, c unit rows drawn once from
    `seed`, and t the largest for which the alignment is at least `alignment`, by bisection.
    """

    def __init__(self, params: Any, lr: float, *, alignment: float, seed: int = 0):
        """Take the floor on the alignment and the seed of the code."""
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=0.95,
                nesterov=False,
                weight_decay=0.0,
                vocab_dim=0,
                num_real_rows=None,
                alignment=alignment,
                seed=seed,
            ),
        )

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        code = random_code(momentum, group["seed"])
        rows = row_norm(momentum)
        low, high = 0.0, 1.0
        for _ in range(6):
            t = (low + high) / 2
            agreed = cloud.alignment(momentum, rows + t * code)
            low, high = (t, high) if agreed >= group["alignment"] else (low, t)
        return at_diameter_one(rows + low * code)


class CodeStart(optim.RowSeparation):
    """Row separation that starts every step from one random code, not from the momentum."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        state["separated"] = random_code(momentum, group["seed"])
        return super()._update(momentum, group | {"warm_start": True}, state)


class HeavyRows(optim.HeadOptimizer):
    """Row separation of the rows with a signal; the others, such as unseen tokens, stay put.

    A row takes part if its momentum, centred, has at least `threshold` times the mean row norm.
    """

    def __init__(self, params: Any, lr: float, *, threshold: float, alignment: float, passes: int):
        """Take the threshold, and floor and passes of `RowSeparation`."""
        checks.check_size(threshold, "threshold")
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=0.95,
                nesterov=False,
                weight_decay=0.0,
                vocab_dim=0,
                num_real_rows=None,
                threshold=threshold,
                alignment=alignment,
                passes=passes,
            ),
        )

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        step = state.get("step", 0)
        state["step"] = step + 1
        norms = (momentum - momentum.mean(dim=0)).norm(dim=1)
        update, _ = row_separation(
            momentum,
            alignment=group["alignment"],
            passes=group["passes"],
            mask=norms >= group["threshold"] * norms.mean(),
            seed=step,
        )
        return update


def at_diameter_one(update: Tensor) -> Tensor:
    """Return the update divided by its diameter; zero stays zero."""
    diameter = cloud.diameter(update).value
    return update / diameter if diameter > 0 else update


def random_code(like: Tensor, seed: int) -> Tensor:
    """Return unit rows in random directions, of the shape and dtype of a matrix."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(like.shape, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1).to(like)


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "AdamW": torch.optim.AdamW,
    "Muon": torch.optim.Muon,
    "Signum": optim.Signum,
    "RowNormM": optim.RowNormM,
    "RightPolarGradM": optim.RightPolarGradM,
    "HybridPolarGradM": optim.HybridPolarGradM,
    "RowSeparation": optim.RowSeparation,
    "SteepestDescent": optim.SteepestDescent,
    "RowNormDiameter": RowNormDiameter,
    "RowNormCode": RowNormCode,
    "CodeStart": CodeStart,
    "HeavyRows": HeavyRows,
}


def direction(optimizer: Optimizer, p: Tensor) -> Tensor:
    """Return the average of gradients that the last step of an optimiser followed.

    The momentum buffer, with the last gradient ahead of it where the group asks for Nesterov's;
    AdamW's first moment.

    Args:
        optimizer: one of `OPTIMIZERS`, after a step.
        p: its parameter, with its gradient still there.
    """
    group, state = optimizer.param_groups[0], optimizer.state[p]
    if "exp_avg" in state:
        return state["exp_avg"]
    buffer = state["momentum_buffer"]
    if not group.get("nesterov", False):
        return buffer
    assert p.grad is not None
    return p.grad.to(buffer.dtype).lerp(buffer, group["momentum"])
