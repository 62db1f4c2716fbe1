"""The smoothed condition number: value, gradient, sandwich, invariances, and no overflow."""

import itertools
import math

import pytest
import torch

from rowsep.packing.pairs import extremes, soft_extremes
from tests.packing import clouds

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4}


def relative(found, truth):
    """Frobenius error relative to the truth's norm."""
    return float((found.double() - truth.double()).norm() / truth.double().norm())


SMALL = itertools.product([(3, 2), (65, 17), (513, 40)], [0.7, 3.0, 40.0, 2000.0])
LARGE = [((1025, 12), 0.7), ((1025, 12), 2000.0)]


@pytest.mark.parametrize(("shape", "beta"), [*SMALL, *LARGE])
@pytest.mark.parametrize("dtype", clouds.DTYPES, ids=str)
def test_blocked_equals_naive(shape, dtype, beta, generator):
    V, d = shape
    S = clouds.gaussian(V, d, generator, dtype)
    found = soft_extremes(S, beta, impl="blocked")
    truth = soft_extremes(S, beta, impl="naive")
    if math.isinf(truth.value):  # narrow formats can round two rows together
        assert found.value == truth.value
        return
    tolerance = TOLERANCE[found.gradient.dtype]
    assert math.isclose(found.value, truth.value, rel_tol=tolerance)
    assert relative(found.gradient, truth.gradient) <= tolerance
    assert found.gradient.shape == (V, d)
    exact = extremes(S, impl="naive")
    assert math.isclose(found.delta, exact.delta, rel_tol=1e-12)
    assert math.isclose(found.diameter, exact.diameter, rel_tol=1e-12)
    assert 1 <= found.pairs <= truth.pairs == V * (V - 1) // 2


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_gradient_equals_finite_differences(impl, generator):
    S = clouds.gaussian(90, 5, generator, torch.float64)
    for beta in (1.3, 15.0):
        gradient = soft_extremes(S, beta, impl=impl).gradient
        for _ in range(4):
            direction = clouds.gaussian(90, 5, generator, torch.float64)
            direction /= direction.norm()
            ahead, behind = (
                soft_extremes(S + h * direction, beta, impl=impl).value for h in (1e-5, -1e-5)
            )
            slope = float((gradient * direction).sum())
            assert math.isclose((ahead - behind) / 2e-5, slope, rel_tol=1e-5, abs_tol=1e-7)


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize("beta", [0.5, 5.0, 100.0, 1e5])
def test_value_lies_in_the_sandwich(impl, beta, generator):
    for S in (clouds.gaussian(300, 9, generator), clouds.orthoplex(80), clouds.grid(15)):
        found = soft_extremes(S, beta, impl=impl)
        low = 2 * math.log(found.diameter / found.delta)
        count = len(S) * (len(S) - 1) // 2
        assert low - 1e-6 <= found.value <= low + 2 * math.log(count) / beta + 1e-6


def test_all_pairs_tied_have_a_known_value_and_no_force():
    found = soft_extremes(clouds.simplex(300), 7.0, impl="blocked")
    assert math.isclose(found.value, 2 * math.log(300 * 299 / 2) / 7, rel_tol=1e-5)
    assert found.pairs == 300 * 299 // 2
    assert float(found.gradient.norm()) < 1e-5


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-3])
def test_scale_changes_the_gradient_alone(impl, scale, generator):
    S = clouds.gaussian(200, 6, generator)
    one, other = (soft_extremes(X, 12.0, impl=impl) for X in (S, S * scale))
    assert math.isclose(one.value, other.value, rel_tol=1e-5)
    assert relative(other.gradient.double() * scale, one.gradient) < 1e-4


@pytest.mark.parametrize("make", [clouds.with_twins, clouds.heavy])
@pytest.mark.parametrize("beta", [2.0, 300.0])
def test_hard_clouds(make, beta, generator):
    S = make(600, 12, generator)
    found, truth = (soft_extremes(S, beta, impl=impl) for impl in ("blocked", "naive"))
    assert math.isclose(found.value, truth.value, rel_tol=1e-5)
    assert relative(found.gradient, truth.gradient) < 1e-3


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_permutation_rotation_shift(impl, generator):
    S = clouds.gaussian(150, 8, generator, torch.float64)
    found = soft_extremes(S, 9.0, impl=impl)
    order = torch.randperm(150, generator=generator)
    assert relative(soft_extremes(S[order], 9.0, impl=impl).gradient, found.gradient[order]) < 1e-9
    Q = clouds.rotation(8, generator)
    turned = soft_extremes(S @ Q + 2, 9.0, impl=impl)
    assert math.isclose(turned.value, found.value, rel_tol=1e-9)
    assert relative(turned.gradient, found.gradient @ Q) < 1e-9


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_mask(impl, generator):
    S = clouds.gaussian(300, 7, generator, torch.float64)
    S[::5] = math.inf
    mask = torch.ones(300, dtype=torch.bool)
    mask[::5] = False
    found = soft_extremes(S, 9.0, mask=mask, impl=impl)
    truth = soft_extremes(S[mask], 9.0, impl="naive")
    assert math.isclose(found.value, truth.value, rel_tol=1e-9)
    assert relative(found.gradient[mask], truth.gradient) < 1e-9
    assert not found.gradient[~mask].any()


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_equal_rows_and_too_few_rows(impl, generator):
    S = clouds.gaussian(200, 4, generator)
    S[9] = S[150]
    found = soft_extremes(S, 5.0, impl=impl)
    assert (found.value, found.delta, found.pairs) == (math.inf, 0.0, 0)
    assert not found.gradient.any()
    few = soft_extremes(torch.ones(1, 4), 5.0, impl=impl)
    assert few.value == -math.inf and not few.gradient.any()
    assert (few.delta, few.diameter, few.pairs) == (math.inf, 0.0, 0)


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_beta_is_refused_outside_its_range(beta):
    with pytest.raises(ValueError, match="beta must be positive and finite"):
        soft_extremes(torch.eye(3), beta)
