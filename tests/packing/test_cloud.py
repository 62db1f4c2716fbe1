"""Measures equal the float64 definition on the same entries, and have the symmetries they should.

One relative tolerance, `EXACT`, for figures that are exact to float64 rounding.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rowsep.packing import cloud, rows
from rowsep.packing.checks import DTYPES

EXACT = 1e-12
KINDS = ("plain", "transposed", "strided", "masked", "twins")

seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(1, 24), st.integers(1, 9))
each_dtype = st.sampled_from(DTYPES)
properties = settings(max_examples=60)


def draw(seed, size, dtype=torch.float64, decades=1.0):
    """Gaussian rows whose norms are spread over `decades` decades."""
    generator = torch.Generator().manual_seed(seed)
    S = torch.randn(*size, generator=generator, dtype=torch.float64)
    return (S * 10 ** (decades * torch.rand(size[0], 1, generator=generator))).to(dtype)


def orthogonal(seed, dim):
    """A random orthogonal matrix."""
    return torch.linalg.qr(draw(seed, (dim, dim), decades=0.0)).Q


def case(seed, size, dtype, kind):
    """A cloud and a mask (or None) of the kind asked."""
    S, mask = draw(seed, size, dtype, decades=2.0), None
    if kind == "transposed":
        S = S.T.contiguous().T
    elif kind == "strided":
        S = S.repeat_interleave(2, 0).repeat_interleave(3, 1)[::2, ::3]
    elif kind == "masked":
        mask = torch.rand(size[0], generator=torch.Generator().manual_seed(seed)) < 0.6
    elif kind == "twins":
        S[size[0] // 2 :] = S[0] * (1 + torch.finfo(dtype).eps)
    return S, mask


def kept(S, mask):
    """The rows that take part, as float64 numpy, and their indices."""
    indices = np.arange(len(S)) if mask is None else np.flatnonzero(mask.numpy())
    return S.double().numpy()[indices], indices


def brute_force(S, mask=None):
    """Every pair's distance by the definition: {(i, j): distance}."""
    x, indices = kept(S, mask)
    return {
        (int(indices[i]), int(indices[j])): math.dist(x[i], x[j])
        for i, j in itertools.combinations(range(len(x)), 2)
    }


def same(a, b):
    """Equal to float64 rounding, relative, zero only to zero."""
    return a == pytest.approx(b, rel=EXACT, abs=0.0)


@properties
@given(seeds, sizes, each_dtype, st.sampled_from(KINDS))
def test_distances_equal_the_definition(seed, size, dtype, kind):
    S, mask = case(seed, size, dtype, kind)
    distances = brute_force(S, mask)
    found = cloud.ratio(S, mask)
    assert found.delta == cloud.separation(S, mask).value
    alone = cloud.diameter(S, mask)  # of tied pairs it may find another
    assert same(alone.value, found.diameter)
    assert found.closest == cloud.separation(S, mask).pair
    if not distances:
        assert alone == (0.0, (-1, -1))
        assert found == (0.0, math.inf, 0.0, (-1, -1), (-1, -1))
        return
    assert same(found.delta, min(distances.values()))
    assert same(found.diameter, max(distances.values()))
    assert same(distances[found.closest], found.delta)
    assert same(distances[found.farthest], found.diameter)
    assert same(distances[alone.pair], found.diameter)
    assert found.value == (found.delta / found.diameter if found.diameter else 0.0)


@properties
@given(seeds, sizes, each_dtype, st.sampled_from(KINDS))
def test_alignment_and_cosine_equal_the_definition(seed, size, dtype, kind):
    S, mask = case(seed, size, dtype, kind)
    A = draw(seed + 1, size, dtype, decades=3.0)
    a, s = kept(A, mask)[0], kept(S, mask)[0]
    if len(a) < 2 or (spread := max(brute_force(S, mask).values())) == 0.0:
        assert cloud.alignment(A, S, mask) == cloud.cosine(A, S, mask) == 0.0
        return
    a, s, dim = a - a.mean(0), s - s.mean(0), size[1]
    norms = np.linalg.norm(a, axis=1).sum()
    expected = (a * s).sum() / (spread * math.sqrt(dim / (2 * (dim + 1))) * norms)
    # Twins one ulp apart leave the centred rows of the expected value itself few digits.
    slack = 1e-6 if kind == "twins" else 1e-11
    assert cloud.alignment(A, S, mask) == pytest.approx(expected, abs=slack)
    given_diameter = cloud.alignment(A, S, mask, diameter=spread)
    assert given_diameter == pytest.approx(cloud.alignment(A, S, mask), abs=EXACT)
    expected = (a * s).sum() / (np.linalg.norm(a) * np.linalg.norm(s))
    assert cloud.cosine(A, S, mask) == pytest.approx(expected, abs=slack)


