"""Bounds on the steepest step `N(A) = max <A,S> subject to D(S) <= 1`, a norm of the centred `A`.

In closed form, O(V d^2 + d^3) and one pass over all pairs; `rowsep.packing.steepest_step` solves
it. Proofs: docs/explanation/mathematics.md.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .. import checks
from ..cloud import diameter as measure_diameter
from ..cloud import jung_radius
from ..rows import CentredRows, times_power_of_two


class StepBound(NamedTuple):
    """A bound on the steepest step."""

    value: float
    """Bound on `max <A,S>` subject to `D(S) <= diameter`."""
    source: str
    """The argument that gives it, or the update that attains it."""


class AlignmentBounds(NamedTuple):
    """Where the largest alignment lies that any update can have with a given momentum."""

    lower: float
    """Attained by the better of row-normalised `A` and `A` itself."""
    upper: float
    """No update exceeds it; at most 1."""


@torch.no_grad()
def steepest_upper_bound(A: Tensor, diameter: float = 1.0, mask: Tensor | None = None) -> StepBound:
    """Return a bound that `<A,S>` exceeds for no `S` with `D(S) <= diameter`.

    The least over k = 0..d of `head(k) + tail(k)`, with `P_k` the projection on the first k right
    singular vectors of the centred `A` and `r = min(k, V-1)`:

        head(k) = sqrt(r/(2(r+1))) sum_i ||P_k a_i||                         (Jung in r dimensions)
        tail(k) = min( sqrt((V-1)/2) ||A - A P_k||_F,                                  (Frobenius)
                       1/2 sum_{l>k} sum_i |<a_i, v_l>| )           (Jung in each of the dimensions)

    k = d is Jung's bound, the denominator of `alignment`; k = 0 has no head. It holds for every
    orthonormal basis, so an inexact one costs tightness only. Costs one product `A^T A` and its
    eigendecomposition in float64, O(V d^2 + d^3).

    Args:
        A: shape (V, d), float16, bfloat16, float32 or float64; centred here.
        diameter: at least 0.
        mask: bool, shape (V,), True for the rows that take part.

    Returns:
        The bound, up to float64 rounding of its sums, and the terms it is made of.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check_step(A, diameter, mask)
    rows = CentredRows(A, mask)
    value, source = _upper(rows, A.shape[1])
    return StepBound(times_power_of_two(value * diameter, rows.exponent), source)


@torch.no_grad()
def steepest_lower_bound(A: Tensor, diameter: float = 1.0, mask: Tensor | None = None) -> StepBound:
    """Return a value of `<A,S>` that some `S` with `D(S) <= diameter` attains.

    The larger of `diameter/2 sum_i ||a_i||`, from the row-normalised `s_i = diameter/2 a_i/||a_i||`
    (0 for a zero row), and `diameter ||A||_F^2 / D(A)`, from `A` scaled; `A` centred. One pass
    over all pairs.

    Args:
        A: shape (V, d), float16, bfloat16, float32 or float64; centred here.
        diameter: at least 0.
        mask: bool, shape (V,), True for the rows that take part.

    Returns:
        The value, and "row-normalised" or "scaled" for the update that attains it.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check_step(A, diameter, mask)
    rows = CentredRows(A, mask)
    value, source = _lower(rows, measure_diameter(A, mask).value)
    return StepBound(times_power_of_two(value * diameter, rows.exponent), source)


@torch.no_grad()
def max_alignment_bounds(A: Tensor, mask: Tensor | None = None) -> AlignmentBounds:
    """Return bounds on the largest `alignment(A, S)` over all `S`.

    Those on the steepest step divided by `sqrt(d/(2(d+1))) sum_i ||a_i||`; (0.0, 0.0) if all rows
    of `A` are equal. The lower one is at least `sqrt((d+1)/(2d))`.

    Args:
        A: shape (V, d), float16, bfloat16, float32 or float64; centred here.
        mask: bool, shape (V,), True for the rows that take part.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check_step(A, 1.0, mask)
    rows = CentredRows(A, mask)
    jung = _jung(rows, A.shape[1])
    if jung == 0.0:
        return AlignmentBounds(0.0, 0.0)
    lower, _ = _lower(rows, measure_diameter(A, mask).value)
    return AlignmentBounds(lower / jung, alignment_upper_bound(A, mask))


@torch.no_grad()
def alignment_upper_bound(A: Tensor, mask: Tensor | None = None) -> float:
    """Return the upper one of `max_alignment_bounds`, without a pass over all pairs."""
    _check_step(A, 1.0, mask)
    rows = CentredRows(A, mask)
    jung = _jung(rows, A.shape[1])
    return min(1.0, _upper(rows, A.shape[1])[0] / jung) if jung > 0.0 else 0.0


def _jung(rows: CentredRows, dim: int) -> float:
    """Return `sqrt(d/(2(d+1))) sum_i ||a_i||` of the scaled rows."""
    return jung_radius(dim) * sum(block.norm(dim=1).sum().item() for block in rows)


def _lower(rows: CentredRows, diameter: float) -> tuple[float, str]:
    """Return `steepest_lower_bound` at diameter 1 of the scaled rows, of the given diameter."""
    norms, squares = 0.0, 0.0
    for block in rows:
        norms += block.norm(dim=1).sum().item()
        squares += block.square().sum().item()
    spread = times_power_of_two(diameter, -rows.exponent)
    scaled = squares / spread if spread > 0.0 else 0.0
    return (norms / 2.0, "row-normalised") if norms / 2.0 >= scaled else (scaled, "scaled")


def _upper(rows: CentredRows, dim: int) -> tuple[float, str]:
    """Return `steepest_upper_bound` at diameter 1 of the scaled rows."""
    if rows.count < 2:
        return 0.0, "fewer than two rows"
    gram = sum((block.T @ block for block in rows), rows.mean.new_zeros(dim, dim))
    basis = torch.linalg.eigh(gram).eigenvectors.flip(1)
    squares, sizes, head = rows.mean.new_zeros(3, dim + 1)
    for block in rows:
        coordinates = block @ basis
        squares[:-1] += coordinates.square().sum(dim=0)
        sizes[:-1] += coordinates.abs().sum(dim=0)
        head[1:] += coordinates.square().cumsum(dim=1).sqrt().sum(dim=0)
    for k in range(1, dim + 1):
        head[k] *= jung_radius(min(k, rows.count - 1))
    frobenius = _tail_sums(squares).sqrt() * math.sqrt((rows.count - 1) / 2)
    each = _tail_sums(sizes) * jung_radius(1)
    tail = torch.minimum(frobenius, each)
    k = int((head + tail).argmin())
    terms = [f"Jung on {k} of {dim} directions"] if k else []
    if k < dim:
        terms.append("Frobenius" if frobenius[k] < each[k] else f"Jung on each of {dim - k}")
    return float(head[k] + tail[k]), " + ".join(terms)


def _check_step(A: Tensor, diameter: float, mask: Tensor | None) -> None:
    checks.check_cloud(A, "A")
    checks.check_mask(mask, A)
    checks.check_size(diameter, "diameter")


def _tail_sums(terms: Tensor) -> Tensor:
    """Return the sums of `terms[k:]` for every k."""
    return terms.flip(0).cumsum(0).flip(0)
