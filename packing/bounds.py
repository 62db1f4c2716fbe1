"""What cannot be beaten: bounds on `rho` over all clouds, and on the steepest step.

`rho(S) = min_{i<j} ||s_i - s_j|| / max_{i<j} ||s_i - s_j||` has bounds that hold for every cloud
of V points of R^d. The steepest step is `N(A) = max <A,S> subject to D(S) <= 1`, a norm of the
centred `A`. Proofs: docs/mathematics.md.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from packing import checks
from packing.cloud import diameter as measure_diameter
from packing.cloud import jung_radius
from packing.rows import CentredRows, times_power_of_two


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


def rho_upper_bound(num_rows: int, dim: int) -> float:
    """Return the least known bound on `rho` over all clouds of `num_rows` points of R^dim.

    The least of `closed_form_bound`, `volume_bound`, for V >= d+2 the exact value at d+2, which is
    `radon_bound`, and for d = 2 `planar_bound`. Attained for V <= d+2 and for d = 1; 1.0 for V < 2.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    bounds = [closed_form_bound(num_rows, dim), volume_bound(num_rows, dim)]
    if num_rows >= dim + 2:
        bounds.append(radon_bound(dim))
    if dim == 2:
        bounds.append(planar_bound(num_rows))
    return min(bounds)


def closed_form_bound(num_rows: int, dim: int) -> float:
    """Return `sqrt(1+k) - sqrt(k)` with `k = max(0, V-1-d)/(dV)`, a bound on `rho`.

    From the variance of the squared distances and the rank of the doubly centred Gram matrix.
    Attained for V <= d+1 (regular simplex, 1.0) and for V = d+2 with even d. Evaluated as
    `1/(sqrt(1+k) + sqrt(k))`, which does not cancel.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    _check_counts(num_rows, dim)
    kappa = max(0, num_rows - 1 - dim) / (dim * max(1, num_rows))
    return 1.0 / (math.sqrt(1.0 + kappa) + math.sqrt(kappa))


def volume_bound(num_rows: int, dim: int) -> float:
    """Return `min(1, 1/(V^(1/d) - 1))`, a bound on `rho`.

    V disjoint balls of radius `delta/2` lie in a set of diameter `D + delta`, whose volume is at
    most that of a ball of this diameter (isodiametric inequality). Says something for V > 2^d;
    attained for d = 1, where it is `1/(V-1)`.

    Args:
        num_rows: V, at least 0.
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not integers, or too small.
    """
    _check_counts(num_rows, dim)
    if num_rows < 2:
        return 1.0
    if dim == 1:
        return 1.0 / (num_rows - 1)
    return 1.0 / max(1.0, math.expm1(math.log(num_rows) / dim))


def radon_bound(dim: int) -> float:
    """Return the largest `rho` of d+2 points of R^d, which bounds it for more points too.

    `1/rho = sqrt(1 + 2/d)` for even d and `sqrt(1 + 2(d+2)/(d(d+2) - 1))` for odd d: two regular
    simplices of one edge about one centre in orthogonal subspaces. Schuette, Minimale Durchmesser
    endlicher Punktmengen mit vorgeschriebenem Mindestabstand, Math. Ann. 150 (1963).

    Args:
        dim: d, at least 1.

    Raises:
        TypeError, ValueError: not an integer, or too small.
    """
    checks.check_count(dim, "dim", 1)
    if dim % 2 == 0:
        return 1.0 / math.sqrt(1.0 + 2.0 / dim)
    return 1.0 / math.sqrt(1.0 + 2.0 * (dim + 2) / (dim * (dim + 2) - 1))


def planar_bound(num_rows: int) -> float:
    """Return the bound on `rho` in the plane: the positive root of Oler's inequality, at most 1.

    A convex set of area F and perimeter L holds at most `2F/sqrt(3) + L/2 + 1` points at distances
    of 1 or more (Oler, An inequality in the geometry of numbers, Acta Math. 105, 1961). With
    diameter `x = 1/rho` it has `F <= pi x^2/4` and `L <= pi x`, so
    `V <= pi/(2 sqrt 3) x^2 + pi/2 x + 1`.

    Args:
        num_rows: V, at least 0.

    Raises:
        TypeError, ValueError: not an integer, or negative.
    """
    checks.check_count(num_rows, "num_rows", 0)
    others = max(1, num_rows - 1)
    a, b = math.pi / math.sqrt(12.0), math.pi / 2.0
    return min(1.0, (b + math.sqrt(b * b + 4.0 * a * others)) / (2.0 * others))


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


def _check_counts(num_rows: int, dim: int) -> None:
    checks.check_count(num_rows, "num_rows", 0)
    checks.check_count(dim, "dim", 1)


def _check_step(A: Tensor, diameter: float, mask: Tensor | None) -> None:
    checks.check_cloud(A, "A")
    checks.check_mask(mask, A)
    checks.check_size(diameter, "diameter")


def _tail_sums(terms: Tensor) -> Tensor:
    """Return the sums of `terms[k:]` for every k."""
    return terms.flip(0).cumsum(0).flip(0)
