"""The smoothed condition number `F_beta` and its gradient over the pairs that carry weight.

The exact extremes come first. They fix the offsets, so no power overflows: `(q / D^2)^beta` and
`(delta^2 / q)^beta` are at most one. They also tell which pairs matter: with N pairs, those whose
power is below `eps / N` together weigh less than `eps`, and are left out. A second sweep sums the
powers and lists the pairs while they are few; if they are not, a third sweep sums the forces.
"""

import math

import torch
from torch import Tensor

from ..results import SoftExtremes
from ..rows import Rows, prepare, shift_down, unscale, working_dtype
from ..sparse import Pairs, join
from ..tiles import count, locate, positions
from .search import nearest_and_farthest
from .summation import Total, accumulate, active
from .sweep import sweep


def soft_extremes(S: Tensor, beta: float, *, mask: Tensor | None = None) -> SoftExtremes:
    """`F_beta` and its gradient; see `rowsep.packing.pairs.soft_extremes`."""
    rows = prepare(S, mask=mask)
    gradient = torch.zeros(S.shape, dtype=working_dtype(S), device=S.device)
    n = len(rows)
    if n < 2:
        return SoftExtremes(-math.inf, gradient, math.inf, 0.0, 0)
    near, far = nearest_and_farthest(rows)
    least, greatest = near.key, -far.key
    ends = unscale(max(least, 0.0), rows.exponent), unscale(max(greatest, 0.0), rows.exponent)
    if least <= 0:
        return SoftExtremes(math.inf, gradient, *ends, 0)
    powers = Powers(beta, least, greatest)
    tail = (math.log(n * (n - 1) / 2) - math.log(torch.finfo(gradient.dtype).eps)) / beta
    low, high = least * math.exp(min(tail, 700.0)), greatest * math.exp(-tail)
    total, pairs = _sum(rows, powers, low, high)
    value = math.log(greatest / least) + (math.log(powers.far) + math.log(powers.near)) / beta
    total = shift_down(total, rows.exponent)
    if rows.index is None:
        gradient.copy_(total)
    else:
        gradient[rows.index] = total
    return SoftExtremes(value, gradient, *ends, pairs)


LISTED = 4
"""Pairs per row up to which those that carry weight are kept from the second sweep."""
SPAN = 2.0**-80
"""Least `(least / greatest)^beta` for which far powers follow from near ones by division."""
LOWEST = -60.0
"""Logarithm at which powers stop falling: smaller ones weigh nothing and denormals are slow."""


def _exp(logs: Tensor) -> Tensor:
    return logs.clamp_(min=LOWEST).exp_()


class Powers:
    """`(q / greatest)^beta` and `(least / q)^beta`, their sums, and the weights they make."""

    def __init__(self, beta: float, least: float, greatest: float):
        """Start with empty sums."""
        self.beta = beta
        self.ends = least, greatest
        self.span = (least / greatest) ** beta  # near * far of every pair
        self.near = self.far = 0.0

    def of(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Near and far powers of `q`, its shape and dtype."""
        least, greatest = self.ends
        logs = q.log()
        near = _exp((logs - math.log(least)).mul_(-self.beta))
        if self.span > SPAN:
            return near, self.span / near
        return near, _exp(logs.sub_(math.log(greatest)).mul_(self.beta))

    def count(self, q: Tensor) -> None:
        """Add the powers of `q` to the sums."""
        near, far = self.of(q)
        self.near += float(near.sum(dtype=torch.float64))
        self.far += float(far.sum(dtype=torch.float64))

    def weight(self, q: Tensor) -> Tensor:
        """`2 (far / sum far - near / sum near) / q`: twice the derivative of F by `q_ij`."""
        near, far = self.of(q)
        return far.mul_(2 / self.far).sub_(near, alpha=2 / self.near).div_(q)


def _sum(rows: Rows, powers: Powers, low: float, high: float) -> tuple[Tensor, int]:
    """Gradient in the scale of the prepared rows, and the pairs that carried weight."""
    listed: list[Pairs] = []
    size = 0
    for tile in sweep(rows):
        marks = active(tile, low, high)
        found = count(marks)
        size += found
        if size <= LISTED * len(rows):
            flat = positions(marks)
            listed.append(Pairs(*locate(flat, tile.block, tile.columns), tile.at(flat)))
        elif found > tile.q.numel() // 4 and not tile.diagonal:
            powers.count(tile.q)
        elif found:
            powers.count(tile.q[marks])
    if size <= LISTED * len(rows):
        return _sum_list(rows, powers, join(listed)), size
    for pairs in listed:
        powers.count(pairs.q)
    return accumulate(rows, powers.weight, low, high).force, size


def _sum_list(rows: Rows, powers: Powers, pairs: Pairs) -> Tensor:
    """Gradient from a list; few enough pairs are measured anew in float64."""
    q = pairs.q.double()
    if len(q) <= len(rows):
        q = rows.distances(pairs.i, pairs.j)
    powers.count(q)
    total = Total(rows)
    total.add_listed(Pairs(pairs.i, pairs.j, q), lambda q: powers.weight(q).to(total.sums.dtype))
    return total.force()
