"""The rows of a cloud made ready for matrix products, with what is needed to bound their error.

Rows are scaled by a power of two (exact), centred on their float64 mean and rounded once to
the working dtype. Centring leaves distances alone and shrinks norms, hence cancellation in
`||x||^2 + ||y||^2 - 2<x,y>`. The entries given are kept, so any pair can be decided by direct
differences in float64.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..rows import powers_of_two

CHUNK = 1 << 16
"""Entries handled at a time in float64: half a megabyte, to stay in a CPU's cache."""
WIDE_CHUNK = 1 << 22
"""The same on other devices: 32 MiB, so that starting a kernel costs little against running it."""
ALIGNED = 4
"""Augmented rows are as long as a multiple of this: a GPU's matrix units load 16 bytes at once."""


@dataclass(frozen=True)
class Rows:
    """Centred rows `x_i` of a cloud; `n` rows take part, in `d` dimensions."""

    source: Tensor
    """The entries given, shape (V, d), any floating dtype."""
    index: Tensor | None
    """Rows of `source` that take part, shape (n,), int64; None for all of them."""
    exponent: int
    """`2^-exponent` times the source is what `x` centres."""
    mean: Tensor
    """Mean of the scaled rows, shape (d,), float64."""
    augmented: Tensor
    """`[x, ||s - mean||^2, 1]`, shape (n, d+2) and zero columns, working dtype, from float64."""
    squares: Tensor
    """`||s_i - mean||^2` before rounding, shape (n,), float64."""

    def __len__(self) -> int:
        """Count of the rows that take part."""
        return len(self.augmented)

    @property
    def dim(self) -> int:
        """Dimension `d`."""
        return self.source.shape[1]

    @property
    def step(self) -> int:
        """Rows or pairs handled at a time in float64."""
        entries = CHUNK if self.source.device.type == "cpu" else WIDE_CHUNK
        return max(1, entries // max(1, self.dim))

    @property
    def x(self) -> Tensor:
        """Centred rows, shape (n, d), working dtype; a view of `augmented`."""
        return self.augmented[:, : self.dim]

    @property
    def norms(self) -> Tensor:
        """`||s - mean||^2`, shape (n,), working dtype; a view of `augmented`."""
        return self.augmented[:, self.dim]

    def left(self, part: slice) -> Tensor:
        """`[-2x, 1, ||x||^2]`, whose product with `augmented` is the squared distance."""
        return left_factor(self.augmented[part], self.dim, self.norms[part])

    def given(self, which: Tensor | slice) -> Tensor:
        """Rows as given, shape (k, d); a view of the source where it can be."""
        if self.index is not None:
            which = self.index[which]
        return (
            self.source[which] if isinstance(which, slice) else self.source.index_select(0, which)
        )

    def scaled(self, which: Tensor | slice) -> Tensor:
        """Rows as given times `2^-exponent`, shape (k, d), float64, exact, a fresh tensor."""
        rows = self.given(which).to(torch.float64, copy=True, memory_format=torch.contiguous_format)
        return shift_down(rows, self.exponent)

    def centred(self, part: slice) -> Tensor:
        """Rows `part` scaled and centred, shape (k, d), float64, a fresh tensor."""
        return self.scaled(part).sub_(self.mean)

    def differences(self, i: Tensor, j: Tensor) -> Tensor:
        """`s_i - s_j` scaled, shape (k, d), float64: O(k d) memory, so pass pairs in chunks."""
        return self.scaled(i).sub_(self.scaled(j))

    def distances(self, i: Tensor, j: Tensor) -> Tensor:
        """`||s_i - s_j||^2` scaled, by direct differences, shape (k,), float64."""
        q, step = self.squares.new_zeros(len(i)), self.step
        for part, a, b in zip(q.split(step), i.split(step), j.split(step), strict=True):
            part.copy_(self.differences(a, b).square_().sum(1))
        return q

    def pair(self, i: int, j: int) -> tuple[int, int]:
        """A pair of participating rows as rows of the source, in order."""
        if self.index is not None:
            i, j = int(self.index[i]), int(self.index[j])
        return (i, j) if i < j else (j, i)


def prepare(S: Tensor, *, mask: Tensor | None = None, exponent: int | None = None) -> Rows:
    """Scale, centre and round the rows of `S` that take part.

    Args:
        S: Rows, shape (V, d), any floating dtype, any strides.
        mask: Rows that take part, shape (V,), bool; None for all.
        exponent: Power of two to divide by; None chooses it so that no entry exceeds one.

    Raises:
        ValueError: An entry of a participating row is not finite.
    """
    S = S.detach()
    index = None if mask is None else mask.nonzero()[:, 0]
    n, d = (len(S) if index is None else len(index)), S.shape[1]
    raw = Rows(S, index, 0, S, S, S)
    parts = [slice(a, min(a + raw.step, n)) for a in range(0, n, raw.step)]
    peak = 0.0
    if n and d:
        peak = float(torch.stack([raw.given(p).abs().max() for p in parts]).max())
    fitting = power_of_two(peak)
    exponent = fitting if exponent is None else exponent
    raw = Rows(S, index, exponent, S, S, S)
    mean = torch.zeros(d, dtype=torch.float64, device=S.device)
    for p in parts:
        mean += raw.scaled(p).sum(0)
    mean /= max(1, n)
    raw = Rows(S, index, exponent, mean, S, S)
    augmented = blank(n, d, working_dtype(S), S.device)
    squares = torch.zeros(n, dtype=torch.float64, device=S.device)
    for p in parts:
        exact = raw.centred(p)
        augmented[p, :d] = exact
        squares[p] = exact.square_().sum(1)
    augmented[:, d] = squares
    return Rows(S, index, exponent, mean, augmented, squares)


def blank(n: int, d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """`[0, 0, 1]` for n rows x and numbers c to be written in: `[x, c, 1]` with zero columns.

    Those bring the row length to a multiple of `ALIGNED`.
    """
    right = torch.zeros(n, -(-(d + 2) // ALIGNED) * ALIGNED, dtype=dtype, device=device)
    right[:, d + 1] = 1
    return right


def left_factor(right: Tensor, d: int, shift: Tensor, weight: float = 1.0) -> Tensor:
    """`[-2x, weight, shift]` of rows `[x, c, 1]`.

    Times the transpose of such rows it is `shift_i + weight c_j - 2 <x_i, x_j>`.
    """
    left = -2 * right
    left[:, d] = weight
    left[:, d + 1] = shift
    return left


def working_dtype(S: Tensor) -> torch.dtype:
    """float64 for float64 rows, float32 for the rest."""
    return torch.float64 if S.dtype == torch.float64 else torch.float32


def power_of_two(peak: float) -> int:
    """The least `e` with `peak < 2^e`, for the largest magnitude of a cloud; 0 for a peak of zero.

    Raises:
        ValueError: The peak is not finite.
    """
    if not math.isfinite(peak):
        raise ValueError(f"S has an entry that is not finite (largest magnitude {peak}): mask it")
    return math.frexp(peak)[1]


def shift_down(X: Tensor, exponent: int) -> Tensor:
    """`X * 2^-exponent`, in place and exact in float64, for exponents beyond float64's own too."""
    for factor in powers_of_two(-exponent):
        X.mul_(factor)
    return X


def unscale(q: float, exponent: int) -> float:
    """`sqrt(q) * 2^exponent`, or `inf` where float64 ends."""
    try:
        return math.ldexp(math.sqrt(q), exponent)
    except OverflowError:
        return math.inf
