"""What every head optimiser shares: momentum, decay, checkpoints, sharded parameters.

    m <- beta m + (1 - beta) g                      momentum buffer, an average in float32
    n  = beta m + (1 - beta) g  with Nesterov, else m
    W <- (1 - lr weight_decay) W - lr update(n)     decoupled decay

A subclass supplies `update`, a pure function of the momentum and of what it keeps in `state`.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from rowsep.packing import checks

from ..hidden_metric import now, settled
from .refusals import check_gradients, check_storage
from .sharding import gathered, sharded_like

ADDED = frozenset(
    ("param_names", "name", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")
)
"""Keys of a group that names of parameters and torch's schedulers add."""


class HeadOptimizer(Optimizer):
    """Base of the optimisers for two-dimensional parameters with one row per token.

    It follows `torch.optim`: parameter groups with options of their own, `lr` as a float or a
    tensor of one element, named parameters, closures, hooks, schedulers, `GradScaler`, deepcopy
    and `torch.load(weights_only=True)`. `.grad` is never modified.

    State per parameter: `momentum_buffer`, of the shape and layout of the parameter, float32
    (float64 for float64 parameters). All state is made at construction, so that `state_dict` has
    the same keys on every rank and before the first step, as distributed checkpoints need; loading
    keeps its dtype. A run resumed from a state dict repeats the uninterrupted one bit for bit.

    DTensor parameters (FSDP2) keep a DTensor buffer; the momentum is gathered, every rank computes
    the same update and keeps its own shard.

    A `metric` among the options is not saved: state dicts hold None in its place, and loading keeps
    the one that the optimiser was made with.

    A step under `torch.compile` breaks the graph: the update runs uncompiled, as in eager mode.

    Subclasses define `_update`, and extend `_check_options` and `_new_state` if they have more
    options or more state, and `fitted` if some of it has the parameter's rows.
    """

    fitted: ClassVar[tuple[str, ...]] = ("momentum_buffer",)
    """State whose shape is the parameter's own, so that another one is refused when loading."""

    def __init__(self, params: Any, defaults: dict[str, Any]):
        """Check the options in `defaults`, then the parameters.

        Raises:
            TypeError, ValueError: an option out of range, or a parameter that is not a dense
                real matrix.
        """
        self._check_options(defaults)
        if "metric" in defaults:
            defaults["metric"] = settled(defaults["metric"])
        super().__init__(params, defaults)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        """Return the update for one parameter.

        Args:
            momentum: the whole matrix, an ordinary tensor also where the parameter is sharded, in
                the dtype of the buffer; not to be modified.
            group: options of the parameter's group, a `metric` as it is in this step, on the
                device of the parameter.
            state: of this parameter, goes into the state dict: tensors, numbers and strings.

        Returns:
            Same shape, dtype and device as `momentum`.
        """
        raise NotImplementedError

    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> None:
        """Check the defaults or the options of one group."""
        lr = options["lr"]
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"Tensor lr must be 1-element, this one has shape {tuple(lr.shape)}")
        for name in ("lr", "momentum", "weight_decay"):
            checks.check_size(options[name], name)
        if options["momentum"] >= 1:
            raise ValueError(f"momentum is {options['momentum']}, expected less than 1")
        for name in ("nesterov", "center", "warm_start", "polar"):
            if not isinstance(options.get(name, False), bool):
                raise TypeError(f"{name} is {options[name]!r}, expected True or False")
        if options["vocab_dim"] not in (0, 1) or isinstance(options["vocab_dim"], (bool, float)):
            raise ValueError(
                f"vocab_dim is {options['vocab_dim']!r}, expected 0 (one row per token) or 1 "
                f"(one column per token)"
            )
        if options["num_real_rows"] is not None:
            checks.check_count(options["num_real_rows"], "num_real_rows", 0)
        if options.get("radius") is not None:
            checks.check_size(options["radius"], "radius")

    def _check_parameter(self, p: Tensor, options: dict[str, Any]) -> None:
        name = type(self).__name__
        if p.is_complex():
            raise TypeError(f"{name} does not support complex parameters")
        if p.ndim != 2:
            raise ValueError(
                f"{name} only supports 2D parameters, one of them has shape {tuple(p.shape)}; give "
                f"biases, gains and the like to another optimiser such as torch.optim.AdamW"
            )
        checks.check_real(p, "parameter")
        real, rows = options["num_real_rows"], p.shape[options["vocab_dim"]]
        if p.shape[1 - options["vocab_dim"]] == 0:
            raise ValueError(
                f"a parameter has shape {tuple(p.shape)}: rows, along vocab_dim="
                f"{options['vocab_dim']}, need at least one dimension"
            )
        if real is not None and real > rows:
            raise ValueError(
                f"num_real_rows is {real}, but the parameter of shape {tuple(p.shape)} has {rows} "
                f"along vocab_dim={options['vocab_dim']}"
            )
        metric, dim = options.get("metric"), p.shape[1 - options["vocab_dim"]]
        if metric is not None and metric.dim != dim:
            raise ValueError(
                f"metric is of {metric.dim} dimensions, but rows of the parameter of shape "
                f"{tuple(p.shape)} have {dim}: it is of the hidden states that the head reads"
            )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group as in `torch.optim.Optimizer`, check it and make its buffers.

        Raises:
            TypeError, ValueError: as at construction; the optimiser is then left as it was.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            check_storage(self)
            self._check_options(group)
            if "metric" in self.defaults:
                group["metric"] = settled(group["metric"])
            for p in group["params"]:
                self._check_parameter(p, group)
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise
        for p in group["params"]:
            self.state[p].update(self._new_state(p, group))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; parameters without a gradient stay as they are.

        Args:
            closure: reevaluates the model and returns the loss; called once, before the step.

        Returns:
            The loss of the closure, or None.

        Raises:
            RuntimeError: a gradient is sparse. Nothing has been changed then.
            ValueError: a gradient is NaN or infinite; nothing has been changed then, of any
                parameter. Or finite ones are so large that a momentum or a length overflows: that
                parameter and its buffer, and those after it, have not been changed then.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if torch.compiler.is_compiling():
            # a graph would round differently; a decorator would import the compiler at once
            eagerly: Any = torch.compiler.disable(_step_all)
            eagerly(self)
        else:
            _step_all(self)
        return loss

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state, lr, beta = self.state[p], float(group["lr"]), group["momentum"]
        if "momentum_buffer" not in state:  # cleared, or loaded without
            state.update(self._new_state(p, group) | state)
        # parameters may have moved to another device since construction
        buffer = state["momentum_buffer"] = state["momentum_buffer"].to(p.device)
        grad = grad.to(buffer.dtype)
        # not in place, so that an update that fails leaves everything as it was
        momentum = buffer.lerp(grad, 1 - beta)
        direction = grad.lerp(momentum, beta) if group["nesterov"] else momentum
        update = self._update(gathered(direction), group, state)
        buffer.copy_(momentum)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        p.add_(sharded_like(update, p), alpha=-lr)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """All of the state of a parameter, as it is before the first step."""
        del group
        return {"momentum_buffer": torch.zeros_like(p, dtype=_state_dtype(p))}

    def state_dict(self) -> dict[str, Any]:
        """Return the state as in `torch.optim.Optimizer`, with None for a `metric`."""
        return without_metrics(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load as in `torch.optim.Optimizer`, but keep the state of a short dtype in float32.

        `Optimizer.load_state_dict` casts floating state to the dtype of the parameter
        (pytorch#43706), which would lose the digits of a float32 buffer of a bfloat16 head. The
        tensors are copied, not shared with `state_dict`. Options that a saved group lacks, as one
        of an earlier version may, stay as they are.

        Raises:
            ValueError: the groups do not fit, are of another optimiser, or state has another
                shape than its parameter; nothing has been changed then.
        """
        # registered last, so it sees what the hooks of the user have made of the state
        handle = self.register_load_state_dict_pre_hook(_check_and_shield)
        metrics = [group.get("metric") for group in self.param_groups]
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
        for group, metric in zip(self.param_groups, metrics, strict=True):
            if "metric" in self.defaults:
                group["metric"] = metric

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore after `load_state_dict`, deepcopy or unpickling."""
        super().__setstate__(state)
        for p, kept in self.state.items():
            if isinstance(kept, dict):
                kept.update({k: v.load(p) for k, v in kept.items() if isinstance(v, _Shielded)})


def _step_all(optimizer: HeadOptimizer) -> None:
    """Step every parameter that has a gradient."""
    pairs = [(p, group) for group in optimizer.param_groups for p in group["params"]]
    ready = [(p, p.grad, group) for p, group in pairs if p.grad is not None]
    check_gradients([optimizer])
    # once for a group, as ranks sum what they have followed
    metrics = {id(group): now(group.get("metric")) for _, _, group in ready}
    for p, grad, group in ready:
        metric = metrics[id(group)]
        if metric is not None:
            group = group | {"metric": metric.to(p.device)}
        optimizer._step_parameter(p, grad, group)


class _Shielded:
    """A tensor that `Optimizer.load_state_dict` passes through as it is."""

    def __init__(self, value: Tensor):
        self.value = value

    def load(self, p: Tensor) -> Tensor:
        """A copy on the device of `p`, floating values in the dtype of its state."""
        dtype = _state_dtype(p) if self.value.is_floating_point() else self.value.dtype
        return self.value.to(device=p.device, dtype=dtype, copy=True)


def check_fits(optimizer: Optimizer, state_dict: dict[str, Any]) -> None:
    """Check that a state dict has the options and shapes of an optimiser.

    Shapes are those of the state named in `optimizer.fitted`; torch's own optimisers have none. Of
    head optimisers a group that lacks options and has others instead is refused. Two kinds with the
    same options, such as `RowNormM` and `Signum`, are not told apart.

    Raises:
        ValueError: it has not.
    """
    for group, saved in zip(optimizer.param_groups, state_dict["param_groups"], strict=False):
        # an earlier version lacks options, a scheduler or a user adds some: only both is a sign
        missing = sorted(optimizer.defaults.keys() - saved.keys())
        foreign = sorted(map(str, saved.keys() - group.keys() - ADDED))
        if missing and foreign and isinstance(optimizer, HeadOptimizer):
            raise ValueError(
                f"the state dict is of another optimiser than {type(optimizer).__name__}: a group "
                f"has {', '.join(foreign)} and lacks {', '.join(missing)}; start this one without "
                f"it"
            )
        for p, key in zip(group["params"], saved["params"], strict=False):
            # some make their momentum in the first step
            own = {"momentum_buffer": p} | optimizer.state.get(p, {})
            other = state_dict["state"].get(key, {})
            for name in getattr(optimizer, "fitted", ()):
                if name in own and name in other and own[name].shape != other[name].shape:
                    raise ValueError(
                        f"the state dict has {name} of shape {tuple(other[name].shape)} for "
                        f"parameter {key}, of shape {tuple(p.shape)}; resize the parameter as it "
                        f"was when saved, or start this optimiser without that state"
                    )


def _check_and_shield(optimizer: Optimizer, state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state dict with its shapes checked, its tensors shielded and its groups completed."""
    check_fits(optimizer, state_dict)
    state = {
        key: {k: _Shielded(v) if isinstance(v, Tensor) else v for k, v in kept.items()}
        if isinstance(kept, dict)
        else kept
        for key, kept in state_dict["state"].items()
    }
    groups = list(state_dict["param_groups"])
    for k, (group, saved) in enumerate(zip(optimizer.param_groups, groups, strict=False)):
        apart = ("params", "param_names", "metric")  # the last would be copied
        own = {name: v for name, v in group.items() if name not in apart}
        groups[k] = own | saved
    return state_dict | {"state": state, "param_groups": groups}


def without_metrics(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state dict with None for each `metric`, an object that `weights_only` would refuse."""
    groups = [
        group | {"metric": None} if "metric" in group else group
        for group in state_dict["param_groups"]
    ]
    return state_dict | {"param_groups": groups}


def real_rows(momentum: Tensor, group: dict[str, Any]) -> Tensor | None:
    """The mask of the rows before `num_real_rows`, shape (V,), or None where all are real."""
    real, rows = group["num_real_rows"], momentum.shape[group["vocab_dim"]]
    return None if real is None else torch.arange(rows, device=momentum.device) < real


def _state_dtype(p: Tensor) -> torch.dtype:
    return torch.promote_types(p.dtype, torch.float32)
