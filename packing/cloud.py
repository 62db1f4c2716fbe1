"""What is measured on a row cloud `S in R^{V x d}`, one row per token.

    D(S) = max_{i<j} ||s_i - s_j||,   delta(S) = min_{i<j} ||s_i - s_j||,   rho(S) = delta / D

Proofs of every formula: docs/explanation/mathematics.md. A `mask` (bool, shape (V,)) says which
rows take part; the others count nowhere, but must be finite. A `metric` (`rowsep.packing.metric`)
measures `S Sigma^(1/2)` and `A Sigma^(-1/2)` in their place, in float64 copies. Nothing here is
differentiable.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from . import checks
from .hilbert import hilbert_distance as hilbert_distance
from .metric import Metric, as_metric, in_metric
from .pairs import Extremes, extremes, farthest
from .rows import CentredRows, magnitude, times_power_of_two

SAFE_EXPONENT = 100
"""Float64 clouds whose largest entry is outside 2**-100 .. 2**100 are rescaled before squaring."""


class Extremum(NamedTuple):
    """A distance between two rows, and the rows."""

    value: float
    """The distance."""
    pair: tuple[int, int]
    """Row indices i < j into the whole cloud; (-1, -1) if fewer than two rows take part."""


class Ratio(NamedTuple):
    """The condition number of a row cloud and the two pairs that decide it."""

    value: float
    """`rho = delta / diameter`, between 0 and 1; 0.0 if the diameter is 0."""
    delta: float
    """Smallest distance between two rows; `inf` if fewer than two take part."""
    diameter: float
    """Largest distance between two rows; 0.0 if fewer than two take part."""
    closest: tuple[int, int]
    """A pair at distance `delta`; (-1, -1) if there is none."""
    farthest: tuple[int, int]
    """A pair at distance `diameter`; (-1, -1) if there is none."""


class WorstHiddenState(NamedTuple):
    """The hidden state that moves the softmax farthest."""

    hidden: Tensor
    """Shape (d,), float64, on the device of the cloud."""
    distance: float
    """Hilbert distance that it causes: the supremum over the ball."""
    pair: tuple[int, int]
    """The tokens i < j whose log-odds change by `distance`; (-1, -1) if there are none."""


def jung_radius(dim: int) -> float:
    """Return `sqrt(d/(2(d+1)))`: a set of diameter 1 in R^d lies in a ball of this radius.

    Raises:
        TypeError: `dim` is not an integer.
        ValueError: `dim` is below 1.
    """
    checks.check_count(dim, "dim", 1)
    return math.sqrt(dim / (2.0 * (dim + 1.0)))


@torch.no_grad()
def centre(S: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return `S` minus its mean row: `P S` with `P = I - 11^T/V`.

    Args:
        S: shape (V, d), float16, bfloat16, float32 or float64.
        mask: bool, shape (V,), True for the rows that take part.

    Returns:
        A new tensor of the shape, dtype and device of `S`, each entry rounded once from float64.
        Rows left out are zero. Equal rows give exact zeros.

    Raises:
        TypeError, ValueError: `S` or `mask` is not as above, or a difference overflows its dtype.
    """
    _check(S, mask)
    rows = CentredRows(S, mask)
    centred = torch.zeros_like(S, memory_format=torch.contiguous_format)
    take_part = torch.arange(len(S), device=S.device) if mask is None else mask.nonzero()[:, 0]
    start = 0
    for block in rows:
        stop = start + len(block)
        centred[take_part[start:stop]] = times_power_of_two(block, rows.exponent).to(S.dtype)
        start = stop
    if S.numel() and not all(end.isfinite() for end in torch.aminmax(centred)):
        raise ValueError(
            f"S - mean exceeds {torch.finfo(S.dtype).max}, the largest {S.dtype}; "
            f"scale S down or convert it to a wider dtype first"
        )
    return centred


def ratio(S: Tensor, mask: Tensor | None = None, *, metric: Tensor | Metric | None = None) -> Ratio:
    """Return `rho = delta(S)/D(S)` with both distances and their pairs.

    Args:
        S: shape (V, d), float16, bfloat16, float32 or float64.
        mask: bool, shape (V,), True for the rows that take part.
        metric: measure `S Sigma^(1/2)` instead: a `Metric`, or Sigma of shape (d, d).

    Returns:
        Distances exact to float64 rounding of the entries given, whatever the dtype; those below
        1e-150 of the largest entry may come out as zero. With a metric the product with the root is
        rounded too: by `Metric.error`, relative to the diameter. `rho` is 0.0 when the diameter
        is 0.

    Raises:
        TypeError, ValueError: an argument is not as above.
    """
    found, exponent = _extremes(S, mask, metric)
    return Ratio(
        found.delta / found.diameter if found.diameter > 0.0 else 0.0,
        times_power_of_two(found.delta, exponent),
        times_power_of_two(found.diameter, exponent),
        found.closest,
        found.farthest,
    )


