"""The pull of the live weights towards their average (PACE, Au and Block, arXiv 2606.25086).

With theta_t the weights before step t = 1, 2, ..., theta' those the optimiser makes of them, and E
the average,

    decay_t   = max((1 + gamma max(0, t - rho))^-kappa, 1e-4)
    lambda    = min(1, lr c decay_t / (sqrt(v_hat) + eps))             per coordinate
    theta_t+1 = theta' + lambda (E_t-1 - theta_t)
    E_t       = (1 - decay_t) E_t-1 + decay_t theta_t+1

for training that returns the average: `eval()` puts it in place of the weights, `train()` puts them
back.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from rowsep.packing import checks


class Pace:
    """Adds the pull to the steps of any torch optimiser, by its hooks.

    `v_hat` is Adam's bias-corrected second moment where the optimiser keeps one (`exp_avg_sq`), as
    published. Elsewhere there is no per-coordinate preconditioner to follow and `sqrt(v_hat) + eps`
    is 1, as for gradient descent; that variant is not in the paper. Parameters without a gradient
    are neither moved nor averaged in that step.

    The average, float32 (float64 for float64 parameters), starts at the weights at construction. It
    and the count of steps travel in the optimiser's `state_dict` under the key `"pace"`, with their
    dtype; checkpoints that reduce the state dict to its standard keys, as
    `torch.distributed.checkpoint` does, lose them. Memory: one float32 copy of the parameters, and
    another one during a step or between `eval()` and `train()`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        strength: float = 0.15,
        kappa: float = 0.2,
        gamma: float = 1.0,
        rho: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        """Attach the pull to an optimiser.

        Args:
            optimizer: made, with all its parameters, before.
            strength: c, the published default.
            kappa: exponent of the decay, the published default.
            gamma: rate of the decay.
            rho: steps without decay.
            eps: as Adam's.

        Raises:
            ValueError, TypeError: a negative or non-finite argument.
        """
        for name, value in (
            ("strength", strength),
            ("kappa", kappa),
            ("gamma", gamma),
            ("rho", rho),
            ("eps", eps),
        ):
            checks.check_size(value, name)
        self.optimizer = optimizer
        self.strength, self.kappa, self.gamma, self.rho = strength, kappa, gamma, rho
        self.eps = eps
        self.steps = 0
        self.average = {p: _wide(p).clone() for p, _ in self._parameters()}
        self._live: dict[Tensor, Tensor] | None = None
        self._before: dict[Tensor, Tensor] = {}
        self._handles = [
            optimizer.register_step_pre_hook(self._remember),
            optimizer.register_step_post_hook(self._pull),
            optimizer.register_state_dict_post_hook(self._save),
            optimizer.register_load_state_dict_pre_hook(self._load),
        ]

    def remove(self) -> None:
        """Leave the optimiser as it was."""
        for handle in self._handles:
            handle.remove()

    def decay(self, step: int) -> float:
        """decay_t at step t = `step`, the first being 1."""
        return max((1 + self.gamma * max(0.0, step - self.rho)) ** -self.kappa, 1e-4)

    @torch.no_grad()
    def eval(self) -> None:
        """Put the average into the model; a second call changes nothing."""
        if self._live is None:
            self._live = {p: p.detach().clone() for p in self.average}
            for p, average in self.average.items():
                p.copy_(average)

    @torch.no_grad()
    def train(self) -> None:
        """Put the live weights back; without `eval` before, nothing happens."""
        if self._live is not None:
            for p, live in self._live.items():
                p.copy_(live)
            self._live = None

    def _parameters(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                yield p, group

    def _remember(self, *_: Any) -> None:
        if self._live is not None:
            raise RuntimeError("the model holds the average: call train() before the next step")
        self._before = {p: p.detach().clone() for p, _ in self._parameters()}

    @torch.no_grad()
    def _pull(self, *_: Any) -> None:
        self.steps += 1
        decay = self.decay(self.steps)
        for p, group in self._parameters():
            if p.grad is None:
                continue
            before = _wide(self._before[p])
            average = self.average.setdefault(p, before.clone())
            pull = (float(group["lr"]) * self.strength * decay / self._scale(p, group)).clamp(max=1)
            p.copy_(_wide(p) + pull * (average - before))
            average.lerp_(_wide(p), decay)
        self._before = {}

    def _scale(self, p: Tensor, group: dict[str, Any]) -> Tensor:
        """`sqrt(v_hat) + eps`, or 1 without a second moment."""
        state = self.optimizer.state.get(p, {})
        if "exp_avg_sq" not in state:
            return torch.ones((), device=p.device)
        second = _wide(state["exp_avg_sq"]) / (1 - group["betas"][1] ** float(state["step"]))
        return second.sqrt() + self.eps

    def _save(self, optimizer: Optimizer, state_dict: dict[str, Any]) -> None:
        del optimizer
        order = [self.average.get(p) for p, _ in self._parameters()]
        state_dict["pace"] = {"steps": self.steps, "average": order}

    def _load(self, optimizer: Optimizer, state_dict: dict[str, Any]) -> None:
        del optimizer
        if "pace" not in state_dict:
            raise ValueError(
                "the state has no 'pace': it was saved without Pace; load it first, then make Pace"
            )
        saved = state_dict.pop("pace")
        self.steps = saved["steps"]
        self.average = {
            p: average.to(p.device, copy=True)
            for (p, _), average in zip(self._parameters(), saved["average"], strict=True)
            if average is not None
        }


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(torch.promote_types(x.dtype, torch.float32))