@properties
@given(seeds, sizes, st.integers(-40, 40))
def test_symmetries(seed, size, power):
    S, A = draw(seed, size), draw(seed + 1, size)
    order = torch.randperm(size[0], generator=torch.Generator().manual_seed(seed))
    turn = orthogonal(seed + 2, size[1])
    shift = draw(seed + 3, (1, size[1]))
    moved = {
        "permuted": (A[order], S[order], 1.0),
        "rotated": (A @ turn, S @ turn, 1.0),
        "shifted": (A - 3 * shift, S + shift, 1.0),
        "scaled": (A * 1e9, S * 10.0**power, 10.0**power),
    }
    before, cosine = cloud.ratio(S), cloud.cosine(A, S)
    for name, (A_moved, S_moved, factor) in moved.items():
        after = cloud.ratio(S_moved)
        assert after.value == pytest.approx(before.value, rel=1e-9), name
        assert after.delta == pytest.approx(before.delta * factor, rel=1e-9), name
        assert after.diameter == pytest.approx(before.diameter * factor, rel=1e-9), name
        alignment = cloud.alignment(A_moved, S_moved)
        assert alignment == pytest.approx(cloud.alignment(A, S), abs=1e-11), name
        assert cloud.cosine(A_moved, S_moved) == pytest.approx(cosine, abs=1e-11), name
    assert cloud.alignment(-A, S) == pytest.approx(-cloud.alignment(A, S), abs=EXACT)


@properties
@given(seeds, sizes, st.integers(-1000, 1000))
def test_float64_of_any_magnitude(seed, size, power):
    """Scaling by a power of two changes no digit, far beyond the range of squares."""
    S, A = draw(seed, size), draw(seed + 1, size)
    big, big_a = S * 2.0**power, A * 2.0**-power
    before, after = cloud.ratio(S), cloud.ratio(big)
    assert same(after.value, before.value)
    assert same(after.diameter, before.diameter * 2.0**power)
    assert same(cloud.cosine(A, S), cloud.cosine(big_a, big))
    assert same(cloud.alignment(A, S), cloud.alignment(big_a, big))
    if size[0] > 1:
        worst, worst_big = cloud.worst_hidden_state(S, 1.0), cloud.worst_hidden_state(big, 1.0)
        torch.testing.assert_close(worst.hidden, worst_big.hidden, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(cloud.centre(big) * 2.0**-power, cloud.centre(S))


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (torch.float32, 1e30),
        (torch.float32, 1e-30),
        (torch.float32, 1e-43),
        (torch.bfloat16, 1e30),
        (torch.bfloat16, 1e-30),
        (torch.float16, 2e-7),
        (torch.float64, 1e300),
        (torch.float64, 5e-320),
    ],
)
def test_huge_and_denormal_entries(dtype, size):
    S = (torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=torch.float64) * size).to(dtype)
    unit = S[1, 0].item() / 3  # as rounded
    found = cloud.ratio(S)
    x = S.double().numpy() / S.double().abs().max().item()
    expected = math.dist(x[0], x[1]) / math.dist(x[0], x[2])
    assert 0.0 < unit < math.inf and same(found.value, min(expected, 1 - expected))
    assert cloud.cosine(S, S) == pytest.approx(1.0, abs=EXACT)
    norms = np.linalg.norm(x - x.mean(0), axis=1)
    alignment = (norms**2).sum() / (math.dist(x[0], x[2]) * math.sqrt(1 / 3) * norms.sum())
    assert cloud.alignment(S, S) == pytest.approx(alignment, rel=1e-11)


def test_near_duplicates_far_from_the_origin():
    S = torch.full((5, 3), 1e6, dtype=torch.float64)
    S[1:] += torch.arange(1.0, 5.0)[:, None]
    S[4] = S[2] + torch.tensor([2.0**-30, 0.0, 0.0])
    found = cloud.ratio(S)
    assert (found.delta, found.closest) == (2.0**-30, (2, 4))
    assert same(found.diameter, 3 * math.sqrt(3.0))


def test_a_common_shift_costs_no_digits():
    """On a grid that the shifted rows keep exactly."""
    S, A = (draw(seed, (50, 4)).mul(2**10).round().div(2**10) for seed in (0, 1))
    far_s, far_a = S + 2.0**40, A - 2.0**40
    assert torch.equal(far_s - 2.0**40, S)
    assert same(cloud.alignment(far_a, far_s), cloud.alignment(A, S))
    assert same(cloud.cosine(far_a, far_s), cloud.cosine(A, S))
    torch.testing.assert_close(cloud.centre(far_s), cloud.centre(S), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 17])
def test_known_configurations(dim):
    """Regular simplex 1, orthoplex 1/sqrt 2, points on a line 1/(V-1)."""
    basis = torch.eye(dim + 1, dtype=torch.float64)
    assert same(cloud.ratio(basis).value, 1.0)
    orthoplex = torch.cat([basis, -basis])
    assert same(cloud.ratio(orthoplex).value, math.sqrt(0.5))
    line = torch.arange(dim + 2.0)[:, None]
    assert same(cloud.ratio(line).value, 1 / (dim + 1))


