"""From the rows of a solver to an update whose figures are exact.

The rows are centred in float64, scaled to the diameter asked, rounded to the dtype of the
momentum, and the rounded update is measured: two exact passes, and one more each time that
rounding carried the diameter over. In a metric (`rowsep.packing.metric`) the rows are
`S Sigma^(1/2)`, S is what is rounded, and it is measured multiplied by the root again, in float64.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .. import cloud
from ..metric import Metric, in_metric
from ..pairs import Extremes, extremes
from ..rows import CentredRows, times_power_of_two


class Certified(NamedTuple):
    """Rows, the scale that makes an update of them, and the exact figures of that update.

    The update itself is made on demand: one cloud less in memory while others are certified.
    """

    rows: Tensor
    rows_diameter: float
    """Exact diameter of `rows`."""
    factor: float
    """The update is `factor * 2**exponent` times the rows, centred, times `Sigma^(-1/2)`."""
    exponent: int
    exact: Extremes
    """Of the update, in the metric."""
    alignment: float
    cosine: float
    passes: int
    metric: Metric | None = None

    @property
    def rho(self) -> float:
        """Separation over diameter, 0.0 if all rows are equal."""
        return self.exact.delta / self.exact.diameter if self.exact.diameter > 0 else 0.0

    def update(self, A: Tensor, mask: Tensor | None) -> Tensor:
        """Shape (V, d), dtype of the momentum, zero in rows that the mask leaves out."""
        return _scaled(self.rows, A, mask, self.factor, self.exponent, self.metric)


def certify(
    rows: Tensor, A: Tensor, mask: Tensor | None, diameter: float, metric: Metric | None = None
) -> Certified:
    """Scale rows to a diameter and measure them as an update for `A`.

    Args:
        rows: rows that take part, shape (n, d), at unit scale, in the metric.
        A: momentum, shape (V, d).
        mask: the n rows of `A` that take part, or None for all.
        diameter: not exceeded by the update, in the metric.
        metric: None for the plain one.

    Returns:
        An update of diameter `diameter` within a few roundings of the dtype, never above it. In a
        metric the rounding of the product with the root is counted against it, and that of the
        dtype is multiplied by the condition number of the root.

    Raises:
        ValueError: the update is beyond its dtype, as one in a metric may be.
    """
    spread = extremes(rows).diameter
    passes = 1
    # two roundings under the diameter at once, as one pass more costs more than 2^-22 of it
    rounding = 2 * torch.finfo(torch.promote_types(A.dtype, torch.float32)).eps
    if metric is not None:
        diameter *= 1 - metric.error
        rounding = rounding * metric.condition + metric.error
    slack = 1 - rounding
    # apart from its power of two, as a large diameter over a small spread overflows
    mantissa, exponent = math.frexp(diameter)
    factor = mantissa / spread * slack if spread > 0 else 0.0
    while True:
        update = _scaled(rows, A, mask, factor, exponent, metric)
        exact = _exact(update, mask, metric)
        passes += 1
        if exact.diameter <= diameter:
            break
        factor *= diameter / exact.diameter * (1 - torch.finfo(A.dtype).eps / 8)
        del update
    alignment = cloud.alignment(A, update, mask, diameter=exact.diameter, metric=metric)
    cosine = cloud.cosine(A, update, mask, metric=metric)
    return Certified(rows, spread, factor, exponent, exact, alignment, cosine, passes, metric)


def _exact(update: Tensor, mask: Tensor | None, metric: Metric | None) -> Extremes:
    if metric is None:
        return extremes(update, mask=mask)
    if not all(bool(end.isfinite()) for end in torch.aminmax(update)):
        raise ValueError(
            f"the update exceeds {torch.finfo(update.dtype).max}, the largest {update.dtype}: the "
            f"metric has small eigenvalues for this dtype; damp it, scale it, or use a wider dtype"
        )
    stretched, exponent = in_metric(update, metric, mask)
    found = extremes(stretched, mask=mask)
    return found._replace(
        delta=times_power_of_two(found.delta, exponent),
        diameter=times_power_of_two(found.diameter, exponent),
    )


def _scaled(
    rows: Tensor,
    A: Tensor,
    mask: Tensor | None,
    factor: float,
    exponent: int,
    metric: Metric | None,
) -> Tensor:
    """`factor * 2**exponent * rows Sigma^(-1/2)`, centred, in the shape and dtype of `A`."""
    centred = CentredRows(rows)
    update = torch.zeros(A.shape, dtype=A.dtype, device=A.device)
    take_part = None if mask is None else mask.nonzero()[:, 0]
    at = 0
    for block in centred:
        part = slice(at, at + len(block))
        if metric is not None:
            block = metric.whitened(block)
        made = times_power_of_two(block * factor, centred.exponent + exponent).to(A.dtype)
        update[part if take_part is None else take_part[part]] = made
        at += len(block)
    return update
