"""Codes of some hundred rows moved off their algebraic places where that raises `rho`.

The smoothed condition number `F_beta` (docs/explanation/mathematics.md) is minimised by L-BFGS,
beta doubled from stage to stage. With `log N` for N pairs, `F_beta` exceeds `log(1/rho^2)` by `2
log(N)/beta` at most, so the last stage decides between distances that differ by a part in a
thousand or so.
"""

import numpy as np
import torch
from torch import Tensor

from .. import checks, cloud
from ..extras import extra
from ..pairs import soft_extremes
from .code import Code, Stored

with extra("codes"):
    from scipy.optimize import minimize

BETAS = tuple(32.0 * 2**k for k in range(9))
"""The stages; 32 lets rows pass one another, 8192 moves them by parts in ten thousand."""


NOISE = 0.03
"""Norm of the noise on each row, relative to the largest row."""


def polish(code: Code, iterations: int = 200, seed: int = 0) -> Code:
    """Return `code` after smoothing, or `code` itself if no stage has a larger `rho`.

    It pays where rows were cut or columns added; Kerdock and Paley sets as a whole are stuck. The
    start is the code with a little noise, as symmetric rows are stationary. Each evaluation costs
    two passes over all pairs in float64, `2 V^2 d` operations: seconds for a hundred rows, minutes
    for several hundred.

    Args:
        code: at least 3 rows.
        iterations: most steps of L-BFGS in each of the nine stages, at least 1.
        seed: of the noise, from 0 to 2^64 - 1.

    Returns:
        A code of the same size; if a new one, its rows are held in memory and its `rho` measured.

    Raises:
        TypeError, ValueError: an argument is not as above.
    """
    if not isinstance(code, Code):
        raise TypeError(
            f"code is a {type(code).__name__}, expected a Code, as best_code returns; "
            f"Stored(rows, origin) makes one of rows"
        )
    checks.check_count(code.num_rows, "number of rows", 3)
    iterations = checks.check_count(iterations, "iterations", 1)
    seed = checks.check_count(seed, "seed", 0, 2**64 - 1)
    rows = code.rows(dtype=torch.float64)
    best, reached = None, max(code.rho, cloud.ratio(rows).value)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows.shape, generator=generator, dtype=torch.float64)
    rows += NOISE / code.dim**0.5 * noise
    for beta in BETAS:
        rows, _ = minimise_smoothed(rows, beta, iterations)
        rho = cloud.ratio(rows).value
        # a gain within rounding is none
        if rho > reached * (1 + 1e-9):
            best, reached = rows, rho
    if best is None:
        return code
    return Stored(best - best.mean(dim=0), f"{code.origin}, polished by smoothing")


def minimise_smoothed(S: Tensor, beta: float, iterations: int) -> tuple[Tensor, int]:
    """Return a local minimum of `F_beta` near `S`, shape (V, d), and the evaluations spent.

    Args:
        S: shape (V, d), float64, rows all different.
        beta: positive.
        iterations: most steps of L-BFGS.
    """

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = soft_extremes(torch.from_numpy(x).view_as(S), beta)
        return found.value, found.gradient.flatten().numpy()

    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    x = S.flatten().cpu().numpy()
    found = minimize(function, x, jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(found.x).view_as(S), int(found.nfev)
