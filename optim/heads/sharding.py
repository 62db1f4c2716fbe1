"""Parameters sharded as DTensors, told apart without loading what makes them.

`torch.distributed.tensor` takes longer to import than all of this package; where a DTensor exists,
whoever made it has imported it.
"""

import sys

from torch import Tensor


def is_sharded(x: Tensor) -> bool:
    """Whether `x` is a DTensor."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def gathered(x: Tensor) -> Tensor:
    """The whole matrix on every rank."""
    return x.full_tensor() if is_sharded(x) else x  # pyright: ignore[reportAttributeAccessIssue]


def sharded_like(update: Tensor, p: Tensor) -> Tensor:
    """This rank's part of an update that every rank holds whole."""
    if not is_sharded(p):
        return update
    from torch.distributed.tensor import DTensor, Replicate

    assert isinstance(p, DTensor)
    everywhere = [Replicate()] * p.device_mesh.ndim
    whole = DTensor.from_local(update, p.device_mesh, everywhere, run_check=False)
    return whole.redistribute(placements=p.placements)
