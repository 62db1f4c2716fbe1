"""From the rows of a solver to an update whose figures are exact.

The rows are centred in float64, scaled to the diameter asked, rounded to the dtype of the
momentum, and the rounded update is measured: two exact passes, and one more each time that
rounding carried the diameter over.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from packing import cloud
from packing.pairs import Extremes, extremes
from packing.rows import CentredRows, times_power_of_two


class Certified(NamedTuple):
    """An update, its exact figures, and the rows that it was made of."""

    update: Tensor
    """Shape (V, d), dtype of the momentum, zero in rows that the mask leaves out."""
    exact: Extremes
    """Of the update as returned."""
    alignment: float
    cosine: float
    rows: Tensor
    rows_diameter: float
    """Exact diameter of `rows`."""
    passes: int

    @property
    def rho(self) -> float:
        """Separation over diameter, 0.0 if all rows are equal."""
        return self.exact.delta / self.exact.diameter if self.exact.diameter > 0 else 0.0


def certify(rows: Tensor, A: Tensor, mask: Tensor | None, diameter: float) -> Certified:
    """Scale rows to a diameter and measure them as an update for `A`.

    Args:
        rows: rows that take part, shape (n, d), at unit scale.
        A: momentum, shape (V, d).
        mask: the n rows of `A` that take part, or None for all.
        diameter: not exceeded by the update.

    Returns:
        An update of diameter `diameter` within a few roundings of the dtype, never above it.
    """
    spread = extremes(rows).diameter
    passes = 1
    # two roundings under the diameter at once, as one pass more costs more than 2^-22 of it
    slack = 1 - 2 * torch.finfo(torch.promote_types(A.dtype, torch.float32)).eps
    # apart from its power of two, as a large diameter over a small spread overflows
    mantissa, exponent = math.frexp(diameter)
    factor = mantissa / spread * slack if spread > 0 else 0.0
    while True:
        update = _scaled(rows, A, mask, factor, exponent)
        exact = extremes(update, mask=mask)
        passes += 1
        if exact.diameter <= diameter:
            break
        factor *= diameter / exact.diameter * (1 - torch.finfo(A.dtype).eps / 8)
    alignment = cloud.alignment(A, update, mask, diameter=exact.diameter)
    return Certified(update, exact, alignment, cloud.cosine(A, update, mask), rows, spread, passes)


def _scaled(rows: Tensor, A: Tensor, mask: Tensor | None, factor: float, exponent: int) -> Tensor:
    """`factor * 2**exponent * rows`, centred, in the shape and dtype of `A`."""
    centred = CentredRows(rows)
    part = rows.new_empty(rows.shape, dtype=A.dtype)
    at = 0
    for block in centred:
        part[at : at + len(block)] = times_power_of_two(block * factor, centred.exponent + exponent)
        at += len(block)
    if mask is None:
        return part
    update = torch.zeros_like(A)
    update[mask] = part
    return update
