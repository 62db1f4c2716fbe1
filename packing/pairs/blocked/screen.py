"""Certified lower bounds on squared distances from rounded matrix products.

With `x~` the row rounded to the product's format, `r = ||x~ - x||` measured in float64,
`N = (||x|| + r)^2` and a product of length K accumulated in any order with unit roundoff u,
`g = K u / (1 - K u)`, every pair satisfies

    |q~_ij - q_ij| <= e_i + e_j,   e = t N + r^2 / t + 2 g N + (rounding of the terms),

for any t > 0 (from `2 ||x_i|| r_j <= t N_i + r_j^2 / t`). The slack belongs to the rows, so it is
subtracted from their squared norms: each entry of a tile is then itself a lower bound, `q_ij` lies
in `[tile_ij, tile_ij + 2 (e_i + e_j)]`, and no elementwise work is added. In the format that the
rows are kept in, `e` is a multiple of `||x||^2`, a factor that weighs the norms in the product.
"""

import math

import torch
from torch import Tensor

from ..rows import Rows, blank, left_factor

FORMATS = {
    "int8": torch.int8,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
}
ROUNDOFF = {
    torch.bfloat16: 2.0**-8,
    torch.float16: 2.0**-11,
    torch.float32: 2.0**-24,
    torch.float64: 2.0**-53,
}
PRODUCT = 1 + 2.0**-5
"""Times the roundoff: rounding of a product, relative to what it was rounded to."""
FLOOR = 2.0**-96
"""Slack that covers underflow in float32 of entries scaled to at most one."""
OPERANDS = {"none": 0.0, "ieee": 0.0, "tf32": 2.0**-10, "bf16": 2.0**-8}
"""Rounding of float32 operands under each `fp32_precision` of `torch.backends`."""


