"""What is asked of all parameters together, before any of them moves.

A gradient on its own is refused by its update, before it has changed anything; with several the
first parameter would have moved when the second is refused.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer

from rowsep.packing import checks

from .sharding import gathered, is_sharded


def check_storage(optimizer: Optimizer) -> None:
    """Check that no two parameters are the same memory, which would be stepped twice.

    Tying by one `Parameter` in two places is fine; tying by `a.data = b.data` is not.

    Raises:
        ValueError: two are; both are named where the optimiser knows their names.
    """
    seen: dict[tuple[torch.device, int], tuple[Tensor, str]] = {}
    for group in optimizer.param_groups:
        names = group.get("param_names") or [None] * len(group["params"])
        for p, name in zip(group["params"], names, strict=True):
            if p.is_meta or is_sharded(p) or p.numel() == 0:
                continue
            said = f"parameter {name}" if name else f"a parameter of shape {tuple(p.shape)}"
            place = (p.device, p.data_ptr())
            if not place[1]:  # no memory of its own, as of wrappers and freed shards
                continue
            other, named = seen.setdefault(place, (p, said))
            if other is not p:  # one Parameter named twice is torch's to warn of
                raise ValueError(
                    f"{named} and {said} share their memory and would be stepped twice: tie "
                    f"them as one Parameter (model.b.weight = model.a.weight), or give one of them"
                )


def check_gradients(optimizers: Iterable[Optimizer]) -> None:
    """Check that every gradient of the optimisers is dense and finite, on all ranks alike.

    One flag is read back for all of them, however many and wherever they are.

    Raises:
        RuntimeError: a gradient is sparse.
        ValueError: a gradient has an entry that is NaN or infinite; the parameter is named where
            the optimiser knows its name.
    """
    named: list[tuple[str, Tensor]] = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            names = group.get("param_names") or [None] * len(group["params"])
            for p, name in zip(group["params"], names, strict=True):
                if p.grad is None:
                    continue
                of = f"parameter {name}" if name else f"a parameter of shape {tuple(p.shape)}"
                if p.grad.layout != torch.strided:
                    raise RuntimeError(
                        f"{type(optimizer).__name__} does not support sparse gradients, that of "
                        f"{of} has layout {p.grad.layout}; build the embedding with sparse=False"
                    )
                named.append((f"the gradient of {of}", p.grad))
    if len(named) < 2:
        return
    flags = [gathered(grad.isfinite().all()) for _, grad in named]
    if bool(torch.stack([flag.to(flags[0].device) for flag in flags]).all()):
        return
    for name, grad in named:
        checks.check_finite(gathered(grad), name)
