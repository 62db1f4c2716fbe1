"""A rule on rows in the metric of hidden states: on `A Sigma^(-1/2)`, and back.

    update = rule(A Sigma^(-1/2)) Sigma^(-1/2)

What the rule makes is `T = S Sigma^(1/2)`, whose distances are those of S in the metric.
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
        whitened = metric.whitened(rows)
        size = float(whitened.abs().max())
        made = rule((whitened / size).to(rows.dtype), scale * size)
        return metric.whitened(made).to(rows.dtype)

    return between
