"""Exponents of a cost in V and d, by least squares in logarithms."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class PowerLaw(NamedTuple):
    """`seconds = factor V^rows d^dim`, with standard errors of the two exponents."""

    factor: float
    rows: float
    rows_error: float
    dim: float
    dim_error: float
    spread: float
    """Root mean square of the residuals, as a factor: 1.2 means 20 percent."""
    cases: int


def power_law(rows: Sequence[int], dims: Sequence[int], seconds: Sequence[float]) -> PowerLaw:
    """Fit a power law to positive costs.

    Ordinary least squares of `log seconds` on 1, `log V` and `log d`; the errors are those of
    independent residuals of equal variance, which is what repeated timings would have.

    Raises:
        ValueError: fewer than four cases, or V or d does not vary, or a cost is not positive.
    """
    if len(seconds) < 4 or len(set(rows)) < 2 or len(set(dims)) < 2:
        raise ValueError(
            f"{len(seconds)} cases with V in {sorted(set(rows))} and d in {sorted(set(dims))}: "
            "a fit needs four, and two values of each"
        )
    if min(seconds) <= 0:
        raise ValueError(f"the least cost is {min(seconds)}, expected positive ones")
    X = np.column_stack([np.ones(len(rows)), np.log(rows), np.log(dims)])
    y = np.log(np.asarray(seconds, dtype=float))
    found, _, _, _ = np.linalg.lstsq(X, y, rcond=None)
    left = y - X @ found
    variance = float(left @ left) / max(1, len(y) - 3)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X)))
    spread = math.exp(math.sqrt(float(left @ left) / len(y)))
    return PowerLaw(
        math.exp(found[0]), found[1], errors[1], found[2], errors[2], spread, len(seconds)
    )