def diameter(
    S: Tensor, mask: Tensor | None = None, *, metric: Tensor | Metric | None = None
) -> Extremum:
    """Return `D(S) = max_{i<j} ||s_i - s_j||` and its pair; see `ratio` for all the rest.

    Cheaper than `ratio` where the lengths of the centred rows differ, see
    `rowsep.packing.pairs.farthest`.
    """
    value, pair, exponent = _farthest(S, mask, metric)
    return Extremum(times_power_of_two(value, exponent), pair)


def separation(
    S: Tensor, mask: Tensor | None = None, *, metric: Tensor | Metric | None = None
) -> Extremum:
    """Return `delta(S) = min_{i<j} ||s_i - s_j||` and its pair; see `ratio` for all the rest."""
    found, exponent = _extremes(S, mask, metric)
    return Extremum(times_power_of_two(found.delta, exponent), found.closest)


def alignment(
    A: Tensor,
    S: Tensor,
    mask: Tensor | None = None,
    *,
    diameter: float | None = None,
    metric: Tensor | Metric | None = None,
) -> float:
    """Return `<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`, rows `a_i` of `A` centred.

    The share of the largest first-order decrease that any update of the diameter of `S` could
    give: within [-1, 1] up to rounding, by Jung's theorem. It does not change when `A` or `S` is
    shifted by one row or scaled by a positive number. Sums are taken in float64.

    Args:
        A: shape (V, d); its mean over the rows that take part is subtracted here.
        S: shape (V, d), need not be centred.
        mask: bool, shape (V,), True for the rows that take part.
        diameter: `D(S)` if it is known already, in the metric; it saves the pass over all pairs.
        metric: Sigma, for `<A,S> / (D(S Sigma^(1/2)) sqrt(d/(2(d+1))) sum_i ||a_i Sigma^(-1/2)||)`.

    Returns:
        The alignment; 0.0 if all rows of `A` are equal or the diameter is 0.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check_two(A, S, mask)
    metric = as_metric(metric, S)
    if diameter is None:
        diameter, _, exponent = _farthest(S, mask, metric)
    else:
        checks.check_size(diameter, "diameter")
        diameter, exponent = float(diameter), 0
    product, norms = 0.0, 0.0
    rows_a, rows_s = CentredRows(A, mask), CentredRows(S, mask)
    for a, s in zip(rows_a, rows_s, strict=True):
        product += (a * s).sum().item()
        norms += (a if metric is None else metric.whitened(a)).norm(dim=1).sum().item()
    scale = times_power_of_two(diameter, exponent - rows_s.exponent) * norms
    return product / (scale * jung_radius(S.shape[1])) if scale > 0.0 else 0.0


def cosine(
    A: Tensor,
    S: Tensor,
    mask: Tensor | None = None,
    *,
    metric: Tensor | Metric | None = None,
) -> float:
    """Return `<A,S> / (||A|| ||S||)`, Frobenius norms, both centred, sums in float64.

    Args:
        A: shape (V, d).
        S: shape (V, d).
        mask: bool, shape (V,), True for the rows that take part.
        metric: Sigma, for `<A,S> / (||A Sigma^(-1/2)|| ||S Sigma^(1/2)||)`.

    Returns:
        The cosine, in [-1, 1]; 0.0 if all rows of `A` or all rows of `S` are equal.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check_two(A, S, mask)
    metric = as_metric(metric, S)
    product, square_a, square_s = 0.0, 0.0, 0.0
    for a, s in zip(CentredRows(A, mask), CentredRows(S, mask), strict=True):
        product += (a * s).sum().item()
        if metric is not None:
            a, s = metric.whitened(a), metric.stretched(s)
        square_a += a.square().sum().item()
        square_s += s.square().sum().item()
    scale = math.sqrt(square_a) * math.sqrt(square_s)
    return max(-1.0, min(1.0, product / scale)) if scale > 0.0 else 0.0


