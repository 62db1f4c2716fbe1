"""All figures of one update at once: `measure(S)`, or `measure(S, momentum=M)`."""

from dataclasses import dataclass

import torch
from torch import Tensor

from . import checks, cloud
from .bounds import rho_upper_bound
from .metric import Metric, as_metric


@dataclass(frozen=True)
class Measures:
    """The figures of a row cloud, exact to float64 rounding of its entries.

    With a metric `s_i` stands for `s_i Sigma^(1/2)` and `a_i` for `a_i Sigma^(-1/2)`, and the
    product with the root is rounded too (`rowsep.packing.metric.Metric.error`).
    """

    diameter: float
    """`D(S) = max_{i<j} ||s_i - s_j||`; times a bound on the norm of the hidden state it is the
    largest change of any pair's log-odds."""
    delta: float
    """`min_{i<j} ||s_i - s_j||`, the separation; `inf` with fewer than two rows."""
    rho: float
    """`delta / diameter`, between 0 and 1; 0.0 if the diameter is 0."""
    bound: float
    """No cloud of this many rows in this dimension has a larger `rho`."""
    closest: tuple[int, int]
    """The pair of rows at the separation; (-1, -1) if there is none."""
    farthest: tuple[int, int]
    """The pair of rows at the diameter; (-1, -1) if there is none."""
    alignment: float | None
    """`<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`, `A` the centred momentum; None without."""
    cosine: float | None
    """`<A,S> / (||A|| ||S||)`, Frobenius norms; None without a momentum."""


@torch.no_grad()
def measure(
    S: Tensor,
    *,
    momentum: Tensor | None = None,
    mask: Tensor | None = None,
    metric: Tensor | Metric | None = None,
) -> Measures:
    """Measure an update, or any matrix with one row per token, from anywhere.

    Args:
        S: shape (V, d), float16, bfloat16, float32 or float64, d at least 1.
        momentum: what the update should agree with, of the same shape; centred here.
        mask: rows that take part, shape (V,), bool; None for all.
        metric: a `rowsep.packing.metric.Metric`, or the second moment Sigma of the hidden states,
            shape (d, d): measure `S Sigma^(1/2)`.

    Raises:
        TypeError, ValueError: an argument is not as above, or an entry is NaN or infinite.
    """
    metric = as_metric(metric, S)
    found = cloud.ratio(S, mask, metric=metric)
    num_rows = len(S) if mask is None else int(mask.sum())
    alignment = cosine = None
    if momentum is not None:
        checks.check_cloud(momentum, "momentum")
        checks.check_same_shape(momentum, S, "momentum", "S")
        alignment = cloud.alignment(momentum, S, mask, diameter=found.diameter, metric=metric)
        cosine = cloud.cosine(momentum, S, mask, metric=metric)
    return Measures(
        diameter=found.diameter,
        delta=found.delta,
        rho=found.value,
        bound=rho_upper_bound(max(num_rows, 1), S.shape[1]),
        closest=found.closest,
        farthest=found.farthest,
        alignment=alignment,
        cosine=cosine,
    )
