"""Optimisers of matrices on stacks of matrices, such as the fused experts of a mixture."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..heads.base import check_fits
from ..heads.sharding import is_sharded


class Stacked(Optimizer):
    """Runs an optimiser of matrices on every matrix of 3-D parameters (E, m, n).

        optimiser on p  =  optimiser on p[0], ..., p[E-1], each a parameter of its own

    `torch.optim.Muon` and the optimisers for heads accept matrices only, while the models of
    `transformers` hold the weights of all experts in one tensor. Options are the optimiser's, in
    groups too. State is kept in stacks, (E, ...) per key, in the dtypes that the optimiser chose,
    also when loaded; results are the optimiser's own to the last bit.

    The matrices are visited one after the other: with many small experts that costs more time than
    a batched implementation would.
    """

    def __init__(self, params: Any, optimizer: type[Optimizer], **options: Any) -> None:
        """Take the parameters, and the optimiser with its options.

        Args:
            params: 3-D parameters, named or not, or groups of them.
            optimizer: a class whose state consists of tensors, e.g. `torch.optim.Muon`.
            options: its keyword arguments, checked by the optimiser.

        Raises:
            TypeError: the optimiser keeps state other than tensors, as `RowSeparation` does.
            ValueError: a parameter that is not 3-D.
            NotImplementedError: a DTensor.
        """
        self.optimizer = optimizer
        # what the options default to, whether they are in order and what state there will be, only
        # the optimiser knows
        probe = torch.zeros(1, 1)
        probe.grad = torch.zeros(1, 1)
        trial = optimizer([probe], **options)
        trial.step()
        for key, value in trial.state[probe].items():
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"state {key!r} of {optimizer.__name__} is a {type(value).__name__}, expected "
                    f"tensors, which can be stacked"
                )
        super().__init__(params, trial.defaults)

    @property
    def fitted(self) -> tuple[str, ...]:
        """State that has the parameter's shape, see `rowsep.optim.heads.base.check_fits`."""
        return getattr(self.optimizer, "fitted", ("momentum_buffer",))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group as in `torch.optim.Optimizer` and make the state its optimiser makes at once.

        Raises:
            ValueError, NotImplementedError: as at construction; nothing is added then.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            for p in group["params"]:
                if is_sharded(p):
                    raise NotImplementedError(
                        "stacks of experts sharded as DTensors are not supported; leave them out "
                        "of fully_shard (ignored_params=...) or give them to torch.optim.AdamW"
                    )
                if p.ndim != 3:
                    raise ValueError(
                        f"Stacked expects 3-D parameters, one has shape {tuple(p.shape)}; give it "
                        f"to {self.optimizer.__name__} itself"
                    )
                self._keep(p, *self._matrices(p, group))
        except Exception:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Step every matrix of every parameter that has a gradient; `closure` is called once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    matrices, optimizer = self._matrices(p, group)
                    for matrix, grad in zip(matrices, p.grad.unbind(0), strict=True):
                        matrix.grad = grad
                    optimizer.step()
                    self._keep(p, matrices, optimizer)
        return loss

    def _matrices(self, p: Tensor, group: dict[str, Any]) -> tuple[list[Tensor], Optimizer]:
        """Views of the matrices of `p`, and the optimiser of them in the state they were left in.

        Made anew for every step, as `p` may have been moved or replaced since.
        """
        matrices = list(p.detach().unbind(0))
        options = {key: group[key] for key in self.defaults if key in group}
        optimizer = self.optimizer([{**options, "params": matrices}], lr=options["lr"])  # type: ignore[call-arg]
        for key, stack in self.state[p].items():
            for matrix, value in zip(matrices, stack.unbind(0), strict=True):
                optimizer.state[matrix][key] = value
        return matrices, optimizer

    def _keep(self, p: Tensor, matrices: list[Tensor], optimizer: Optimizer) -> None:
        """Take over state that the optimiser made or replaced; the rest it changed in place."""
        for key, value in optimizer.state.get(matrices[0], {}).items():
            stack = self.state[p].get(key)
            if stack is None or stack.data_ptr() != value.data_ptr():
                self.state[p][key] = torch.stack([optimizer.state[m][key] for m in matrices])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load as in `torch.optim.Optimizer`, but leave the dtypes of the state as they are.

        Raises:
            ValueError: the groups do not fit, or state has another shape than its parameter;
                nothing has been changed then.
        """
        check_fits(self, state_dict)
        super().load_state_dict(state_dict)
        numbers = chain(*(group["params"] for group in state_dict["param_groups"]))
        for number, p in zip(
            numbers, chain(*(group["params"] for group in self.param_groups)), strict=True
        ):
            for key, value in state_dict["state"].get(number, {}).items():
                self.state[p][key] = value.to(p.device, copy=True)

    def __getstate__(self) -> dict[str, Any]:
        """What torch keeps, and the class of the optimiser."""
        return {**super().__getstate__(), "optimizer": self.optimizer}
