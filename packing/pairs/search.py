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

from packing.pairs.results import Extremes
from packing.pairs.rows import Rows, prepare, unscale
from packing.pairs.screen import Screen, fine, screen
from packing.pairs.tiles import above_diagonal, block_size, locate, outside, positions, triangle

SURVIVORS = 0.25
"""Fraction of flagged tiles above which the next format takes all tiles."""
CROWD = 64
"""One candidate in this many entries makes a tile crowded, to be bounded in float64."""
PENDING = 4096
"""Candidates gathered before they are examined."""
TIGHT = 2.0**-60
"""Squared norms below which all rows may be equal, their entries scaled to at most one."""
Tiles = Sequence[tuple[slice, slice]]


class Incumbent:
    """The best pair so far on one side: `sign` +1 looks for the least q, -1 for the greatest."""

    def __init__(self, rows: Rows, sign: int):
        """Start without a pair."""
        self.rows = rows
        self.sign = sign
        self.key = math.inf  # sign * q of the best pair examined, inf before any
        self.pair = (-1, -1)
        self.promise = math.inf  # some pair is proved to have a key no larger
        self.tolerance = (rows.dim + 64) * 2.0**-50  # of the key, a float64 product's doubt
        self.pending: list[tuple[Tensor, Tensor, Tensor]] = []
        self.count = 0

    @property
    def threshold(self) -> float:
        """A pair whose bound on the key exceeds this cannot matter."""
        if self.sign > 0 and self.key <= 0:
            return -math.inf
        return min(self.key * (1 - self.sign * self.tolerance), self.promise)

    def add(self, i: Tensor, j: Tensor, keys: Tensor) -> None:
        """Queue pairs with lower bounds on their keys."""
        self.pending.append((i, j, keys))
        self.count += len(i)
        if self.count > PENDING:
            self.settle()

    def settle(self) -> None:
        """Examine the queued pairs that still matter."""
        if self.count:
            i, j, keys = (torch.cat(parts) for parts in zip(*self.pending, strict=True))
            self.pending, self.count = [], 0
            self.examine(i, j, keys)

    def examine(self, i: Tensor, j: Tensor, keys: Tensor) -> None:
        """Decide pairs by direct differences, best first, in batches that grow."""
        size = 64
        while len(i):
            keep = (keys <= self.threshold).nonzero()[:, 0]
            i, j, keys = i[keep], j[keep], keys[keep]
            if not len(i):
                return
            first = keys.topk(min(size, len(keys)), largest=False).indices
            exact = self.sign * self.rows.distances(i[first], j[first])
            best = int(exact.argmin())
            if float(exact[best]) < self.key:
                self.key = float(exact[best])
                self.pair = (int(i[first[best]]), int(j[first[best]]))
            rest = torch.ones(len(i), dtype=torch.bool, device=i.device)
            rest[first] = False
            i, j, keys = i[rest], j[rest], keys[rest]
            size *= 4


