"""Matrices in files: what is read, what is refused, and how an update is written.

Read are NumPy (.npy, .npz), safetensors and torch (.pt, .pth, .bin) files, none of which runs code
from the file: NumPy reads without pickle, torch with `weights_only=True`. A matrix is handed on
with one row per token, shape (V, d), in its own dtype. Whatever cannot be a momentum is refused by
an `InputError` of one line that names the file, what is wrong with it and the remedy.
"""

import hashlib
import io
import json
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import torch
from torch import Tensor

from .extras import extra

Orientation = Literal["rows", "columns", "auto"]

SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".bin")
DTYPE_NAMES = ("float16", "bfloat16", "float32", "float64")

DATA = Path(__file__).parent / "data"
_LISTED = 12  # names that an error message lists before it only counts the others


class InputError(ValueError):
    """A file or a value that a person gave cannot be used; the message is one line."""


@dataclass(frozen=True)
class MatrixInfo:
    """Where a matrix came from and how it was stored."""

    path: str
    """The file, as it was named."""
    sha256: str
    """Digest of the file's bytes, in hexadecimal."""
    key: str | None
    """The name of the matrix in the file; None in a .npy file or a bare tensor."""
    shape: tuple[int, int]
    """The shape as stored."""
    dtype: str
    """The dtype as stored, such as "float16"."""
    orientation: Literal["rows", "columns"]
    """Whether the tokens were the stored rows or the stored columns."""
    note: str | None
    """What was decided on the reader's behalf, in words; None if nothing was."""


def load_matrix(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    orientation: Orientation = "rows",
) -> tuple[Tensor, MatrixInfo]:
    """Read one floating-point matrix with a row per token.

    Args:
        path: a file with one of the suffixes `SUFFIXES`.
        key: the matrix to take from a file that holds several. Nested dictionaries and lists of a
            torch file are addressed with dots: "state.0.momentum_buffer".
        orientation: "rows" if the tokens are the stored rows, "columns" if they are the stored
            columns, "auto" to take the longer axis (a vocabulary is longer than a hidden state);
            `MatrixInfo.note` then says if the matrix was transposed.

    Returns:
        The matrix, shape (V, d) with V >= 2 and d >= 1, finite, contiguous, on the CPU, float16,
        bfloat16, float32 or float64 as stored; and where it came from.

    Raises:
        InputError: no such file, a suffix or content that cannot be read, no or more than one
            matrix without a `key`, a dtype that is not one of `DTYPE_NAMES`, a rank other than two,
            entries that are NaN or infinite, fewer than two rows, or no columns.
    """
    if orientation not in ("rows", "columns", "auto"):
        raise InputError(f'orientation is {orientation!r}: it must be "rows", "columns" or "auto"')
    path = Path(path)
    name, entry = _choose(_read(path), path=path, key=key)
    where = f"{name} of {path}" if name else str(path)
    with _unreadable(path):
        tensor = _checked(entry, where)
    side, note = _side(entry.shape, orientation)
    rows = tensor if side == "rows" else tensor.T
    if len(rows) < 2:
        raise InputError(
            f"{where} has shape {_shape(entry.shape)}, which is one token: it takes two to be "
            "separated; is the orientation right?"
        )
    info = MatrixInfo(
        path=str(path),
        sha256=_sha256(path),
        key=name or None,
        shape=(entry.shape[0], entry.shape[1]),
        dtype=entry.dtype,
        orientation=side,
        note=note,
    )
    return rows.clone(memory_format=torch.contiguous_format), info


def load_demo() -> tuple[Tensor, MatrixInfo]:
    """Read the momentum that ships with the package, with where it came from.

    Returns:
        The matrix, float16, shape (4096, 128); packing/data/README.md says how it was made.
    """
    return load_matrix(DATA / "momentum.safetensors", key="momentum")


def demo_momentum() -> Tensor:
    """Return the momentum that ships with the package: float16, shape (4096, 128)."""
    return load_demo()[0]


