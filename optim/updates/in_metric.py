"""A rule on rows in the metric of hidden states: on `A Sigma^(-1/2)`, and back.

    update = rule(A Sigma^(-1/2)) Sigma^(-1/2)

What the rule makes is `T = S Sigma^(1/2)`, whose distances are those of S in the metric. Products
are in the working dtype: what is bounded is measured on the update that they give.
"""

from collections.abc import Callable

from torch import Tensor

from rowsep.packing.metric import Metric

Rule = Callable[[Tensor, float], Tensor]


def in_metric(rule: Rule, metric: Metric | None) -> Rule:
    """Return the rule on rows of `rowsep.optim.updates.rows.on_rows` in a metric.

    The rule is called with rows of largest entry about one; the scale that it is told contains
    what was taken out.
    """
    if metric is None:
        return rule

    def between(rows: Tensor, scale: float) -> Tensor:
        whitened = whitened_as(rows, metric)
        size = float(whitened.abs().max())
        return whitened_as(rule(whitened / size, scale * size), metric)

    return between


def whitened_as(rows: Tensor, metric: Metric) -> Tensor:
    """Return `rows Sigma^(-1/2)` in the dtype of the rows."""
    return rows @ metric.inverse_root.to(rows.dtype)