def simplex(dim):
    """The d+1 vertices of a regular simplex of edge 1 in R^d, centred."""
    corners = cloud.centre(torch.eye(dim + 1, dtype=torch.float64)) / math.sqrt(2.0)
    return corners @ torch.linalg.svd(corners).Vh[:dim].T


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 17])
def test_a_simplex_aligns_fully_with_itself(dim):
    S = simplex(dim)
    assert same(cloud.diameter(S).value, 1.0)
    assert cloud.jung_radius(dim) == pytest.approx(S[0].norm().item(), rel=EXACT)
    assert cloud.alignment(S, 7 * S + 1) == pytest.approx(1.0, abs=EXACT)
    assert cloud.alignment(S, -S) == pytest.approx(-1.0, abs=EXACT)


@properties
@given(seeds, sizes)
def test_alignment_range_and_what_row_normalisation_gives(seed, size):
    A, S = draw(seed, size, decades=3.0), draw(seed + 1, size)
    assert -1 - EXACT <= cloud.alignment(A, S) <= 1 + EXACT
    if size[0] > 1:
        normalised = torch.nn.functional.normalize(A - A.mean(0), dim=1)
        floor = math.sqrt((size[1] + 1) / (2 * size[1]))
        assert cloud.alignment(A, normalised) >= floor - 1e-9


@properties
@given(seeds, sizes, each_dtype, st.sampled_from(KINDS))
def test_centre(seed, size, dtype, kind):
    S, mask = case(seed, size, dtype, kind)
    before = S.clone()
    centred = cloud.centre(S, mask)
    assert torch.equal(S, before)
    assert (centred.dtype, centred.shape) == (S.dtype, S.shape)
    x, indices = kept(S, mask)
    expected = np.zeros(size)
    if len(x):
        expected[indices] = x - x.mean(0)
    step = torch.finfo(dtype).eps * np.abs(expected) + 1e-14 * np.abs(x).max(initial=0.0)
    step = step + torch.finfo(dtype).smallest_normal
    assert (np.abs(centred.double().numpy() - expected) <= step).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_rows_are_exactly_zero(dtype):
    S = draw(1, (1, 3), dtype).repeat(997, 1)
    A = draw(0, (997, 3), dtype)
    assert not cloud.centre(S).any()
    assert cloud.ratio(S)[:3] == (0.0, 0.0, 0.0)
    assert cloud.alignment(S, A) == cloud.alignment(A, S) == 0.0
    assert cloud.cosine(S, A) == cloud.cosine(A, S) == 0.0
    worst = cloud.worst_hidden_state(S, 5.0)
    assert worst.distance == 0.0 and not worst.hidden.any()


def test_the_mean_is_accumulated_in_float64():
    S = torch.full((70000, 1), 1.0, dtype=torch.bfloat16)
    S[0] = 3.0
    assert cloud.centre(S)[0].item() == 2.0
    assert cloud.centre(S)[1].item() == pytest.approx(-2 / 70000, rel=2**-8)


def test_centring_that_overflows_is_refused():
    S = torch.tensor([[60000.0], [-60000.0], [-60000.0]], dtype=torch.float16)
    with pytest.raises(ValueError, match="exceeds 65504.*wider dtype"):
        cloud.centre(S)
    assert cloud.centre(S.float())[0].item() == 80000.0


def test_rows_left_out_change_nothing():
    S, A = 1e-3 * draw(0, (20, 4)), draw(1, (20, 4))
    mask = torch.arange(20) % 3 > 0
    garbage_s, garbage_a = S.clone(), A.clone()
    garbage_s[~mask], garbage_a[~mask] = 1.7e308, -1.7e308
    gain = draw(2, (1, 4))[0]
    for measure in (
        lambda S, A: cloud.ratio(S, mask),
        lambda S, A: cloud.alignment(A, S, mask),
        lambda S, A: cloud.cosine(A, S, mask),
        lambda S, A: cloud.gain_diameter(S, gain, mask),
        lambda S, A: cloud.centre(S, mask).tolist(),
    ):
        assert measure(S, A) == measure(garbage_s, garbage_a)
    assert not cloud.centre(S, mask)[~mask].any()


def test_blocks_do_not_show(monkeypatch):
    S, A = draw(0, (50, 4)), draw(1, (50, 4))
    mask = torch.arange(50) > 11
    whole = cloud.alignment(A, S, mask), cloud.cosine(A, S), cloud.centre(S, mask)
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 12)
    assert cloud.alignment(A, S, mask) == pytest.approx(whole[0], rel=EXACT)
    assert cloud.cosine(A, S) == pytest.approx(whole[1], rel=EXACT)
    torch.testing.assert_close(cloud.centre(S, mask), whole[2], rtol=0, atol=1e-14)


def test_no_gradient_is_recorded():
    S = draw(0, (5, 2)).requires_grad_()
    assert not cloud.centre(S).requires_grad
    assert not cloud.worst_hidden_state(S, 1.0).hidden.requires_grad
    assert isinstance(cloud.alignment(S, S), float)
