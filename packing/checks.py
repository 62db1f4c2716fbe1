"""Arguments checked at the front door: a refusal shows the offending value and says what to do.

A wrong kind of object (type, dtype, layout) raises `TypeError`; a wrong shape or value raises
`ValueError`. Numbers in order are returned as plain ones, which the caller goes on with; the other
functions return nothing.
"""

import math
import operator
from collections.abc import Sequence
from typing import SupportsFloat

import numpy as np
import torch
from torch import Tensor

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGEST = 512
"""Most coordinates, n d, of a small problem: a Newton step takes their cube."""
INDEX_DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def check_cloud(S: Tensor, name: str = "S") -> None:
    """Check that `S` is a dense (V, d) matrix of finite real numbers, d >= 1; V may be 0.

    Every row is looked at, those that a mask leaves out included. No temporary is larger than
    O(1) unless the check fails.

    Args:
        S: what the caller was given.
        name: what the caller calls it, for the message.

    Raises:
        TypeError: not a dense torch tensor of float16, bfloat16, float32 or float64.
        ValueError: not 2-D, no columns, or NaN or infinite entries (how many, and the first).
    """
    check_real(S, name)
    if S.ndim != 2:
        raise ValueError(
            f"{name} has shape {tuple(S.shape)}, expected 2-D (rows, dimensions): one row per "
            f"token; reshape it or pass a single matrix"
        )
    if S.shape[1] == 0:
        raise ValueError(f"{name} has shape {tuple(S.shape)}: rows need at least one dimension")
    check_finite(S, name)


