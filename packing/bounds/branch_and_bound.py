"""The least diameter of few points at mutual distances of 1 or more, proved by branch and bound.

    minimise r  subject to  1 <= ||x_i - x_j|| <= r  for all pairs

Spatial branch and bound (SCIP through pyscipopt) with McCormick relaxations: at the end `lower` is
a bound on the optimum of the whole problem, and not of a neighbourhood, in floating-point
arithmetic and to SCIP's feasibility tolerance (1e-6). It is a numerical proof, not a formal one.

Without loss of generality points 0 and 1 are farthest apart, at the origin and at `(r, 0, .., 0)`;
the others then have first coordinates between 0 and r, which are put in ascending order, and point
2 has its last coordinate at least 0.
"""

import math
from typing import NamedTuple

import numpy as np

from .. import checks
from ..extras import extra

with extra("proof"):
    import pyscipopt


class GlobalOptimum(NamedTuple):
    """What branch and bound found and proved."""

    ratio_squared: float
    """Squared diameter over squared separation of `points`."""
    lower: float
    """No configuration has a smaller squared ratio, to SCIP's tolerance."""
    gap: float
    """`ratio_squared/lower - 1`."""
    points: np.ndarray
    """The best configuration, shape (num_points, dim), float64."""
    nodes: int
    """Nodes of the tree."""
    status: str
    """SCIP's: "optimal", "gaplimit", "timelimit", "userinterrupt" ..."""


def minimal_diameter(
    num_points: int, dim: int = 2, *, gap: float = 1e-4, time_limit: float = 600.0
) -> GlobalOptimum:
    """Minimise the squared ratio of diameter to separation over all configurations.

    Args:
        num_points: at least 2; up to 6 in the plane takes seconds to minutes.
        dim: at least 1.
        gap: relative gap of the ratio (not squared) at which to stop.
        time_limit: seconds.

    Raises:
        TypeError, ValueError: an argument is not as above.
        RuntimeError: SCIP found no configuration within the time.
    """
    checks.check_count(num_points, "num_points", 2)
    checks.check_count(dim, "dim", 1)
    checks.check_size(gap, "gap")
    checks.check_size(time_limit, "time_limit")
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/gap", gap)
    model.setParam("limits/time", time_limit)
    # points of a cubic grid of this many a side
    most = math.sqrt(dim) * (math.ceil(num_points ** (1 / dim) - 1e-9) - 1)
    r = model.addVar("r", lb=1.0, ub=max(1.0, most))
    x: list[list[pyscipopt.Expr]] = []
    for i in range(num_points):
        x.append([_coordinate(model, i, k, dim, most, r) for k in range(dim)])
    for i in range(2, num_points):
        model.addCons(x[i][0] <= r)
        if i > 2:
            model.addCons(x[i - 1][0] <= x[i][0])
    for i in range(num_points):
        for j in range(max(2, i + 1), num_points):
            q = pyscipopt.quicksum((a - b) * (a - b) for a, b in zip(x[i], x[j], strict=True))
            model.addCons(q >= 1)
            model.addCons(q <= r * r)
    model.setObjective(r, "minimize")
    model.optimize()
    if model.getNSols() == 0:
        raise RuntimeError(f"SCIP ended with {model.getStatus()!r} and no configuration")
    best = model.getBestSol()
    points = np.array([[model.getSolVal(best, entry) for entry in row] for row in x])
    i, j = np.triu_indices(num_points, 1)
    q = ((points[i] - points[j]) ** 2).sum(axis=1)
    squared, lower = float(q.max() / q.min()), max(1.0, model.getDualbound()) ** 2
    return GlobalOptimum(
        squared, lower, squared / lower - 1, points, model.getNTotalNodes(), model.getStatus()
    )


def _coordinate(
    model: pyscipopt.Model, i: int, k: int, dim: int, most: float, r: pyscipopt.Expr
) -> pyscipopt.Expr:
    """Coordinate k of point i: a variable, or fixed by the symmetries."""
    if i == 0 or (i == 1 and k > 0):
        return pyscipopt.Expr()
    if i == 1:
        return 1.0 * r
    least = 0.0 if k == 0 or (i == 2 and k == dim - 1) else -most
    return 1.0 * model.addVar(f"x{i}_{k}", lb=least, ub=most)


def scip_version() -> str:
    """Return the version of SCIP, for records."""
    return str(pyscipopt.Model().version())
