"""All-pairs passes over the rows of a cloud; `impl=` chooses how, `"auto"` by default.

Throughout, `S` has shape (V, d), rows `s_i`, and `q_ij = ||s_i - s_j||^2`; pairs are `i < j`.
"""

import math
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from . import blocked, naive
from .blocked.farthest import ends
from .blocked.lists import PairList, TooManyPairs
from .results import Extremes, Forces, SoftExtremes
from .rows import prepare

__all__ = [
    "Extremes",
    "Forces",
    "PairList",
    "SoftExtremes",
    "TooManyPairs",
    "extremes",
    "farthest",
    "forces",
    "soft_extremes",
]

IMPLEMENTATIONS: dict[str, ModuleType] = {"naive": naive, "blocked": blocked}
TINY = 64
"""Up to this many rows `"auto"` takes the definition."""


def extremes(S: Tensor, *, mask: Tensor | None = None, impl: str = "auto") -> Extremes:
    """Separation `min_{i<j} ||s_i - s_j||` and diameter `max_{i<j} ||s_i - s_j||`, exact.

    Pairs are screened by rounded products with a proven error bound and decided by direct
    differences in float64, so the figures belong to the entries given, in whatever dtype. Their
    relative error is at most `(d + 64) 2^-50` (1e-12 up to d = 1000), at any scale, also for rows
    that nearly coincide or whose norms differ by many powers of ten. Equal rows give exactly 0.

    Args:
        S: Rows, shape (V, d), any floating dtype, strides and device; finite where they take part.
        mask: Rows that take part, shape (V,), bool; None for all.
        impl: "naive" (dense float64), "blocked" (tiles, O(V d) memory, half of one product
            `S S^T` in time) or "auto".

    Returns:
        Both figures, each with one pair of rows that attains it. Of pairs tied within the error
        any may be returned, the same one on every call. Fewer than two rows: `delta` is `inf`,
        `diameter` 0.0 and the pairs (-1, -1).

    Raises:
        ValueError: `impl` is unknown, `S` is not a floating matrix, `mask` does not fit, or a
            participating entry is not finite.
    """
    _check(S, mask)
    return _implementation(impl, S).extremes(S, mask=mask)


def farthest(S: Tensor, *, mask: Tensor | None = None) -> tuple[float, tuple[int, int]]:
    """Diameter and a pair that attains it, as `extremes` has them, in `O(V d)` where it can be.

    Rows that no longest pair can end in are left out before the pass over all pairs: most of them
    where the rows' lengths differ much, none where they are all one.

    Args:
        S: As in `extremes`.
        mask: As in `extremes`.

    Raises:
        ValueError: As in `extremes`.
    """
    _check(S, mask)
    rows = prepare(S, mask=mask)
    keep = torch.zeros(len(S), dtype=torch.bool, device=S.device)
    if len(rows):
        index = slice(None) if rows.index is None else rows.index
        keep[index] = ends(rows)
    found = extremes(S, mask=keep)
    return found.diameter, found.farthest


def soft_extremes(
    S: Tensor, beta: float, *, mask: Tensor | None = None, impl: str = "auto"
) -> SoftExtremes:
    """The smoothed condition number of a cloud and its gradient.

        F_beta = (1/beta) log sum_{i<j} q_ij^beta + (1/beta) log sum_{i<j} q_ij^-beta

    lies between `log(D^2/delta^2)` and that plus `2 log(V(V-1)/2) / beta`, and does not change
    when `S` is shifted, rotated or scaled. Powers are taken relative to the exact extremes, so
    nothing overflows. Pairs that together weigh less than the dtype's rounding are left out.

    Args:
        S: Rows, shape (V, d), any floating dtype.
        beta: Sharpness, positive and finite.
        mask: Rows that take part, shape (V,), bool; None for all.
        impl: As in `extremes`. "blocked" takes one exact sweep and one more while few pairs carry
            weight, else two more.

    Returns:
        Value, gradient (shape (V, d), float64 for float64 rows and float32 for the rest, zero for
        rows masked out), exact extremes and the count of pairs that carried weight. Two equal
        rows: value `inf`, gradient zero, no pairs (F has no gradient there). Fewer than two rows:
        value `-inf`, gradient zero.

    Raises:
        ValueError: As in `extremes`, or `beta` is not positive and finite.
    """
    _check(S, mask)
    if not 0 < beta < math.inf:
        raise ValueError(f"beta must be positive and finite, got {beta}")
    return _implementation(impl, S).soft_extremes(S, float(beta), mask=mask)


def forces(
    S: Tensor,
    weight: Callable[[Tensor], Tensor],
    *,
    near: float = math.inf,
    far: float = 0.0,
    impl: str = "auto",
) -> Forces:
    """Pairwise forces `f_i = sum_{j != i} w(q_ij) (s_i - s_j)` in one pass over all pairs.

    A pair is active if `q <= near` or `q >= far`; the defaults make every pair active. For the
    near side alone pass `far=math.inf`. Where few pairs of a tile are active they are summed by a
    sparse product, else the tile is summed densely. Equal rows exert nothing on one another,
    whatever `weight(0)` is.

    Args:
        S: Rows, shape (V, d), any floating dtype. Squared distances must not leave the range of
            the working dtype: float64 for float64 rows, float32 for the rest.
        weight: Elementwise function of q, in the working dtype, returning a new tensor; zero for
            `near < q < far`, which is relied upon.
        near: Upper end of the near side, in q.
        far: Lower end of the far side, in q.
        impl: As in `extremes`.

    Returns:
        Forces, and each row's nearest and farthest q, in the working dtype. Distances carry its
        rounding as products do down to `q = 0.001 (||s_i||^2 + ||s_j||^2)`, rows centred, and are
        taken from direct differences below (in float64 from 1e-6). A lower
        `torch.get_float32_matmul_precision()` loosens that where the device heeds it. The same on
        every call, but for forces of rows that nearly coincide on a GPU: those are added there in
        no fixed order unless `torch.use_deterministic_algorithms` is on.

    Raises:
        ValueError: As in `extremes`.
    """
    _check(S, None)
    return _implementation(impl, S).forces(S, weight, near=near, far=far)


def _implementation(impl: str, S: Tensor) -> ModuleType:
    if impl == "auto":
        impl = "naive" if len(S) <= TINY else "blocked"
    if impl not in IMPLEMENTATIONS:
        choices = ", ".join(repr(name) for name in ("auto", *IMPLEMENTATIONS))
        raise ValueError(f"impl must be one of {choices}, got {impl!r}")
    return IMPLEMENTATIONS[impl]


def _check(S: Tensor, mask: Tensor | None) -> None:
    if S.ndim != 2 or not S.is_floating_point():
        raise ValueError(
            f"S must be a floating matrix (V, d), got shape {tuple(S.shape)}, dtype {S.dtype}"
        )
    if mask is not None and (mask.shape != S.shape[:1] or mask.dtype != torch.bool):
        raise ValueError(
            f"mask must be bool of shape ({len(S)},), got {mask.dtype} {tuple(mask.shape)}"
        )
