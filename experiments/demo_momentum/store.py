"""The shipped file: one float16 tensor "momentum" in safetensors, with its origin as metadata.

Stored is m / rms(m), whose entries are at most sqrt(V d): too small for float16 to overflow. An
entry below 2^-14, float16's smallest normal number, loses relative digits and one below 2^-25
becomes zero; both move a row by at most sqrt(d) 2^-25, 3.4e-7 at d = 128. The shipped momentum's
lightest row has norm 0.018, so that is under 2e-5 of any row, less than the rounding error 2^-11 of
normal numbers: a power of two in front would gain nothing. `rounding_errors` measures it.
"""

import math
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from rowsep.packing.io import replacing

SHIPPED = Path(__file__).parents[2] / "packing" / "data" / "momentum.safetensors"


def normalise(momentum: Tensor) -> Tensor:
    """Return m / rms(m) in float64, where rms(m)^2 is the mean of the squared entries.

    Args:
        momentum: m, any floating dtype, shape (V, d).

    Raises:
        ValueError: the momentum is zero or not finite.
    """
    exact = momentum.double()
    rms = exact.square().mean().sqrt().item()
    if not math.isfinite(rms) or rms == 0.0:
        raise ValueError(f"the momentum has RMS {rms}: it must be finite and not zero")
    return exact / rms


def rounding_errors(stored: Tensor, exact: Tensor) -> Tensor:
    """Return ||s_i - a_i|| / ||a_i|| for every row, and 0 for a row with a_i = 0.

    Args:
        stored: s, what the rounding left, shape (V, d).
        exact: a, what was rounded, shape (V, d).

    Returns:
        Relative errors, float64, shape (V,).
    """
    exact = exact.double()
    norms = exact.norm(dim=1)
    errors = (stored.double() - exact).norm(dim=1) / norms
    return torch.where(norms > 0, errors, 0.0)


def write(stored: Tensor, metadata: dict[str, str], *, path: Path) -> None:
    """Write `stored` as the tensor "momentum" of `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(save({"momentum": stored}, metadata=metadata))


def read(path: Path = SHIPPED) -> tuple[Tensor, dict[str, str]]:
    """Return the stored float16 tensor, shape (V, d), and the metadata of `path`."""
    with safe_open(path, framework="pt") as file:
        return file.get_tensor("momentum"), file.metadata()