def check_writable(path: Path, dtype: torch.dtype) -> None:
    """Refuse a file that `save_matrix` could not write a matrix of `dtype` to.

    Raises:
        InputError: the suffix is none of `SUFFIXES`, or NumPy has no such dtype.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(_unknown_suffix(path))
    if dtype == torch.bfloat16 and path.suffix in (".npy", ".npz"):
        raise InputError(
            f"{path} cannot hold bfloat16, which NumPy does not have: write .safetensors or .pt"
        )


def save_matrix(
    path: str | os.PathLike[str],
    tensor: Tensor,
    metadata: Mapping[str, str] | None = None,
    *,
    orientation: Literal["rows", "columns"] = "rows",
    key: str = "update",
) -> None:
    """Write a matrix whole or not at all, in its own dtype, replacing what is there.

    The metadata go into the header of a .safetensors file, as the JSON text "metadata" of an .npz
    file and as the dictionary "metadata" of a torch file; a .npy file has no place for them.

    Args:
        path: a file with one of the suffixes `SUFFIXES`, in a folder that exists.
        tensor: shape (V, d), one row per token, float16, bfloat16, float32 or float64.
        metadata: text by name.
        orientation: "columns" to store the transpose, as it was read.
        key: the name of the matrix in files that name them.

    Raises:
        InputError: the suffix is unknown, or NumPy has no such dtype.
        OSError: the file cannot be written.
    """
    path = Path(path)
    content = matrix_bytes(path, tensor, metadata, orientation=orientation, key=key)
    with replacing(path) as file:
        file.write(content)


def matrix_bytes(
    path: Path,
    tensor: Tensor,
    metadata: Mapping[str, str] | None = None,
    *,
    orientation: Literal["rows", "columns"] = "rows",
    key: str = "update",
) -> bytes:
    """Return the content of the file that `save_matrix` writes; arguments as there."""
    check_writable(path, tensor.dtype)
    tensor = (tensor if orientation == "rows" else tensor.T).detach().cpu().contiguous()
    metadata, made = dict(metadata or {}), io.BytesIO()
    match path.suffix:
        case ".npy":
            np.save(made, tensor.numpy(), allow_pickle=False)
        case ".npz":
            arrays: dict[str, Any] = {key: tensor.numpy(), "metadata": json.dumps(metadata)}
            np.savez(made, **arrays)
        case ".safetensors":
            with extra("cli"):
                from safetensors.torch import save
            return save({key: tensor}, metadata=metadata)
        case _:
            torch.save({key: tensor, "metadata": metadata}, made)
    return made.getvalue()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` for writing and put it in its place when all went well."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Entry:
    """One array of a file; `load` reads its numbers."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Tensor]


