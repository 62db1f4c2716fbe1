"""The exact separation and diameter in one screened pass over the pairs.

A tile holds certified lower bounds (`screen.py`), so only pairs that could still beat the
incumbent are examined: by direct differences in float64, best first. Where a tile has very many
of them (structured clouds have millions of exact ties), its bounds are tightened by a float64
product first, which proves ties to be ties without enumerating them. Cheaper formats may sort out
most tiles beforehand; when more than a quarter of the tiles survive, the next format takes over.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..results import Extremes
from ..rows import Rows, prepare, unscale
from ..tiles import block_size, locate, outside, positions, positions_above, triangle
from .incumbent import Incumbent
from .screen import FineTiles, Screen, integer_product, screen

SURVIVORS = 0.25
"""Fraction of flagged tiles above which the next format takes all tiles."""
CROWD = 128
"""One candidate in this many entries makes a tile crowded, to be bounded in float64."""
TIGHT = 2.0**-60
"""Squared norms below which all rows may be equal, their entries scaled to at most one."""
Tiles = Sequence[tuple[slice, slice]]


def extremes(
    S: Tensor, *, mask: Tensor | None = None, levels: Sequence[str] | None = None
) -> Extremes:
    """Exact separation and diameter; see `rowsep.packing.pairs.extremes`.

    Args:
        S: Rows, shape (V, d).
        mask: Rows that take part, shape (V,), bool.
        levels: Formats that sort out tiles before float32 decides, keys of `screen.FORMATS`;
            None takes those the device multiplies natively.
    """
    rows = prepare(S, mask=mask)
    if len(rows) < 2:
        return Extremes(math.inf, 0.0, (-1, -1), (-1, -1))
    near, far = nearest_and_farthest(rows, levels)
    return Extremes(
        unscale(max(near.key, 0.0), rows.exponent),
        unscale(max(-far.key, 0.0), rows.exponent),
        rows.pair(*near.pair),
        rows.pair(*far.pair),
    )


def nearest_and_farthest(
    rows: Rows, levels: Sequence[str] | None = None
) -> tuple[Incumbent, Incumbent]:
    """The two incumbents, settled, of at least two prepared rows."""
    search = Search(rows)
    if float(rows.squares.max()) < TIGHT and search.start() == 0:
        return search.sides
    tiles = list(triangle(len(rows), block_size(rows.source.device)))
    for level in native_levels(rows.source.device) if levels is None else levels:
        survivors = search.sort_out(screen(rows, level), tiles)
        if len(survivors) <= SURVIVORS * len(tiles):
            tiles = survivors
            break
    search.resolve(tiles)
    return search.sides


def native_levels(device: torch.device) -> tuple[str, ...]:
    """Formats that the device multiplies natively and that sort out tiles, cheapest first.

    Their sums are exact or float32, which the bounds rely on.
    """
    if device.type == "cuda":
        short_sums = torch.backends.cuda.matmul.allow_fp16_accumulation
        return ("float32",) if short_sums else ("float16", "float32")
    able = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    native = {
        "int8": ("avx512_vnni", "avx_vnni", "amx_int8"),
        "bfloat16": ("avx512_bf16", "amx_bf16"),
    }
    levels = [level for level, units in native.items() if any(able.get(u) for u in units)]
    return tuple(level for level in levels if level != "int8" or integers_are_exact())


def integers_are_exact() -> bool:
    """Whether int8 products do not saturate, as instructions before VNNI do."""
    ends = torch.full((32, 64), 127, dtype=torch.int8)
    return bool((integer_product(ends, ends) == 64 * 127**2).all())


class Search:
    """A search for both extremes of some rows, tile by tile."""

    def __init__(self, rows: Rows):
        """Round the rows to float32."""
        self.rows = rows
        self.sides = Incumbent(rows, 1), Incumbent(rows, -1)
        self.final = screen(rows, "float32")
        self.fine = FineTiles(rows)

    def start(self) -> float:
        """Examine the pairs of the outermost row; their greatest q, 0 if all rows coincide."""
        outermost = int(self.rows.squares.argmax())
        others = torch.arange(len(self.rows), device=self.rows.squares.device)
        others = others[others != outermost]
        q = self.rows.distances(torch.full_like(others, outermost), others)
        for side in self.sides:
            best = int((side.sign * q).argmin())
            side.key = side.sign * float(q[best])
            side.pair = (outermost, int(others[best]))
        return float(q.max())

    def sort_out(self, cheap: Screen, tiles: Tiles) -> Tiles:
        """The tiles that may hold an extreme pair according to `cheap`; all if it gave up early.

        The most promising tiles are resolved on the way, so that the incumbents are exact. A device
        is waited for at the end of a trial and at the end, not at every tile.
        """
        trial = max(1, len(tiles) // 16)
        bounds = _bounds(cheap, tiles[:trial])
        survivors = self._survivors(tiles[:trial], bounds)
        if trial == len(tiles) or len(survivors) > max(1.0, 2 * SURVIVORS * trial):
            return survivors if trial == len(tiles) else tiles
        return self._survivors(tiles, torch.cat([bounds, _bounds(cheap, tiles[trial:])]))

    def _survivors(self, tiles: Tiles, bounds: Tensor) -> Tiles:
        few = min(2, len(tiles))
        best = torch.cat([ends.topk(few, largest=False).indices for ends in bounds.T])
        self.resolve([tiles[k] for k in best.unique().tolist()])
        limits = torch.tensor([side.threshold for side in self.sides], dtype=torch.float64)
        flagged = (bounds <= limits).any(1).nonzero()[:, 0]
        return [tiles[k] for k in flagged.tolist()]

    def resolve(self, tiles: Tiles) -> None:
        """Examine every pair of the tiles that may beat an incumbent."""
        for block, columns in tiles:
            self._resolve(block, columns)
        for side in self.sides:
            side.settle()

    def _resolve(self, block: slice, columns: slice) -> None:
        tile, slack = self.final.tile(block, columns), self.final.slack
        ends = torch.stack([*torch.aminmax(tile), self.final.room(block, columns)])
        low, high, room = ends.tolist()
        near, far = self.sides
        near.promise = min(near.promise, (low + room) * (1 + 2.0**-20) + 2.0**-90)
        far.promise = min(far.promise, -high)
        for side, edge, doubt in ((near, low, 0.0), (far, -high, room)):
            if edge - doubt > side.threshold:
                continue
            crowd = max(64, tile.numel() // CROWD)
            flat = _candidates(tile, side, doubt, block == columns)
            if len(flat) > crowd:
                side.settle()
                keys = side.sign * tile.view(-1)[flat].double()
                side.examine_some(*locate(flat, block, columns), keys)
                flat = _candidates(tile, side, doubt, block == columns)
            if len(flat) > crowd:
                self._resolve_finely(block, columns, side)
                continue
            i, j = locate(flat, block, columns)
            keys = side.sign * tile.view(-1)[flat].double()
            if side.sign < 0:
                keys -= 2 * (slack[i].double() + slack[j].double())
            side.add(i, j, keys)

    def _resolve_finely(self, block: slice, columns: slice, side: Incumbent) -> None:
        """Bound a crowded tile in float64 and examine what may still beat the incumbent."""
        tile, left, right = self.fine.tile(block, columns)
        doubt = 0.0 if side.sign > 0 else 2 * float(left.max() + right.max())
        flat = _candidates(tile, side, doubt, block == columns)
        i, j = locate(flat, block, columns)
        keys = side.sign * tile.view(-1)[flat]
        if side.sign < 0:
            keys -= 2 * (left[i - block.start] + right[j - columns.start])
        side.examine(i, j, keys)


def _bounds(cheap: Screen, tiles: Tiles) -> Tensor:
    """Lower bounds on `q` and on `-q` over every tile, shape (tiles, 2), float64, on the CPU."""
    # one tensor for all: small ones kept from tile to tile would split the heap between large ones
    ends = cheap.shift.new_empty(len(tiles), 2)
    for bounds, (rows, columns) in zip(ends, tiles, strict=True):
        low, high = torch.aminmax(cheap.tile(rows, columns))
        bounds[0], bounds[1] = low, -high - cheap.room(rows, columns)
    return ends.double().cpu()


def _candidates(tile: Tensor, side: Incumbent, doubt: float, diagonal: bool) -> Tensor:
    """Flat indices of the entries that, `doubt` granted, hold a key within the threshold."""
    limit = side.threshold + doubt
    ends = (limit, math.inf) if side.sign > 0 else (-math.inf, -limit)
    marks = outside(tile, *ends)
    return positions_above(marks) if diagonal else positions(marks)
