"""A CUDA device that is not there: what a call would launch, wait for, copy and move on it.

    with SimulatedCuda() as counts:
        A = on_device(torch.randn(8192, 256))
        counts.reset()
        extremes(A)
    print(counts.report())

A `CudaTensor` keeps its entries on the CPU and says that it is on `cuda:0`, so code takes the path
it would take there, and results are the CPU's. Each operation of ATen on such tensors is counted:

- `kernels`: operations that launch work, a view none. An operation counts once and one made of
  others as many times (an index by a mask: `nonzero` and a gather), so this is the least number of
  kernels: sorts, `topk`, `nonzero` and large reductions launch several each.
- `waits`: times that the host reads a value or a size that the device computes: `item`, `bool`,
  `tolist`, `cpu`, `nonzero`, an index by a mask, `unique`, ...
- `copies`: copies of the host's numbers to the device. Torch waits for those too, unless they are
  from pinned memory and `non_blocking`.
- `bytes_moved`: what the operations read and write, each once, in memory of the device.
- `flops`: of matrix products, as `torch.utils.flop_counter` has them.

A call without waits and copies may be captured in a CUDA graph as far as the host is concerned;
whether addresses and Python numbers stay the same between replays is not seen here. Where torch
waits inside of an operation was read in its sources (2.13) and not observed on a device: kernels
that torch's own CUDA backend launches, memory, streams and time are beyond this.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import flop_registry

from rowsep import optim, packing

aten = torch.ops.aten
DEVICE = torch.device("cuda", 0)
KINDS = ("kernels", "waits", "copies")

FREE = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
    *("alias", "detach", "lift_fresh", "_unsafe_view", "_reshape_alias", "set_", "resize_"),
    *("_local_scalar_dense", "is_pinned", "is_same_size"),
}
"""Operations that launch nothing; so do those whose schema says that they return a view."""
WAITS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive"),
    *("_linalg_check_errors", "_linalg_eigh", "_linalg_eigvals", "linalg_eig", "_linalg_svd"),
}
"""Operations whose result, or its size, the host reads."""
INDEXED = {"index", "index_put_", "index_put", "_index_put_impl_"}
"""Operations by indices, which may be masks, and may be on the host."""
PARTIAL = INDEXED | {
    *("index_select", "gather", "embedding", "_embedding_bag", "_embedding_bag_forward_only"),
    *("index_add_", "index_copy_", "scatter_", "scatter_add_", "scatter_reduce_"),
}
"""Operations that touch as many entries of their first tensor as they return or are given."""
OVERWRITE = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_"}
"""Operations that write to their first tensor without reading it."""


class CudaTensor(Tensor):
    """A tensor of the simulated device."""

    entries: Tensor
    """On the CPU; a view of a tensor has a view of its entries."""
    counts: "list[SimulatedCuda]" = []
    """What counts at present, the newest last."""

    device = property(lambda self: DEVICE)  # pyright: ignore[reportAssignmentType]
    is_cuda = property(lambda self: True)  # pyright: ignore[reportAssignmentType]
    is_cpu = property(lambda self: False)  # pyright: ignore[reportAssignmentType]
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore

    @staticmethod
    def __new__(cls, inner: Tensor):
        """Wrap entries; see `on_device`."""
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=int(inner.storage_offset()),
            dtype=inner.dtype,
        )
        made.entries = inner
        return made

    def __repr__(self, *, tensor_contents: object = None) -> str:
        """Show the entries; not counted."""
        return f"CudaTensor({self.entries})"

    @classmethod
    def __torch_dispatch__(
        cls, func: OpOverload, types: object, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation of ATen on the entries and count it."""
        kwargs = kwargs or {}
        given = [t for t in tree_iter((args, kwargs)) if isinstance(t, Tensor)]
        known = {id(t.entries): t for t in given if isinstance(t, CudaTensor)}
        bare, named = tree_map(_entries, (args, kwargs))
        if func is aten.mm.dtype:  # of narrow factors, with a wide result: no CPU has it
            result = bare[0].to(bare[2]) @ bare[1].to(bare[2])
        else:
            result = func(*bare, **named)
        made = [t for t in tree_iter(result) if isinstance(t, Tensor)]
        if cls.counts:
            cls.counts[-1].see(func, args, kwargs, given, made, result)
        for t in known.values():
            if t.shape != t.entries.shape:
                raise NotImplementedError(f"{func} resizes a tensor in place")
        host = "device" in named and torch.device(named["device"] or "cuda").type == "cpu"
        host = host or bool(args) and isinstance(args[0], Tensor) and _writes_to_host(func, args)

        def back(x: object) -> object:
            if host or not isinstance(x, Tensor):
                return x
            return known.get(id(x)) if id(x) in known else CudaTensor(x)

        return tree_map(back, result)