def check_real(x: Tensor, name: str) -> None:
    """Check that `x` is a dense torch tensor of a real floating dtype, of any shape.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} is a {type(x).__name__}, expected a torch.Tensor; "
            f"use torch.as_tensor({name}, dtype=torch.float32)"
        )
    if x.dtype not in DTYPES:
        raise TypeError(
            f"{name} has dtype {x.dtype}, expected float16, bfloat16, float32 or float64; "
            f"convert it with {name}.to(torch.float32)"
        )
    if x.layout != torch.strided:
        raise TypeError(f"{name} has layout {x.layout}, expected dense; use {name}.to_dense()")


def check_finite(x: Tensor, name: str) -> None:
    """Check that `x`, of any shape, has no NaN and no infinity.

    Raises:
        TypeError: it is on the meta device, where tensors have no entries.
        ValueError: it has; the message says how many and where the first one is.
    """
    if x.is_meta:
        raise TypeError(f"{name} is on the meta device and has no entries; load it to a real one")
    if x.numel() == 0 or all(bool(end.isfinite()) for end in torch.aminmax(x.detach())):
        return
    bad = ~x.detach().isfinite()
    first = tuple(bad.nonzero()[0].tolist())
    raise ValueError(
        f"{name} has {int(bad.sum())} of {x.numel()} entries NaN or infinite, the first "
        f"{x[first].item()} at index {first}; find what produced it, or skip this step"
    )


def check_mask(mask: Tensor | None, S: Tensor) -> None:
    """Check that `mask` is None or one bool per row of `S`, shape (V,), on the device of `S`.

    Raises:
        TypeError: not a tensor of dtype bool.
        ValueError: wrong shape or device.
    """
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"mask is {kind}, expected a torch.bool tensor, True for the rows that take part; "
            f"row numbers become one by mask[rows] = True"
        )
    if mask.shape != S.shape[:1]:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, expected ({S.shape[0]},): one entry per row"
        )
    if mask.device != S.device:
        raise ValueError(f"mask is on {mask.device}, the rows on {S.device}; move one of them")


def check_same_shape(A: Tensor, S: Tensor, name_a: str = "A", name_s: str = "S") -> None:
    """Check that two tensors have one shape and one device.

    Raises:
        ValueError: they do not.
    """
    if A.shape != S.shape:
        raise ValueError(
            f"{name_a} has shape {tuple(A.shape)} but {name_s} has shape {tuple(S.shape)}; "
            f"they must be equal (is one of them transposed?)"
        )
    if A.device != S.device:
        raise ValueError(f"{name_a} is on {A.device}, {name_s} on {S.device}; move one of them")


def check_gain(gain: Tensor, S: Tensor) -> None:
    """Check that `gain` has one finite factor per dimension of `S`, shape (d,), on its device.

    Raises:
        TypeError: not a dense real tensor.
        ValueError: wrong shape or device, NaN or infinite entries.
    """
    check_real(gain, "gain")
    if gain.shape != S.shape[1:]:
        raise ValueError(
            f"gain has shape {tuple(gain.shape)}, expected ({S.shape[1]},): one factor per "
            f"dimension, the weight of the RMS norm before the head"
        )
    if gain.device != S.device:
        raise ValueError(f"gain is on {gain.device}, the rows on {S.device}; move one of them")
    check_finite(gain, "gain")


def check_integer(value: int, name: str) -> int:
    """Return `value`, an integer of Python, NumPy or a tensor of one, `bool` excluded, as an int.

    Raises:
        TypeError: not an integer.
    """
    try:
        if isinstance(value, bool) or isinstance(value, Tensor) and value.dtype == torch.bool:
            raise TypeError
        return operator.index(value)
    except (TypeError, RuntimeError):  # RuntimeError: on the meta device
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}), expected an integer"
        ) from None


def check_count(value: int, name: str, least: int, most: int | None = None) -> int:
    """Return `value`, an integer of at least `least` and at most `most`, as an int.

    Raises:
        TypeError: not an integer.
        ValueError: below `least` or above `most`.
    """
    number = check_integer(value, name)
    if number < least:
        raise ValueError(f"{name} is {number}, expected at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{name} is {number}, expected at most {most}")
    return number


def check_indices(indices: Tensor | np.ndarray | Sequence[int], num_rows: int) -> Tensor:
    """Return row numbers, from 0 to `num_rows - 1` in any order, as a new tensor.

    Args:
        indices: shape (n,), a tensor or an array of an integer dtype, or a list, tuple or range.
        num_rows: how many rows there are; of more than 2^63 only so many can be asked for.

    Returns:
        Shape (n,), int64, on the device of `indices` if it is a tensor.

    Raises:
        TypeError: not integers in a row.
        ValueError: not 1-D, or out of range.
    """
    expected = "expected a 1-D tensor, a list or a range of row numbers"
    if isinstance(indices, (Tensor, np.ndarray)):
        kind = str(indices.dtype).removeprefix("torch.")
        if kind == "bool":
            expected += "; those of a mask are torch.as_tensor(mask).nonzero()[:, 0]"
        if kind not in INDEX_DTYPES:
            raise TypeError(f"indices have dtype {indices.dtype}, {expected}")
        if indices.ndim != 1:
            raise ValueError(f"indices have shape {tuple(indices.shape)}, {expected}")
        if isinstance(indices, Tensor) and indices.is_meta:
            raise TypeError("indices are on the meta device and have no entries; use a real one")
        numbers = indices.tolist()
    elif isinstance(indices, Sequence) and not isinstance(indices, (str, bytes)):
        numbers = [check_integer(x, f"indices[{i}]") for i, x in enumerate(indices)]
    else:
        raise TypeError(f"indices are {indices!r} ({type(indices).__name__}), {expected}")
    limit = min(num_rows, 2**63)
    if numbers and not 0 <= min(numbers) <= max(numbers) < limit:
        raise ValueError(
            f"indices reach from {min(numbers)} to {max(numbers)}, expected rows 0 to {limit - 1}"
        )
    device = indices.device if isinstance(indices, Tensor) else None
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def check_number(value: float | Tensor, name: str) -> float:
    """Return `value`, a number or a tensor of one, as a float.

    Raises:
        TypeError: not a real number.
    """
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name} is {value!r}, expected a number")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}), expected a number"
        ) from None


def check_size(value: float | Tensor, name: str) -> float:
    """Return `value`, a number or a tensor of one, finite and zero or more, as a float.

    Raises:
        TypeError: not a real number.
        ValueError: negative, NaN or infinite.
    """
    number = check_number(value, name)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name} is {number}, expected a finite number of at least 0")
    return number


def check_floor(value: float, name: str) -> None:
    """Check that `value` is a number from -1 to 1, as an alignment or a cosine is.

    Raises:
        TypeError: not a real number.
        ValueError: out of range or NaN.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} is {value!r}, expected a number")
    if not -1 <= value <= 1:
        raise ValueError(f"{name} is {value}, expected a floor between -1 and 1")


def check_choice(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Check that `value` is one of the names in `choices`.

    Raises:
        ValueError: it is not; the message lists them.
    """
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


def check_diameter(value: float, dtype: torch.dtype) -> None:
    """Check that `value` is a positive number that entries of an update of `dtype` can express.

    Raises:
        TypeError: not a real number.
        ValueError: not positive, NaN or infinite, or near the ends of the range of `dtype`.
    """
    check_size(value, "diameter")
    limits = torch.finfo(dtype)
    if not limits.tiny * 1e3 <= value <= limits.max / 4:
        raise ValueError(
            f"diameter is {value}, which entries of {dtype} cannot express; "
            f"use one near 1 and scale the update"
        )


def check_small(
    num_points: int,
    dim: int,
    instead: str = "rowsep.packing.solve with the solver 'projected_gradient'",
) -> None:
    """Refuse what is too large for Newton steps on all coordinates at once, and say what to use.

    Raises:
        ValueError: n d exceeds 512.
    """
    if num_points * dim > LARGEST:
        raise ValueError(
            f"{num_points} points in {dim} dimensions are {num_points * dim} coordinates, more "
            f"than the {LARGEST} that the exact solver takes; use {instead}"
        )
