"""Certified lower bounds on squared distances from rounded matrix products.

With `x~` the row rounded to the product's format, `r = ||x~ - x||` measured in float64,
`N = (||x|| + r)^2` and a product of length K accumulated in any order with unit roundoff u,
`g = K u / (1 - K u)`, every pair satisfies

    |q~_ij - q_ij| <= e_i + e_j,   e = t N + r^2 / t + 2 g N + (rounding of the terms),

for any t > 0 (from `2 ||x_i|| r_j <= t N_i + r_j^2 / t`). The slack belongs to the rows, so it is
subtracted from their squared norms before the product: each entry of a tile is then itself a
lower bound, `q_ij` lies in `[tile_ij, tile_ij + 2 (e_i + e_j)]`, and no elementwise work is added.
"""

from dataclasses import dataclass

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
FLOOR = 2.0**-96
"""Slack that covers underflow in float32 of entries scaled to at most one."""
OPERANDS = {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-8}
"""Rounding of float32 operands that `torch.get_float32_matmul_precision` allows (tf32, bf16)."""


@dataclass(frozen=True)
class Screen:
    """Rows in one format, ready to give tiles of lower bounds."""

    right: Tensor
    """`[x~, ||x||^2 - e, 1]`, or bare `x~` in formats that cannot hold the norms."""
    lowered: Tensor
    """`||x||^2 - e`, shape (n,), the tile's dtype."""
    slack: Tensor
    """`e`, shape (n,), the tile's dtype, rounded up."""

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Lower bounds on `q_ij`, shape (rows, columns); the diagonal repeats another entry."""
        if self.right.dtype == self.lowered.dtype:
            part = self.right[rows]
            left = torch.cat([-2 * part[:, :-2], part[:, -1:], part[:, -2:-1]], 1)
            tile = torch.mm(left, self.right[columns].T)
        else:
            tile = self._narrow(rows, columns)
        if rows == columns:
            tile.diagonal().copy_(tile[0, 1].clone())
        return tile

    def _narrow(self, rows: slice, columns: slice) -> Tensor:
        norms = self.lowered[rows, None] + self.lowered[columns]
        left, right = self.right[rows], self.right[columns].T
        if left.device.type == "cuda":
            return norms.sub_(torch.mm(left, right, out_dtype=torch.float32), alpha=2)
        product = torch.mm(left, right).float()
        norms.sub_(product, alpha=2)
        return norms.sub_(product.abs_(), alpha=2 * ROUNDOFF[left.dtype] * (1 + 2.0**-6))

    def room(self, rows: slice, columns: slice) -> Tensor:
        """The most by which an entry of the tile can lie below its `q_ij`, 0-dim."""
        return 2 * (self.slack[rows].max() + self.slack[columns].max())


def screen(rows: Rows, level: str) -> Screen:
    """Round the rows to `level`, a key of `FORMATS`, and bound what that does to distances."""
    dtype = FORMATS[level]
    parts = [slice(a, a + 4096) for a in range(0, len(rows), 4096)]
    centred = torch.cat([rows.centred(p).to(dtype) for p in parts])
    residuals = _residuals(rows, centred, parts)
    share = float((residuals.square().sum() / rows.squares.sum().clamp(min=FLOOR)).sqrt())
    return _screen(rows, slice(None), centred, residuals, share)


def fine(rows: Rows, block: slice) -> Screen:
    """The float64 screen of one block of rows, made when needed: it would double the memory."""
    centred = rows.centred(block)
    return _screen(rows, block, centred, 2.0**-52 * centred.norm(dim=1), 2.0**-52)


def _residuals(rows: Rows, centred: Tensor, parts: list[slice]) -> Tensor:
    if centred.dtype == rows.augmented.dtype:
        return rows.residuals
    return torch.cat([(rows.centred(p) - centred[p].double()).norm(dim=1) for p in parts])


def _screen(rows: Rows, block: slice, centred: Tensor, residuals: Tensor, share: float) -> Screen:
    dtype = centred.dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    squares = rows.squares[block]
    slack = bound(squares, residuals, share, rows.dim, dtype, wide)
    slack = slack.to(wide) * (1 + 4 * ROUNDOFF[wide])
    lowered = (squares - slack.double()).to(wide)
    if dtype == wide:
        columns = [centred, lowered[:, None], torch.ones_like(lowered)[:, None]]
        return Screen(torch.cat(columns, 1), lowered, slack)
    return Screen(centred, lowered, slack)


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
    if dtype == torch.float32:
        operand = OPERANDS[torch.get_float32_matmul_precision()]
        residuals = residuals + operand * squares.sqrt()
        growth += 2 * operand
    elif dtype != wide and squares.is_cuda:
        growth *= 2  # tensor cores may truncate when they add
    norms = (squares.sqrt() + residuals).square()
    t = max(share, ROUNDOFF[torch.float64])
    floor = FLOOR if wide == torch.float32 else FLOOR**8
    relative = t + 2 * growth + 4 * u + 2 * length * ROUNDOFF[torch.float64]
    return relative * norms + residuals.square() / t + floor
