"""The rows of a cloud in float64, a block at a time, centred and brought to one scale.

Sums over the rows of a cloud of any dtype are taken from these blocks, so that no float64 copy of
the cloud is made and no square overflows or underflows.
"""

import math
from collections.abc import Iterator
from typing import TypeVar

import torch
from torch import Tensor

BLOCK_ENTRIES = 1 << 15
"""Entries of one float64 block on a CPU: 256 KiB, which stay in a core's cache and off the kernel's
page tables. With 4 MiB sums take two to six times as long."""
WIDE_BLOCK_ENTRIES = 1 << 22
"""The same on other devices: 32 MiB, so that starting a kernel costs little against running it."""

NOISE = 64
"""Roundings below which differences to the mean row count as none."""

FloatOrTensor = TypeVar("FloatOrTensor", float, Tensor)


def times_power_of_two(x: FloatOrTensor, exponent: int) -> FloatOrTensor:
    """Return `x * 2**exponent`, rounded only where the result leaves the normal range.

    `|exponent|` up to 2044.
    """
    for factor in powers_of_two(exponent):
        x = x * factor
    return x


def powers_of_two(exponent: int) -> tuple[float, ...]:
    """Return floats whose product is `2**exponent`: two where one alone may not be representable.

    `|exponent|` up to 2044; none for 0.
    """
    if abs(exponent) <= 1000:
        return (2.0**exponent,) if exponent else ()
    half = exponent // 2
    return 2.0**half, 2.0 ** (exponent - half)


def magnitude(S: Tensor, mask: Tensor | None = None) -> int:
    """Return the `e` with `2**(e-1) <= max |entry| < 2**e` over the rows that take part.

    0 if there are none or all are zero.

    Args:
        S: shape (V, d), floating dtype, finite.
        mask: bool, shape (V,), True for the rows that take part.
    """
    blocks = (block for block in _blocks(S, mask) if block.numel())
    # read once at the end: a device would be waited for at every block
    ends = [end for block in blocks for end in torch.aminmax(block)]
    return math.frexp(max(map(abs, torch.stack(ends).tolist())))[1] if ends else 0


class CentredRows:
    """Iterates over `2**-exponent * (s_i - mean)`, the rows that take part, in float64 blocks.

    The mean is formed of the differences to the first row, so equal rows give exact zeros and a
    shift common to all rows costs no digits. Entries of a block are at most 2 in absolute value;
    one below 1e-150 of the cloud's largest entry may count as zero in a sum of squares.

    Args:
        S: shape (V, d), floating dtype, finite.
        mask: bool, shape (V,), True for the rows that take part; all of them by default.

    Attributes:
        exponent: the power of two taken out.
        count: number of rows that take part.
        first: the scaled first row, shape (d,), float64.
        mean: of the scaled rows less the first one, shape (d,), float64.
    """

    def __init__(self, S: Tensor, mask: Tensor | None = None):
        """Find the scale and the mean: two passes over `S`."""
        self._cloud = S.detach()
        self._mask = mask
        self.exponent = magnitude(self._cloud, mask)
        self.count = len(S) if mask is None else int(mask.sum())
        self.first = self.mean = S.new_zeros(S.shape[1], dtype=torch.float64)
        if self.count:
            row = 0 if mask is None else int(mask.to(torch.uint8).argmax())
            self.first = self._scaled(self._cloud[row])
            total = torch.zeros_like(self.first)
            for block in self:
                total += block.sum(dim=0)
            self.mean = total / self.count

    def __iter__(self) -> Iterator[Tensor]:
        """Yield blocks of shape (b, d), float64, in the order of the rows."""
        for block in _blocks(self._cloud, self._mask):
            yield self.of(block)

    def of(self, rows: Tensor) -> Tensor:
        """Return rows of the cloud, shape (b, d), as they appear in the blocks."""
        return (self._scaled(rows) - self.first).sub_(self.mean)

    def only_rounding(self, dtype: torch.dtype) -> bool:
        """Return whether the cloud's rows are equal up to rounding.

        That is, whether no row is farther from the mean than 64 roundings of `dtype` (of float32
        if that is shorter) relative to the largest row before centring.
        """
        norms = [block.norm(dim=1).max() for block in self if len(block)]
        *norms, mean = torch.stack([*norms, (self.mean + self.first).norm()]).tolist()
        largest = max(norms, default=0.0)
        eps = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
        return largest <= NOISE * eps * (largest + mean)

    def _scaled(self, rows: Tensor) -> Tensor:
        return times_power_of_two(rows.double(), -self.exponent)


def _blocks(S: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
    entries = BLOCK_ENTRIES if S.device.type == "cpu" else WIDE_BLOCK_ENTRIES
    size = max(1, entries // S.shape[1])
    for start in range(0, len(S), size):
        block = S[start : start + size]
        yield block if mask is None else block[mask[start : start + size]]