class Screen:
    """Rows in one format, ready to give tiles of lower bounds: here as one product.

    The product is `[-2x~, weight, shift] [x~, c, 1]^T`.
    """

    def __init__(self, right: Tensor, dim: int, shift: Tensor, slack: Tensor, weight: float = 1.0):
        """Take rows `[x~, c, 1]`, their `shift`, and at least `e`, in one dtype."""
        self.right = right
        self.dim = dim
        self.shift = shift
        self.slack = slack
        self.weight = weight
        self._left = right[:0]
        self._start = -1
        self._buffer = shift[:0]
        self._slack: dict[int, Tensor] = {}

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Lower bounds on `q_ij`, shape (rows, columns), valid until the next call.

        The diagonal, where i = j, repeats another entry.
        """
        if rows.start != self._start:
            self._start = rows.start
            self._left = self.left_factor(rows)
        right = self.right[columns]
        shape = len(self._left), len(right)
        if self._buffer.numel() < shape[0] * shape[1]:
            self._buffer = self.shift.new_zeros(shape[0] * shape[1])
        tile = self._buffer[: shape[0] * shape[1]].view(shape)
        self._fill(tile, rows, columns)
        if rows == columns:
            tile.diagonal().copy_(tile[0, 1].clone())
        return tile

    def left_factor(self, rows: slice) -> Tensor:
        """What multiplies the transpose of `right`."""
        return left_factor(self.right[rows], self.dim, self.shift[rows], self.weight)

    def _fill(self, tile: Tensor, rows: slice, columns: slice) -> None:
        torch.mm(self._left, self.right[columns].T, out=tile)

    def room(self, rows: slice, columns: slice) -> Tensor:
        """The most by which an entry of the tile can lie below its `q_ij`, 0-dim."""
        for part in (rows, columns):
            if part.start not in self._slack:
                self._slack[part.start] = 2 * self.slack[part].max()
        return self._slack[rows.start] + self._slack[columns.start]


class NarrowScreen(Screen):
    """Rows `x~` in bfloat16 or float16; norms are added in float32, apart from the product."""

    def left_factor(self, rows: slice) -> Tensor:
        """The rows."""
        return self.right[rows]

    def _fill(self, tile: Tensor, rows: slice, columns: slice) -> None:
        torch.add(self.shift[rows, None], self.shift[columns], out=tile)
        self._subtract(tile, rows, columns)

    def _subtract(self, norms: Tensor, rows: slice, columns: slice) -> None:
        right = self.right[columns]
        if norms.is_cuda:
            # asked for float32, partial sums are in float32 even where the user lets cuBLAS reduce
            # in the output's type (allow_fp16_reduced_precision_reduction)
            norms.sub_(torch.mm(self._left, right.T, out_dtype=norms.dtype), alpha=2)
            return
        # A CPU rounds the product itself to the narrow format, once more.
        product = torch.mm(self._left, right.T).to(norms.dtype)
        norms.sub_(product, alpha=2)
        norms.sub_(product.abs_(), alpha=2 * PRODUCT * ROUNDOFF[right.dtype])


class IntegerScreen(NarrowScreen):
    """Rows `x~_i = scale_i k_i` of integers `k_i`, whose products are exact in int32."""

    def __init__(self, k: Tensor, scale: Tensor, lowered: Tensor, slack: Tensor):
        """Take `k`, int8, and for each row `scale`, `||x||^2 - e` and at least `e`, float32."""
        super().__init__(k, k.shape[1], lowered, slack)
        self.scale = scale

    def _subtract(self, norms: Tensor, rows: slice, columns: slice) -> None:
        product = integer_product(self._left, self.right[columns]).to(norms.dtype)
        norms.sub_(product.mul_(self.scale[columns]).mul_(self.scale[rows, None]), alpha=2)


def screen(rows: Rows, level: str) -> Screen:
    """Round the rows to `level`, a key of `FORMATS`, and bound what that does to distances."""
    dtype = FORMATS[level]
    if dtype == rows.augmented.dtype:
        return _as_kept(rows)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    scale = torch.ones(len(rows), dtype=wide, device=rows.squares.device)
    rounded = torch.zeros(len(rows), rows.dim, dtype=dtype, device=scale.device)
    residuals = torch.zeros_like(rows.squares)
    for part in (slice(a, a + 512) for a in range(0, len(rows), 512)):
        exact = rows.centred(part)
        if dtype == torch.int8:
            scale[part] = integer_scale(exact)
            rounded[part] = (exact / scale[part, None]).nan_to_num_(0, 0, 0).round_()
            exact.sub_(rounded[part].double().mul_(scale[part, None]))
        else:
            rounded[part] = exact
            exact.sub_(rounded[part])
        residuals[part] = exact.square_().sum(1).sqrt_()
    share = (residuals.square().sum() / rows.squares.sum().clamp(min=FLOOR)).sqrt()
    slack = bound(rows.squares, residuals, share, rows.dim, dtype, wide)
    if dtype == torch.int8:
        return IntegerScreen(rounded, scale, *_lowered(rows.squares, slack, 0.0, wide))
    if dtype == wide:
        return _augmented(rounded, rows.squares, slack)
    spread = 0.0
    if not rows.squares.is_cuda:
        spread = PRODUCT * ROUNDOFF[dtype] * (rows.squares.sqrt() + residuals).square()
    return NarrowScreen(rounded, rows.dim, *_lowered(rows.squares, slack, spread, wide))


def integer_product(a: Tensor, b: Tensor) -> Tensor:
    """`a b^T` of int8 matrices, int32, on a CPU; torch has no public name for it."""
    if a.shape[1] == 1:  # torch 2.13 gets these wrong: strides of one column fit either layout
        return a.int() * b.int().T
    return torch._int_mm(a, b.T)  # pyright: ignore[reportPrivateImportUsage]


def integer_scale(x: Tensor) -> Tensor:
    """What an integer step is worth in each row, shape (n,), float32; 0 for rows below 2^-100.

    The largest entry becomes 127, or less where sums of d squares would leave int32.
    """
    most = min(127, math.isqrt((2**31 - 1) // max(1, x.shape[1])))
    peak = torch.linalg.vector_norm(x, ord=math.inf, dim=1) if x.numel() else x.new_zeros(len(x))
    # the scale is rounded up, or the largest entry might round to one integer more
    scale = (peak / most * (1 + 2.0**-22)).float()
    return torch.where(scale >= 2.0**-100, scale, 0)


def _as_kept(rows: Rows) -> Screen:
    """The rows themselves: their slack weighs their norms, so that nothing is copied."""
    dtype = rows.augmented.dtype
    u = ROUNDOFF[dtype]
    one = torch.ones(1, dtype=torch.float64)
    device = rows.squares.device
    share = float(bound(one, u * one, u, rows.dim, dtype, dtype, device)) / u
    share = (math.ceil(share) + 1) * u  # 1 - share is exact in the dtype
    floor = _floor(dtype)
    shift = ((1 - share) * rows.squares - 2 * floor).to(dtype)
    slack = ((share * rows.squares + 2 * floor) * (1 + 4 * u) ** 2).to(dtype)
    return Screen(rows.augmented, rows.dim, shift, slack, 1 - share)


class FineTiles:
    """Float64 lower bounds, their rows prepared block by block: all of them would double memory."""

    def __init__(self, rows: Rows):
        """Prepare nothing yet."""
        self.rows = rows
        self._block = self._columns = slice(-1, -1)
        self._left = self._right = self._screen(slice(0, 0))
        self._tile = self._left.shift

    def tile(self, block: slice, columns: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Lower bounds on `q_ij`, the slack `e` of the tile's rows and that of its columns.

        On the diagonal, where i = j, entries are meaningless. The last tile is kept.
        """
        if (block, columns) != (self._block, self._columns):
            if block != self._block:
                self._left = self._screen(block)
            self._right = self._screen(columns)
            self._block, self._columns = block, columns
            left = self._left.left_factor(slice(None))
            self._tile = torch.mm(left, self._right.right.T)
        return self._tile, self._left.slack, self._right.slack

    def _screen(self, block: slice) -> Screen:
        x, squares = self.rows.centred(block), self.rows.squares[block]
        u = 2 * ROUNDOFF[torch.float64]
        slack = bound(squares, u * squares.sqrt(), u, self.rows.dim, x.dtype, x.dtype)
        return _augmented(x, squares, slack)