def extremes(
    S: Tensor, *, mask: Tensor | None = None, levels: Sequence[str] | None = None
) -> Extremes:
    """Exact separation and diameter; see `packing.pairs.extremes`.

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
    sides = Incumbent(rows, 1), Incumbent(rows, -1)
    if float(rows.squares.max()) < TIGHT and _start(rows, sides) == 0:
        return sides
    tiles = list(triangle(len(rows), block_size(rows.source.device)))
    final = screen(rows, "float32")
    for level in native_levels(rows.source.device) if levels is None else levels:
        survivors = _sort_out(rows, level, final, tiles, sides)
        if len(survivors) <= SURVIVORS * len(tiles):
            tiles = survivors
            break
    for tile in tiles:
        _resolve(rows, final, *tile, sides)
    for side in sides:
        side.settle()
    return sides


def _start(rows: Rows, sides: tuple[Incumbent, Incumbent]) -> float:
    """Examine the pairs of the outermost row; the greatest of their q, 0 if all rows coincide."""
    outermost = int(rows.squares.argmax())
    others = torch.arange(len(rows), device=rows.squares.device)
    others = others[others != outermost]
    pairs = torch.full_like(others, outermost), others
    q = rows.distances(*pairs)
    for side in sides:
        best = int((side.sign * q).argmin())
        side.key = side.sign * float(q[best])
        side.pair = (outermost, int(others[best]))
    return float(q.max())


def native_levels(device: torch.device) -> tuple[str, ...]:
    """Formats below float32 that the device multiplies natively, cheapest first."""
    if device.type == "cuda":
        return ("float16", "float32")
    able = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return ("bfloat16",) if able.get("avx512_bf16") or able.get("amx_bf16") else ()


def _sort_out(
    rows: Rows, level: str, final: Screen, tiles: Tiles, sides: tuple[Incumbent, Incumbent]
) -> Tiles:
    """The tiles that may hold an extreme pair according to `level`; all of them if it gave up.

    The most promising tiles are resolved on the way, so that the incumbents are exact; no tile is
    waited for but at the trial's end and at the pass's end.
    """
    cheap = screen(rows, level)
    trial = max(1, len(tiles) // 16)
    bounds = _bounds(cheap, tiles[:trial])
    survivors = _survivors(rows, final, tiles[:trial], bounds, sides)
    if trial < len(tiles) and len(survivors) > max(1.0, 2 * SURVIVORS * trial):
        return tiles
    bounds = torch.cat([bounds, _bounds(cheap, tiles[trial:])]) if trial < len(tiles) else bounds
    return _survivors(rows, final, tiles, bounds, sides)


def _bounds(cheap: Screen, tiles: Tiles) -> Tensor:
    """Lower bounds on `q` and on `-q` over every tile, shape (tiles, 2), float64."""
    ends = []
    for rows, columns in tiles:
        low, high = torch.aminmax(cheap.tile(rows, columns))
        ends.append(torch.stack([low, -high - cheap.room(rows, columns)]))
    return torch.stack(ends).double().cpu()


def _survivors(
    rows: Rows, final: Screen, tiles: Tiles, bounds: Tensor, sides: tuple[Incumbent, Incumbent]
) -> Tiles:
    best = {
        int(k) for column in bounds.T for k in column.topk(min(2, len(tiles)), largest=False)[1]
    }
    for k in sorted(best):
        _resolve(rows, final, *tiles[k], sides)
    for side in sides:
        side.settle()
    limits = torch.tensor([side.threshold for side in sides], dtype=torch.float64)
    flagged = (bounds <= limits).any(1).nonzero()[:, 0].tolist()
    return [tiles[k] for k in flagged]


def _resolve(
    rows: Rows, final: Screen, block: slice, columns: slice, sides: tuple[Incumbent, Incumbent]
) -> None:
    """Queue every pair of a tile that may beat an incumbent."""
    tile = final.tile(block, columns)
    low, high = torch.aminmax(tile)
    low, high, room = torch.stack([low, high, final.room(block, columns)]).tolist()
    near, far = sides
    near.promise = min(near.promise, (low + room) * (1 + 2.0**-20) + 2.0**-90)
    far.promise = min(far.promise, -high)
    for side, edge, slack in ((near, low, 0.0), (far, -high, room)):
        if edge - slack > side.threshold:
            continue
        crowd = max(64, tile.numel() // CROWD)
        flat = _candidates(tile, side, slack, block == columns)
        if len(flat) > crowd:
            _tighten(final, tile, flat, block, columns, side)
            flat = _candidates(tile, side, slack, block == columns)
        if len(flat) > crowd:
            _resolve_finely(rows, block, columns, side)
            continue
        i, j = locate(flat, block, columns)
        keys = tile.view(-1)[flat].double()
        if side.sign < 0:
            keys = -keys - 2 * (final.slack[i].double() + final.slack[j].double())
        side.add(i, j, keys)


def _candidates(tile: Tensor, side: Incumbent, slack: float, diagonal: bool) -> Tensor:
    """Flat indices of the entries that may hold a key within the side's threshold."""
    limit = side.threshold + slack
    if side.sign > 0:
        flat = positions(outside(tile, limit, math.inf))
    else:
        flat = positions(outside(tile, -math.inf, -limit))
    return above_diagonal(flat, tile.shape[1]) if diagonal else flat


def _tighten(
    final: Screen, tile: Tensor, flat: Tensor, block: slice, columns: slice, side: Incumbent
) -> None:
    """Examine the tile's most promising pairs, so that the threshold is exact."""
    side.settle()
    keys = side.sign * tile.view(-1)[flat].double()
    first = keys.topk(min(64, len(keys)), largest=False).indices
    side.examine(*locate(flat[first], block, columns), torch.full_like(keys[first], -math.inf))


def _resolve_finely(rows: Rows, block: slice, columns: slice, side: Incumbent) -> None:
    """Bound a crowded tile in float64 and examine what may still beat the incumbent."""
    left, right = fine(rows, block), fine(rows, columns)
    tile = torch.mm(left.left_factor(slice(None)), right.right.T)
    room = 2 * float(left.slack.max() + right.slack.max())
    slack = 0.0 if side.sign > 0 else room
    flat = _candidates(tile, side, slack, block == columns)
    i, j = locate(flat, block, columns)
    keys = side.sign * tile.view(-1)[flat]
    if side.sign < 0:
        keys -= 2 * (left.slack[i - block.start] + right.slack[j - columns.start])
    side.examine(i, j, keys)