def _read(path: Path) -> dict[str, _Entry]:
    """Return the arrays that `path` holds by name, "" being that of an array without one."""
    if path.suffix not in SUFFIXES:
        raise InputError(_unknown_suffix(path))
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    with _unreadable(path):
        match path.suffix:
            case ".npy" | ".npz":
                return _read_numpy(path)
            case ".safetensors":
                return _read_safetensors(path)
            case _:
                return _read_torch(path)


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Turn what the readers raise on a damaged or a refused file into one line."""
    try:
        yield
    except (InputError, ModuleNotFoundError):  # said already, or the package of an extra
        raise
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path} is damaged or holds pickled objects other than tensors, and loading those "
            "could run code: save the tensor alone"
        ) from error
    except Exception as error:  # there is no telling what a damaged file makes a reader raise
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        if "allow_pickle" in reason:  # NumPy's remedy is one that runs code
            reason = "it is damaged or holds Python objects; save a plain array of numbers"
        raise InputError(f"{path} cannot be read as {path.suffix}: {reason}") from error


def _read_numpy(path: Path) -> dict[str, _Entry]:
    with open(path, "rb") as file:  # NumPy leaves a damaged .npz open if it opens it itself
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": _array_entry(loaded)}
        return {name: _array_entry(loaded[name]) for name in loaded.files}


def _array_entry(array: np.ndarray) -> _Entry:
    def load() -> Tensor:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))

    return _Entry(array.shape, array.dtype.name, load)


def _read_safetensors(path: Path) -> dict[str, _Entry]:
    with extra("cli"):
        from safetensors import safe_open

    def one_tensor(name: str) -> Tensor:
        with safe_open(path, framework="pt") as file:
            return file.get_tensor(name)

    names = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
    with safe_open(path, framework="pt") as file:

        def entry(name: str) -> _Entry:
            stored = file.get_slice(name)
            dtype = str(stored.get_dtype())
            return _Entry(
                tuple(stored.get_shape()), names.get(dtype, dtype), lambda: one_tensor(name)
            )

        return {name: entry(name) for name in file.keys()}


def _read_torch(path: Path) -> dict[str, _Entry]:
    mapped = zipfile.is_zipfile(path)  # files of torch < 1.6 are not, and cannot be mapped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about pickle protocols, several lines long
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    entries: dict[str, _Entry] = {}
    for name, tensor in _tensors(loaded):
        if name in entries:
            raise InputError(f"{path} holds two tensors that flatten to the name {name}")
        entries[name] = _tensor_entry(tensor)
    return entries


def _tensor_entry(tensor: Tensor) -> _Entry:
    dtype = _name(tensor.dtype)
    if tensor.layout != torch.strided or tensor.is_meta:
        dtype = f"{'meta' if tensor.is_meta else _name(tensor.layout)} {dtype}"
    return _Entry(tuple(tensor.shape), dtype, tensor.detach)


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in nested dictionaries and lists, with dotted names."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping | list | tuple):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in inner:
            yield from _tensors(item, f"{name}.{key}" if name else str(key))


def _choose(entries: dict[str, _Entry], *, path: Path, key: str | None) -> tuple[str, _Entry]:
    """Return the entry named `key`, or the only one that can be meant without a key."""
    if key is not None:
        if key not in entries:
            raise InputError(f"{path} holds no {key!r}; it holds {_listed(entries)}")
        return key, entries[key]
    matrices = {n: e for n, e in entries.items() if len(e.shape) == 2 and e.dtype in DTYPE_NAMES}
    if len(matrices) > 1:
        raise InputError(
            f"{path} holds {len(matrices)} matrices, name one with a key: {_listed(matrices)}"
        )
    if not matrices and len(entries) != 1:
        raise InputError(f"{path} holds no floating-point matrix; it holds {_listed(entries)}")
    return next(iter((matrices or entries).items()))


def _checked(entry: _Entry, where: str) -> Tensor:
    """Return the numbers of `entry` as stored: a finite floating-point matrix, not empty."""
    if len(entry.shape) != 2:
        raise InputError(
            f"{where} has shape {_shape(entry.shape)}: a matrix, one row per token, is needed"
        )
    if entry.dtype not in DTYPE_NAMES:
        raise InputError(f"{where} has dtype {entry.dtype}: use {_list(DTYPE_NAMES)}")
    if 0 in entry.shape:
        raise InputError(f"{where} is empty, shape {_shape(entry.shape)}")
    tensor = entry.load()
    finite = tensor.isfinite()
    if not finite.all():
        nans = int(tensor.isnan().sum())
        infinite = int((~finite).sum()) - nans
        row, column = (~finite).nonzero()[0].tolist()
        raise InputError(
            f"{where} has {nans} NaN and {infinite} infinite entries out of {tensor.numel()}, the "
            f"first at row {row}, column {column} as stored: a momentum must be finite"
        )
    return tensor


def _side(
    shape: tuple[int, ...], orientation: Orientation
) -> tuple[Literal["rows", "columns"], str | None]:
    if orientation != "auto":
        return orientation, None
    if shape[1] <= shape[0]:
        return "rows", None
    return "columns", (
        f"took the longer axis of {_shape(shape)} for the tokens: {shape[1]} tokens, one per "
        f"column, in {shape[0]} dimensions"
    )


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unknown_suffix(path: Path) -> str:
    return f"{path} has the suffix {path.suffix!r}: use one of {_list(SUFFIXES)}"


def _listed(entries: dict[str, _Entry]) -> str:
    shown = [f"{n or 'one array'} ({_shape(e.shape)} {e.dtype})" for n, e in entries.items()]
    if len(shown) > _LISTED:
        shown = [*shown[:_LISTED], f"and {len(shown) - _LISTED} more"]
    return ", ".join(shown) or "nothing"


def _list(items: tuple[str, ...]) -> str:
    return ", ".join(items[:-1]) + " or " + items[-1]


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "()"


def _name(value: torch.dtype | torch.layout) -> str:
    return str(value).removeprefix("torch.")