def _augmented(x: Tensor, squares: Tensor, slack: Tensor) -> Screen:
    """A screen of rows in a format that they are not kept in."""
    n, d = x.shape
    right = blank(n, d, x.dtype, x.device)
    lowered, room = _lowered(squares, slack, 0.0, x.dtype)
    right[:, :d] = x
    right[:, d] = lowered
    return Screen(right, d, lowered, room)


def _lowered(
    squares: Tensor, slack: Tensor, spread: Tensor | float, wide: torch.dtype
) -> tuple[Tensor, Tensor]:
    """`||x||^2 - e`, and half of what an entry can lie below its distance for the row's part."""
    up = 1 + 4 * ROUNDOFF[wide]
    return (squares - slack * up).to(wide), ((slack + spread) * up**2).to(wide)


def bound(
    squares: Tensor,
    residuals: Tensor,
    share: Tensor | float,
    dim: int,
    dtype: torch.dtype,
    wide: torch.dtype,
    device: torch.device | None = None,
) -> Tensor:
    """The slack `e` of every row, shape (n,), float64 (see the module's formula).

    Args:
        squares: `||x||^2`, shape (n,), float64.
        residuals: `r`, shape (n,), float64.
        share: `t`, the same for all rows, 0-dim; tightest near the usual `r / ||x||`.
        dim: Dimension d.
        dtype: Format of the operands.
        wide: Format of the accumulation and of the tile.
        device: Where products are taken; that of the rows by default.
    """
    device = device or squares.device
    u = ROUNDOFF[wide]
    length = dim + 8
    growth = length * u / (1 - length * u)
    operand = 0.0
    if dtype == torch.float32:
        operand = operand_rounding(device)
        residuals = residuals + operand * squares.sqrt()
        growth += 2 * operand
    elif dtype != wide and device.type == "cuda":
        growth *= 2  # tensor cores may truncate when they add
    norms = (squares.sqrt() + residuals).square()
    least = max(operand, ROUNDOFF[torch.float64])
    t = share.clamp_min(least) if isinstance(share, Tensor) else max(share, least)
    relative = t + 2 * growth + 4 * u + 2 * length * ROUNDOFF[torch.float64]
    return relative * norms + residuals.square() / t + _floor(wide)


def _floor(wide: torch.dtype) -> float:
    return FLOOR if wide == torch.float32 else FLOOR**8


def operand_rounding(device: torch.device) -> float:
    """Rounding of float32 operands that torch may use in a product there.

    `torch.get_float32_matmul_precision` only knows of what was set by its own counterpart, and
    raises where the settings of `torch.backends` were used; those follow both.
    """
    backends = {"cpu": [torch.backends.mkldnn], "cuda": [torch.backends.cuda]}
    either = [torch.backends.cuda, torch.backends.mkldnn]
    chosen = backends.get(device.type, either)
    return max(OPERANDS[backend.matmul.fp32_precision] for backend in chosen)
