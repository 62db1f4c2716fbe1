"""The second moment of the hidden states that a head reads, followed while it trains.

    Sigma <- Sigma + (1 - beta)/(1 - beta^t) (H^T H / n - Sigma)        at step t = 1, 2, ...

with H the n hidden states since the step before: an average with the weights of beta, without
bias. Optimisers with the option `metric` take it from here at each step.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from rowsep.packing import checks
from rowsep.packing.metric import DAMPING, Metric


class HiddenMetric:
    """Follows hidden states by a hook on the head, or as they are given to `observe`.

        metric = HiddenMetric(model.head.in_features)
        metric.follow(model.head)
        optimiser = RowNormM([model.head.weight], metric=metric)

    What passes with gradients enabled counts, so evaluations do not; a batch with NaN or infinite
    states counts nowhere. Several passes before one step, as in gradient accumulation, count as
    one batch. With `torch.distributed` running, states are summed over the ranks in `current`,
    which every rank must then call alike, as optimisers do in their steps.

    Save its `state_dict` beside those of the model and the optimiser: the second moment belongs to
    the data, several groups may share it, and an optimiser may be replaced without losing it. A
    run resumed from all three repeats the uninterrupted one bit for bit.
    """

    def __init__(
        self,
        dim: int,
        *,
        beta: float = 0.99,
        damping: float = DAMPING,
        every: int = 1,
        dtype: torch.dtype = torch.float32,
    ):
        """Start without a hidden state.

        Args:
            dim: d, the width of the hidden states.
            beta: decay of the average, in [0, 1).
            damping: see `rowsep.packing.metric.Metric`; above 0, as a batch may not fill the space.
            every: steps after which the roots are made anew, an eigendecomposition of a (d, d)
                matrix in float64.
            dtype: of sums and average, float32 or float64.

        Raises:
            TypeError, ValueError: an argument is not as above.
        """
        self.dim = checks.check_count(dim, "dim", 1)
        self.beta = checks.check_size(beta, "beta")
        if self.beta >= 1:
            raise ValueError(f"beta is {beta}, expected less than 1")
        self.damping = checks.check_size(damping, "damping")
        if self.damping < 1e-8:
            raise ValueError(f"damping is {damping}, expected at least 1e-8, such as {DAMPING:g}")
        self.every = checks.check_count(every, "every", 1)
        if dtype not in (torch.float32, torch.float64):
            raise TypeError(f"dtype is {dtype}, expected torch.float32 or torch.float64")
        self._steps = 0
        self._moment = torch.zeros(dim, dim, dtype=dtype)
        self._used = torch.zeros(dim, dim, dtype=dtype)
        self._pending = torch.zeros(dim, dim, dtype=dtype)
        self._pending_count = torch.zeros((), dtype=torch.int64)
        self._mask: Tensor | None = None
        self._metric: Metric | None = None

    def follow(self, head: nn.Module) -> RemovableHandle:
        """Observe the first argument of every call of `head` with gradients enabled.

        A loss that multiplies by the head's weight itself does not call it: use `observe` there.

        Returns:
            Torch's handle; its `remove()` ends it.
        """
        return head.register_forward_pre_hook(self._note, with_kwargs=True)

    def count_only(self, mask: Tensor) -> None:
        """Let only some tokens of the next call of the head count, such as those of no padding.

        Args:
            mask: bool, the shape of the hidden states without their last dimension.
        """
        self._mask = mask

    @torch.no_grad()
    def observe(self, hidden: Tensor, mask: Tensor | None = None) -> None:
        """Count hidden states towards the next step.

        Args:
            hidden: shape (..., d), floating dtype.
            mask: bool, shape (...), True for the states that count.

        Raises:
            ValueError: other shapes.
        """
        if hidden.shape[-1:] != (self.dim,):
            raise ValueError(
                f"hidden states have shape {tuple(hidden.shape)}, expected (..., {self.dim})"
            )
        if mask is not None and mask.shape != hidden.shape[:-1]:
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}, expected {tuple(hidden.shape[:-1])}: one "
                f"entry per hidden state"
            )
        rows = hidden.detach().flatten(0, -2) if mask is None else hidden.detach()[mask]
        self._move(rows.device)
        rows = rows.to(self._moment.dtype)
        with torch.autocast(rows.device.type, enabled=False):
            gram = rows.T @ rows
        # without waiting for the device
        fine = gram.isfinite().all()
        self._pending += torch.where(fine, gram, 0.0)
        self._pending_count += len(rows) * fine

    @torch.no_grad()
    def current(self) -> Metric:
        """Return the metric after what was observed since the last call.

        Raises:
            RuntimeError: no hidden state has been observed.
        """
        total, count = self._pending, self._pending_count
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(total)
            torch.distributed.all_reduce(count)
        if int(count) > 0:
            self._steps += 1
            rate = (1 - self.beta) / (1 - self.beta**self._steps)
            self._moment.lerp_((total + total.T) / (2 * count), rate)
            total.zero_()
            count.zero_()
            if (self._steps - 1) % self.every == 0:
                self._used.copy_(self._moment)
                self._metric = None
        if self._steps == 0:
            raise RuntimeError(
                "HiddenMetric has seen no hidden state: follow(head) before the forward pass, call "
                "observe(hidden) where the loss does not call the head, or load_state_dict"
            )
        if self._metric is None:
            self._metric = Metric(self._used, damping=self.damping)
        return self._metric

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the averages and counts, for `torch.load(weights_only=True)`."""
        return {
            "steps": self._steps,
            "second_moment": self._moment.clone(),
            "used": self._used.clone(),
            "pending": self._pending.clone(),
            "pending_count": self._pending_count.clone(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned, in the dtype of this one; nothing is shared.

        Raises:
            ValueError: it is of another dimension, or lacks an entry; nothing has been changed.
        """
        own = self.state_dict()
        missing = sorted(own.keys() - state_dict.keys())
        if missing:
            raise ValueError(
                f"the state dict lacks {', '.join(missing)}; give that of HiddenMetric"
            )
        shape = tuple(state_dict["second_moment"].shape)
        if shape != (self.dim, self.dim):
            raise ValueError(
                f"the state dict is of hidden states of {shape[0]} dimensions, this one of "
                f"{self.dim}; start without it"
            )

        def loaded(name: str) -> Tensor:
            return state_dict[name].to(own[name], copy=True)

        self._steps = int(state_dict["steps"])
        self._moment, self._used = loaded("second_moment"), loaded("used")
        self._pending, self._pending_count = loaded("pending"), loaded("pending_count")
        self._metric = None

    def _note(self, head: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del head
        mask, self._mask = self._mask, None
        if torch.is_grad_enabled():
            self.observe(args[0] if args else next(iter(kwargs.values())), mask)

    def _move(self, device: torch.device) -> None:
        if self._moment.device != device:
            self._moment, self._used = self._moment.to(device), self._used.to(device)
            self._pending = self._pending.to(device)
            self._pending_count = self._pending_count.to(device)


MetricOption = Metric | HiddenMetric | None
"""What the option `metric` of a group holds once it is checked."""


def settled(option: Tensor | MetricOption) -> MetricOption:
    """Return the option `metric` of an optimiser, a second moment as the metric that it makes.

    Raises:
        TypeError, ValueError: it is no metric.
    """
    if option is None or isinstance(option, Metric | HiddenMetric):
        return option
    return Metric(option)


def now(option: MetricOption) -> Metric | None:
    """Return the metric of this step."""
    return option.current() if isinstance(option, HiddenMetric) else option