class SimulatedCuda(TorchFunctionMode):
    """The simulated device inside of `with`, and what it counted since `reset`.

    Lines are those of this project's packages, the innermost first; operations of `torch.optim`
    outside of them have the line there.
    """

    def __init__(self):
        """Count nothing yet."""
        super().__init__()
        project = [Path(str(package.__file__)).parent for package in (packing, optim)]
        theirs = Path(str(torch.optim.__file__)).parent
        # of either kind the folders, and what is cut off their paths
        self._folders = (project, project[0].parent), ([theirs], theirs.parent.parent)
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self.kernels = self.waits = self.copies = self.bytes_moved = self.flops = 0
        self.lines: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        """For each kind, `file:line function [operation]` and how often."""

    def figures(self) -> dict[str, int]:
        """The counts by name."""
        names = (*KINDS, "bytes_moved", "flops")
        return {name: getattr(self, name) for name in names}

    def report(self, most: int = 20) -> str:
        """The counts, and the lines with the most of each kind."""
        told = [
            f"{self.kernels} kernels, {self.waits} waits, {self.copies} copies to the device, "
            f"{self.bytes_moved / 1e9:.3g} GB moved, {self.flops / 1e9:.3g} GFLOP of products"
        ]
        for kind, found in self.lines.items():
            told += [f"{kind}:"] if found and most else []
            told += [f"  {times:6d}  {line}" for line, times in found.most_common(most)]
        return "\n".join(told)

    def __enter__(self):
        """Make the device available and begin to count."""
        CudaTensor.counts.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any):
        """Take the device away."""
        CudaTensor.counts.remove(self)
        return super().__exit__(*error)

    def see(
        self,
        func: OpOverload,
        args: tuple,
        kwargs: dict[str, Any],
        given: list[Tensor],
        made: list[Tensor],
        result: object,
    ) -> None:
        """Count one operation of ATen: its arguments, the tensors among them, and its results."""
        name = func._schema.name.removeprefix("aten::")
        host = [t for t in given if not isinstance(t, CudaTensor)]
        masks, filling = 0, False
        if name in INDEXED:
            indices = [t for t in args[1] if t is not None]
            masks = sum(t.dtype in (torch.bool, torch.uint8) for t in indices)
            # one mask and one number of the host: torch fills the masked entries
            filling = name != "index" and masks == len(indices) == 1 and _number(args[2])
            copied = len(host) - (1 if filling and host else 0)
            self._note("copies", name, copied)
        elif name == "copy_" and not isinstance(args[0], CudaTensor):
            self._note("waits", "copy_ to the host")
        elif name == "copy_" and host:
            self._note("copies", name, sum(t.dim() > 0 for t in host))
        elif name == "masked_fill_" and len(given) == 3 and not host:
            self._note("waits", name)  # reads the value that it fills in
        elif any(t.dim() for t in host) or host and name in ("cat", "stack"):
            shapes = [tuple(t.shape) for t in given]
            raise RuntimeError(f"{name} has tensors on cuda:0 and on the cpu, of shapes {shapes}")
        if name == "isin" and _sorts(*args[:2]):
            self._note("waits", name, 2)
        if name in WAITS:
            self._note("waits", name)
        if masks and not filling:
            self._note("waits", f"{name} by a mask", masks)
        empty = bool(made) and not any(t.numel() for t in made)
        idle = empty and name not in WAITS and not masks
        idle = idle or name == "copy_" and _onto_itself(*args[:2])
        if not (func.is_view or name in FREE or idle):
            numbers = len(host) if name == "where" else 0  # each fills a tensor first
            self._note("kernels", name, 1 + numbers + (0 if filling else masks))
            self.bytes_moved += _bytes(func, args, kwargs, made)
        if func.overloadpacket in flop_registry:
            count = flop_registry[func.overloadpacket]
            self.flops += count(*args, **kwargs, out_val=result)

    def __torch_function__(
        self, func: Any, types: object, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Take the calls that choose a device, or that no wrapped tensor answers."""
        kwargs = dict(kwargs or {})
        here = bool(args) and isinstance(args[0], CudaTensor)
        if here and func is Tensor.tolist:
            self._note("waits", "tolist")
            return args[0].entries.tolist()
        if here and func in (Tensor.numpy, Tensor.__array__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if func in (Tensor.to, Tensor.cuda, Tensor.cpu):
            return self._move(func, args[0], args[1:], kwargs)
        if func in (torch.where, Tensor.where):
            tensors = [t for t in args if isinstance(t, Tensor)]
            if any(isinstance(t, CudaTensor) for t in tensors):
                self._note("copies", "where", sum(not isinstance(t, CudaTensor) for t in tensors))
        if _kind(kwargs.get("device")) != "cuda":
            return func(*args, **kwargs)
        if any(isinstance(x, CudaTensor) for x in tree_iter((args, kwargs))):
            del kwargs["device"]
            return func(*args, **kwargs)
        made = func(*args, **kwargs | {"device": "cpu"})
        if func in (torch.tensor, torch.as_tensor, torch.asarray):
            self._note("copies", func.__name__)
        elif "empty" not in func.__name__:
            self._note("kernels", func.__name__)
            self.bytes_moved += _size(made)
        return CudaTensor(made)

    def _move(self, func: Any, x: Tensor, args: Iterable[Any], kwargs: dict[str, Any]) -> Tensor:
        """`Tensor.to`, `Tensor.cuda` and `Tensor.cpu`."""
        here = isinstance(x, CudaTensor)
        values = [*args, *kwargs.values()]
        there = [kind for v in values if (kind := _kind(getattr(v, "device", v))) is not None]
        target = {Tensor.cuda: "cuda", Tensor.cpu: "cpu"}.get(func) or (there + [None])[0]
        if func is Tensor.to:
            # what is left says how to convert, of another tensor its dtype
            rest: list[Any] = [getattr(v, "dtype", v) for v in args if _kind(v) is None]
            named: dict[str, Any] = {
                k: v for k, v in kwargs.items() if k not in ("device", "non_blocking")
            }
            if isinstance(other := named.pop("other", None), Tensor):
                rest.append(other.dtype)
            x = func(x, *rest, **named) if rest or named else x
        if target == "cpu" and here:
            self._note("waits", "copy to the host")
            return _entries(x)
        if target == "cuda" and not here:
            self._note("copies", func.__name__)
            self.bytes_moved += _size(x)
            return CudaTensor(x)
        return x

    def _note(self, kind: str, what: str, times: int = 1) -> None:
        if times:
            setattr(self, kind, getattr(self, kind) + times)
            self.lines[kind][f"{self._line()} [{what}]"] += times

    def _line(self) -> str:
        for folders, root in self._folders:
            starts = tuple(f"{folder}/" for folder in folders)
            frame: FrameType | None = sys._getframe(2)
            while frame is not None:
                path = frame.f_code.co_filename
                if path.startswith(starts):
                    place = Path(path).relative_to(root)
                    return f"{place}:{frame.f_lineno} {frame.f_code.co_name}"
                frame = frame.f_back
        return "elsewhere"


def on_device(x: Tensor) -> Tensor:
    """A copy of a tensor on the simulated device; not counted."""
    return CudaTensor(x.detach().clone())


def on_host(x: Tensor) -> Tensor:
    """The entries of a tensor of the simulated device; not counted."""
    return _entries(x.detach())


def _entries(x: Any) -> Any:
    return x.entries if isinstance(x, CudaTensor) else x


def _kind(x: object) -> str | None:
    """Type of a device given as one or by its name."""
    return torch.device(x).type if isinstance(x, (torch.device, str)) else None


def _number(x: Tensor) -> bool:
    return x.numel() == 1 and not isinstance(x, CudaTensor)


def _writes_to_host(func: OpOverload, args: tuple) -> bool:
    return func is aten.copy_.default and not isinstance(args[0], CudaTensor)


def _onto_itself(x: Tensor, y: Tensor) -> bool:
    """Whether a copy has nothing to do, as what `x[a:b] += y` ends with."""
    a, b = _entries(x), _entries(y)
    same = a.data_ptr() == b.data_ptr() and a.dtype == b.dtype and a.shape == b.shape
    return same and a.is_contiguous() and b.is_contiguous()


def _sorts(elements: Any, among: Any) -> bool:
    """Whether `isin` sorts, for which it takes the distinct entries of both."""
    both = isinstance(elements, Tensor) and isinstance(among, Tensor)
    return both and among.numel() >= 10 * elements.numel() ** 0.145


def _size(x: Tensor) -> int:
    """Bytes of the distinct entries: those of an expanded axis once."""
    sizes = zip(x.shape, x.stride(), strict=True)
    return x.element_size() * math.prod(n if stride or not n else 1 for n, stride in sizes)


def _bytes(func: OpOverload, args: tuple, kwargs: dict[str, Any], made: list[Tensor]) -> int:
    """What one operation reads and writes; of an axis of the first tensor only the part taken."""
    name = func._schema.name.removeprefix("aten::")
    read, written = list[Tensor](), list[Tensor]()
    for k, argument in enumerate(func._schema.arguments):
        value = args[k] if k < len(args) else kwargs.get(argument.name)
        here = [t for t in tree_iter(value) if isinstance(t, CudaTensor)]
        changed = argument.alias_info is not None and argument.alias_info.is_write
        written += here if changed else []
        read += [] if changed and (argument.is_out or name in OVERWRITE) else here
    same = {id(_entries(t)) for t in written}
    written += [t for t in made if id(t) not in same]
    if name in PARTIAL:
        return sum(_size(t) for t in read[1:]) + 2 * (
            sum(_size(t) for t in read[2:]) if same else sum(_size(t) for t in written)
        )
    return sum(_size(t) for t in (*read, *written))
