"""Several optimisers as one, for trainers that accept a single `torch.optim.Optimizer`.

The parameter groups of a `Combined` are the very dictionaries of its members, so whatever a
scheduler or a trainer writes into them acts; its state is a view of the members' states.
HeavyBall's `SplitOpt` and torchtitan's `OptimizersContainer` solve the same problem with copies of
the groups, which schedulers then change in vain, or with members that all have to be alike.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..heads.base import HeadOptimizer, check_fits, without_metrics
from ..heads.refusals import check_gradients, check_storage


class Combined(Optimizer):
    """One optimiser made of several, each with parameters of its own.

    Every group carries `"optimizer"`, the name of the member it belongs to. `step` evaluates the
    closure once and then steps the members in order; hooks registered here run around all of them.
    `state_dict` has torch's format, parameters numbered in the order of `param_groups`, and can be
    read with `torch.load(..., weights_only=True)` if the members' can; `load_state_dict` hands each
    member its part, so that a member's own rules about the dtype of its state hold, and training
    goes on bit for bit. State-dict hooks belong here: those registered on a member are not called
    when saving, and a member must not be loaded or given groups behind the back of its `Combined`.
    """

    def __init__(self, optimizers: Mapping[str, Optimizer], notes: Sequence[str] = ()) -> None:
        """Take over the members.

        Args:
            optimizers: the members by name.
            notes: remarks that `table` prints below the parameters.

        Raises:
            TypeError: a member is not a `torch.optim.Optimizer`.
            ValueError: no members, a parameter with two owners, or two that share their memory.
        """
        if not optimizers:
            raise ValueError("optimizers is empty; give at least one, by name")
        for name, member in optimizers.items():
            if not isinstance(member, Optimizer):
                raise TypeError(
                    f"optimizers[{name!r}] is a {type(member).__name__}, "
                    f"expected a torch.optim.Optimizer"
                )
        self.optimizers = dict(optimizers)
        self.notes = tuple(notes)
        for name, member in self.optimizers.items():
            for group in member.param_groups:
                group["optimizer"] = name
        super().__init__(list(chain(*(m.param_groups for m in self.optimizers.values()))), {})
        self.state = _States(self.optimizers)  # type: ignore[assignment]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Step every member; `closure`, if given, is evaluated once, before, with gradients on.

        Raises:
            RuntimeError, ValueError: a gradient of a head optimiser, in whatever role, is sparse,
                NaN or infinite. No member has stepped then.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        members = self.optimizers.values()
        check_gradients(member for member in members if _refuses(member))
        for member in members:
            member.step()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Give a group to the member that its key `"optimizer"` names.

        Raises:
            ValueError: no such member, a parameter that has an owner already, or one that shares
                the memory of another.
        """
        name = param_group.get("optimizer")
        if name not in self.optimizers:
            raise ValueError(
                f"the group's 'optimizer' is {name!r}, expected one of {sorted(self.optimizers)}: "
                f"add_param_group({{'params': ..., 'optimizer': {next(iter(self.optimizers))!r}}})"
            )
        member = self.optimizers[name]
        super().add_param_group(param_group)
        try:
            check_storage(self)
            if not any(group is param_group for group in member.param_groups):
                member.add_param_group(param_group)  # else being constructed: the member brought it
        except Exception:
            self.param_groups.pop()
            raise

    def state_dict(self) -> dict[str, Any]:
        """Return the state as in `torch.optim.Optimizer`, with None for a `metric` of a head."""
        return without_metrics(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, each member its part.

        Raises:
            ValueError: other groups, or groups of other members or other parameter names, or
                options or state of one of ours that do not fit
                (`rowsep.optim.heads.base.check_fits`); nothing has been changed then.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = state_dict["param_groups"]
        self._check_groups(saved)
        parts = {}
        for name, member in self.optimizers.items():
            groups = [group for group in saved if group["optimizer"] == name]
            numbers = set(chain(*(group["params"] for group in groups)))
            state = {k: v for k, v in state_dict["state"].items() if k in numbers}
            parts[name] = {"state": state, "param_groups": groups}
            check_fits(member, parts[name])
        for name, member in self.optimizers.items():
            member.load_state_dict(parts[name])
        fresh = {name: iter(member.param_groups) for name, member in self.optimizers.items()}
        self.param_groups[:] = [next(fresh[group["optimizer"]]) for group in self.param_groups]
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: list[dict[str, Any]]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"the state has {len(saved)} parameter groups, this optimiser "
                f"{len(self.param_groups)}; build it as it was when the state was saved"
            )
        for i, (theirs, ours) in enumerate(zip(saved, self.param_groups, strict=True)):
            for key, their, our in (
                ("optimizer", theirs.get("optimizer"), ours["optimizer"]),
                ("param_names", theirs.get("param_names"), ours.get("param_names")),
                ("number of parameters", len(theirs["params"]), len(ours["params"])),
            ):
                if their != our and None not in (their, our):
                    raise ValueError(
                        f"group {i} of the state has {key} {their}, this optimiser {our}; build it "
                        f"as it was when the state was saved"
                    )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but hooks, as with every torch optimiser."""
        kept = ("defaults", "optimizers", "notes", "param_groups")
        return {key: self.__dict__[key] for key in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore after deepcopy or unpickling."""
        super().__setstate__(state)
        self.state = _States(self.optimizers)  # type: ignore[assignment]

    def table(self) -> str:
        """One line per parameter (name, shape, role, member, current lr), then the notes."""
        rows = [("parameter", "shape", "role", "optimiser", "lr")]
        for group in self.param_groups:
            member = group["optimizer"]
            names = group.get("param_names", ["(unnamed)"] * len(group["params"]))
            rows += [
                (
                    name,
                    " x ".join(map(str, p.shape)),
                    group.get("role", ""),
                    f"{member} ({type(self.optimizers[member]).__name__})",
                    f"{float(group['lr']):g}",
                )
                for name, p in zip(names, group["params"], strict=True)
            ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        """The members' own representations, by name."""
        members = "\n".join(f"{name}: {member!r}" for name, member in self.optimizers.items())
        return f"Combined (\n{members}\n)"


def _refuses(member: Optimizer) -> bool:
    """Whether a member is of this package; torch's own take NaN as they are used to."""
    return issubclass(getattr(member, "optimizer", type(member)), HeadOptimizer)


class _States(MutableMapping[Tensor, dict[str, Any]]):
    """The members' states as one: an entry is read from and written to the parameter's owner."""

    def __init__(self, optimizers: dict[str, Optimizer]) -> None:
        self._optimizers = optimizers

    def _owner(self, parameter: Tensor) -> MutableMapping[Tensor, Any]:
        for member in self._optimizers.values():
            if parameter in member.state:
                return member.state
        for member in self._optimizers.values():
            owned = chain(*(group["params"] for group in member.param_groups))
            if any(parameter is p for p in owned):
                return member.state
        raise KeyError(parameter)

    def __getitem__(self, parameter: Tensor) -> dict[str, Any]:
        return self._owner(parameter)[parameter]

    def __setitem__(self, parameter: Tensor, state: dict[str, Any]) -> None:
        self._owner(parameter)[parameter] = state

    def __delitem__(self, parameter: Tensor) -> None:
        del self._owner(parameter)[parameter]

    def __iter__(self) -> Iterator[Tensor]:
        return chain(*(member.state for member in self._optimizers.values()))

    def __bool__(self) -> bool:
        """Whether every member has state: `torch.distributed.checkpoint` makes it where not."""
        return all(member.state for member in self._optimizers.values())

    def __len__(self) -> int:
        return sum(len(member.state) for member in self._optimizers.values())