@torch.no_grad()
def gain_diameter(S: Tensor, gain: Tensor, mask: Tensor | None = None) -> Extremum:
    """Return `max_{i<j} ||g * (s_i - s_j)||` and its pair: the diameter behind an RMS norm.

    Args:
        S: shape (V, d), float16, bfloat16, float32 or float64; a float64 copy is made.
        gain: `g`, shape (d,), floating dtype, any signs.
        mask: bool, shape (V,), True for the rows that take part.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    _check(S, mask)
    checks.check_gain(gain, S)
    rows, gain_exponent = CentredRows(S, mask), magnitude(gain[None])
    stretched = rows.of(S).mul_(times_power_of_two(gain.double(), -gain_exponent))
    if mask is not None:
        stretched[~mask] = 0.0
    value, pair, exponent = _farthest(stretched, mask, None)
    for taken_out in (exponent, rows.exponent, gain_exponent):
        value = times_power_of_two(value, taken_out)
    return Extremum(value, pair)


@torch.no_grad()
def worst_hidden_state(
    S: Tensor,
    radius: float,
    gain: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    metric: Tensor | Metric | None = None,
) -> WorstHiddenState:
    """Return the hidden state of the ball for which adding `S` to a head changes softmax most.

    Without a gain `sup_{||h|| <= R} H(softmax((U+S)h), softmax(Uh)) = R D(S)` for every head `U`,
    attained at `h = R (s_i - s_j)/D`. With `h = g * n`, `||n|| <= R` (RMS norm: `R = sqrt(d)`) it
    is `R max ||g * (s_i - s_j)||`, attained at `n = R g * (s_i - s_j)/||g * (s_i - s_j)||`. In the
    ellipsoid `h^T Sigma^-1 h <= R^2` of a metric it is `R D(S Sigma^(1/2))`, attained at
    `h = R Sigma (s_i - s_j)/||Sigma^(1/2) (s_i - s_j)||`.

    Args:
        S: the update of the head, shape (V, d), floating dtype.
        radius: `R`, finite, at least 0.
        gain: `g`, shape (d,), or None for plain hidden states.
        mask: bool, shape (V,), the tokens over which the softmax is taken.
        metric: a `Metric`, or Sigma of shape (d, d); not together with a gain.

    Returns:
        `hidden` is `h` itself (`g * n` with a gain); zero, at distance 0.0, if all rows are equal.

    Raises:
        TypeError, ValueError: the arguments are not as above.
    """
    checks.check_size(radius, "radius")
    metric = as_metric(metric, S)
    if gain is None:
        found = diameter(S, mask, metric=metric)
    elif metric is None:
        found = gain_diameter(S, gain, mask)
    else:
        raise ValueError("gain and metric are both given; a gain is the metric diag(gain**2)")
    hidden = S.new_zeros(S.shape[1], dtype=torch.float64)
    if found.value > 0.0:
        two = S[list(found.pair)].double()
        two = times_power_of_two(two, -magnitude(two))
        direction = _unit(two[0] - two[1])
        if metric is not None:
            hidden = radius * (_unit(direction @ metric.root) @ metric.root)
        elif gain is None:
            hidden = radius * direction
        else:
            g = gain.double()
            hidden = g * (radius * _unit(g * direction))
    return WorstHiddenState(hidden, radius * found.value, found.pair)


def _check(S: Tensor, mask: Tensor | None) -> None:
    checks.check_cloud(S, "S")
    checks.check_mask(mask, S)


def _check_two(A: Tensor, S: Tensor, mask: Tensor | None) -> None:
    checks.check_cloud(A, "A")
    _check(S, mask)
    checks.check_same_shape(A, S)


@torch.no_grad()
def _extremes(
    S: Tensor, mask: Tensor | None, metric: Tensor | Metric | None
) -> tuple[Extremes, int]:
    """Return the extremes of `2**-exponent * S`, in the metric, and the exponent."""
    scaled, exponent = _measured(S, mask, metric)
    return extremes(scaled, mask=mask), exponent


@torch.no_grad()
def _farthest(
    S: Tensor, mask: Tensor | None, metric: Tensor | Metric | None
) -> tuple[float, tuple[int, int], int]:
    """Return the diameter of `2**-exponent * S`, in the metric, its pair, and the exponent."""
    scaled, exponent = _measured(S, mask, metric)
    return *farthest(scaled, mask=mask), exponent


def _measured(S: Tensor, mask: Tensor | None, metric: Tensor | Metric | None) -> tuple[Tensor, int]:
    """Return `2**-exponent * S`, in the metric, at a scale where squares are safe."""
    _check(S, mask)
    metric = as_metric(metric, S)
    if metric is None:
        return _at_safe_scale(S, mask)
    return in_metric(S, metric, mask)


def _at_safe_scale(S: Tensor, mask: Tensor | None) -> tuple[Tensor, int]:
    """Return `2**-exponent * S`, and the exponent: 0 where squares are safe as they are."""
    exponent = magnitude(S, mask) if S.dtype == torch.float64 else 0
    if abs(exponent) <= SAFE_EXPONENT:
        return S, 0
    return times_power_of_two(S, -exponent), exponent


def _unit(x: Tensor) -> Tensor:
    x = times_power_of_two(x, -magnitude(x[None]))
    return x / x.norm()
