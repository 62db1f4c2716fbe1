"""Certified lower bounds on squared distances from rounded matrix products.

With `x~` the row rounded to the product's format, `r = ||x~ - x||` measured in float64,
`N = (||x|| + r)^2` and a product of length K accumulated in any order with unit roundoff u,
`g = K u / (1 - K u)`, every pair satisfies

    |q~_ij - q_ij| <= e_i + e_j,   e = t N + r^2 / t + 2 g N + (rounding of the terms),

for any t > 0 (from `2 ||x_i|| r_j <= t N_i + r_j^2 / t`). The slack belongs to the rows, so it is
subtracted from their squared norms before the product: each entry of a tile is then itself a
lower bound, `q_ij` lies in `[tile_ij, tile_ij + 2 (e_i + e_j)]`, and no elementwise work is added.
"""

import torch
from torch import Tensor

from packing.pairs.rows import Rows

FORMATS = {
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
    """Rows in one format, ready to give tiles of lower bounds."""

    def __init__(self, x: Tensor, lowered: Tensor, slack: Tensor):
        """Take rounded rows `x~`, `||x||^2 - e` and at least `e`, the last two in tile dtype."""
        self.x = x
        self.lowered = lowered
        self.slack = slack
        self.right = x
        if x.dtype == lowered.dtype:
            ones = torch.ones_like(lowered)
            self.right = torch.cat([x, lowered[:, None], ones[:, None]], 1)
        self._left = x[:0]
        self._start = -1
        self._buffer = lowered[:0]
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
            self._buffer = self.lowered.new_zeros(shape[0] * shape[1])
        tile = self._buffer[: shape[0] * shape[1]].view(shape)
        if self.right is self.x:
            torch.add(self.lowered[rows, None], self.lowered[columns], out=tile)
            self._subtract(tile, right)
        else:
            torch.mm(self._left, right.T, out=tile)
        if rows == columns:
            tile.diagonal().copy_(tile[0, 1].clone())
        return tile

    def left_factor(self, rows: slice) -> Tensor:
        """What multiplies the transpose of `right`: `[-2x~, 1, ||x||^2 - e]`, or bare `x~`."""
        if self.right is self.x:
            return self.x[rows]
        part = self.right[rows]
        return torch.cat([-2 * part[:, :-2], part[:, -1:], part[:, -2:-1]], 1)

    def _subtract(self, norms: Tensor, right: Tensor) -> None:
        if norms.is_cuda:
            norms.sub_(torch.mm(self._left, right.T, out_dtype=norms.dtype), alpha=2)
            return
        # A CPU rounds the product itself to the narrow format, once more.
        product = torch.mm(self._left, right.T).to(norms.dtype)
        norms.sub_(product, alpha=2)
        norms.sub_(product.abs_(), alpha=2 * PRODUCT * ROUNDOFF[right.dtype])

    def room(self, rows: slice, columns: slice) -> Tensor:
        """The most by which an entry of the tile can lie below its `q_ij`, 0-dim."""
        for part in (rows, columns):
            if part.start not in self._slack:
                self._slack[part.start] = 2 * self.slack[part].max()
        return self._slack[rows.start] + self._slack[columns.start]


def screen(rows: Rows, level: str) -> Screen:
    """Round the rows to `level`, a key of `FORMATS`, and bound what that does to distances."""
    dtype = FORMATS[level]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    if dtype == rows.augmented.dtype:
        x, residuals = rows.x, ROUNDOFF[dtype] * rows.squares.sqrt()
    else:
        x = rows.x.to(dtype)
        residuals = torch.zeros_like(rows.squares)
        for part in (slice(a, a + 512) for a in range(0, len(rows), 512)):
            exact = rows.centred(part)
            x[part] = exact
            residuals[part] = exact.sub_(x[part]).square_().sum(1).sqrt_()
    share = float((residuals.square().sum() / rows.squares.sum().clamp(min=FLOOR)).sqrt())
    slack = bound(rows.squares, residuals, share, rows.dim, dtype, wide)
    spread = 0.0
    if dtype != wide and not rows.squares.is_cuda:
        spread = PRODUCT * ROUNDOFF[dtype] * (rows.squares.sqrt() + residuals).square()
    return _lowered(x, rows.squares, slack, spread)


class FineTiles:
    """Float64 lower bounds, their rows prepared block by block: all of them would double memory."""

    def __init__(self, rows: Rows):
        """Prepare nothing yet."""
        self.rows = rows
        self._block = self._columns = slice(-1, -1)
        self._left = self._right = self._screen(slice(0, 0))
        self._tile = self._left.lowered

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
        return _lowered(x, squares, slack, 0.0)


def _lowered(x: Tensor, squares: Tensor, slack: Tensor, spread: Tensor | float) -> Screen:
    """A screen whose entries lie up to `2 (slack + spread)` of both rows below the distance."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    up = 1 + 4 * ROUNDOFF[wide]
    return Screen(x, (squares - slack * up).to(wide), ((slack + spread) * up**2).to(wide))


def bound(
    squares: Tensor,
    residuals: Tensor,
    share: float,
    dim: int,
    dtype: torch.dtype,
    wide: torch.dtype,
) -> Tensor:
    """The slack `e` of every row, shape (n,), float64 (see the module's formula).

    Args:
        squares: `||x||^2`, shape (n,), float64.
        residuals: `r`, shape (n,), float64.
        share: `t`, the same for all rows; tightest near the usual `r / ||x||`.
        dim: Dimension d.
        dtype: Format of the operands.
        wide: Format of the accumulation and of the tile.
    """
    u = ROUNDOFF[wide]
    length = dim + 8
    growth = length * u / (1 - length * u)
    operand = 0.0
    if dtype == torch.float32:
        operand = operand_rounding(squares.device)
        residuals = residuals + operand * squares.sqrt()
        growth += 2 * operand
    elif dtype != wide and squares.is_cuda:
        growth *= 2  # tensor cores may truncate when they add
    norms = (squares.sqrt() + residuals).square()
    t = max(share, operand, ROUNDOFF[torch.float64])
    floor = FLOOR if wide == torch.float32 else FLOOR**8
    relative = t + 2 * growth + 4 * u + 2 * length * ROUNDOFF[torch.float64]
    return relative * norms + residuals.square() / t + floor


def operand_rounding(device: torch.device) -> float:
    """Rounding of float32 operands that torch may use in a product there.

    `torch.get_float32_matmul_precision` only knows of what was set by its own counterpart, and
    raises where the settings of `torch.backends` were used; those follow both.
    """
    backends = {"cpu": [torch.backends.mkldnn], "cuda": [torch.backends.cuda]}
    either = [torch.backends.cuda, torch.backends.mkldnn]
    chosen = backends.get(device.type, either)
    return max(OPERANDS[backend.matmul.fp32_precision] for backend in chosen)
