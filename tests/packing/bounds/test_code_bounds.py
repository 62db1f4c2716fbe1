"""Bounds on spherical codes against known codes and programmes; what they prove of `rho`."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from rowsep.packing import bounds, cloud
from rowsep.packing.bounds import codes
from rowsep.packing.bounds.delsarte import delsarte_size, verified

# Levenshtein's bound meets these codes (Handbook of Coding Theory, 1998, ch. 6, table 9.1)
SHARP = [
    (5, 2, (math.sqrt(5) - 1) / 4),
    (12, 3, 1 / math.sqrt(5)),
    (16, 5, 1 / 5),
    (27, 6, 1 / 4),
    (56, 7, 1 / 3),
    (240, 8, 1 / 2),
    (162, 21, 1 / 7),
    (100, 22, 1 / 11),
    (275, 22, 1 / 6),
    (4600, 23, 1 / 3),
    (196560, 24, 1 / 2),
]


@pytest.mark.parametrize(("size", "dim", "cosine"), SHARP)
def test_levenshtein_meets_the_sharp_codes(size, dim, cosine):
    assert codes.levenshtein_size(cosine, dim) == pytest.approx(size, rel=1e-10)
    assert codes.levenshtein_cosine(size, dim) == pytest.approx(cosine, abs=1e-11)


@pytest.mark.parametrize("dim", [2, 3, 7, 40])
def test_levenshtein_continues_rankin_and_grows(dim):
    for num_rows in range(3, dim + 2):
        assert codes.levenshtein_cosine(num_rows, dim) == pytest.approx(-1 / (num_rows - 1))
        assert codes.rankin_cosine(num_rows, dim) == -1 / (num_rows - 1)
    assert codes.levenshtein_cosine(2 * dim, dim) == pytest.approx(0.0, abs=1e-11)
    assert codes.rankin_cosine(2 * dim, dim) == 0.0
    found = [codes.levenshtein_cosine(n, dim) for n in range(3, 40 * dim, dim)]
    assert found == sorted(found) and found[-1] < 1


def test_coherence_bounds_are_met_by_known_frames():
    # the six diagonals of the icosahedron; the bases of the plane at 45 degrees
    assert codes.welch_coherence(6, 3) == pytest.approx(1 / math.sqrt(5))
    assert codes.orthoplex_coherence(4, 2) == pytest.approx(math.sqrt(0.5))
    assert codes.welch_coherence(3, 3) == codes.orthoplex_coherence(3, 2) == 0.0


@pytest.mark.parametrize(("num_rows", "dim"), [(7, 3), (20, 3), (40, 6), (6, 5)])
def test_no_random_code_is_below_the_bounds(num_rows, dim, generator):
    x = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    x /= x.norm(dim=1, keepdim=True)
    for _ in range(200):  # push the vectors apart, so that the bounds are put to the test
        gram = (x @ x.T).fill_diagonal_(-2)
        x -= 0.05 * (gram * 10).softmax(dim=1) @ x
        x /= x.norm(dim=1, keepdim=True)
    gram = (x @ x.T)[*torch.triu_indices(num_rows, num_rows, 1)]
    assert gram.max() >= codes.levenshtein_cosine(num_rows, dim) >= -1
    assert gram.max() >= codes.rankin_cosine(num_rows, dim) - 1e-12
    assert gram.abs().max() >= codes.welch_coherence(num_rows, dim)
    assert gram.abs().max() >= codes.orthoplex_coherence(num_rows, dim)


@pytest.mark.parametrize(
    ("dim", "cosine", "degree", "size"),
    [
        # sharp codes
        (8, Fraction(1, 2), 6, 240),
        (24, Fraction(1, 2), 10, 196560),
        (7, Fraction(1, 3), 5, 56),
        (3, Fraction(-1, 3), 2, 4),
        (5, Fraction(0), 2, 10),
        # Odlyzko and Sloane, J. Combin. Theory A 26 (1979): kissing numbers by this programme
        (3, Fraction(1, 2), 12, 13.158),
        (4, Fraction(1, 2), 12, 25.558),
        (5, Fraction(1, 2), 12, 46.345),
    ],
)
def test_delsarte_gives_the_published_sizes(dim, cosine, degree, size):
    found = delsarte_size(cosine, dim, degree)
    assert float(found.value) == pytest.approx(size, rel=4e-4)
    if isinstance(size, int):
        assert math.floor(found.value) == size  # never below what exists
    assert verified(list(found.coefficients), cosine, dim)
    assert found.value == sum(found.coefficients) / found.coefficients[0]


def test_a_polynomial_that_proves_nothing_is_refused():
    third = Fraction(1, 3)
    assert verified([third - Fraction(1, 100), Fraction(1)], -third, 3)
    assert not verified([third + Fraction(1, 100), Fraction(1)], -third, 3)  # positive at the end
    assert not verified([Fraction(1, 10), Fraction(-1), Fraction(1)], -third, 3)
    assert not verified([Fraction(0), Fraction(1)], -third, 3)
    with pytest.raises(TypeError, match="Fraction"):
        delsarte_size(0.5, 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="cosine is 1"):
        delsarte_size(Fraction(1), 3)
    with pytest.raises(RuntimeError, match="no polynomial of degree 1 .* raise degree, up to 30"):
        delsarte_size(Fraction(1, 2), 3, 1)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, torch.tensor])
def test_integers_of_any_kind_are_the_same(kind):
    assert delsarte_size(Fraction(0), kind(5), kind(2)) == delsarte_size(0, 5, 2)
    for bound in (
        codes.welch_coherence,
        codes.orthoplex_coherence,
        codes.rankin_cosine,
        codes.levenshtein_cosine,
    ):
        assert bound(kind(200), kind(100)) == bound(200, 100)
        assert type(bound(kind(200), kind(100))) is float
    assert codes.levenshtein_size(np.float64(0.5), kind(8)) == codes.levenshtein_size(0.5, 8)


def test_a_cosine_is_a_number():
    for cosine in (np.int64(0), np.uint8(0)):
        found = delsarte_size(cosine, 3)  # pyright: ignore[reportArgumentType]
        assert found == delsarte_size(0, 3)
        assert type(found.value.numerator) is int
    for bad in ("a", None, [0.5], True):
        with pytest.raises(TypeError, match="cosine is .*, expected a number"):
            codes.levenshtein_size(bad, 8)
    for bad in (-1.5, 1.0, math.nan):
        with pytest.raises(ValueError, match="cosine is .*, expected -1 <= cosine < 1"):
            codes.levenshtein_size(bad, 8)


def test_the_least_bound_is_named_and_valid_bounds_only_are_taken():
    for case in [(5, 8), (4, 2), (40, 2), (1000, 8), (50257, 768), (10**6, 3), (6, 4)]:
        least = bounds.upper_bound(*case)
        function = getattr(bounds, least.name)
        arguments = {"planar_bound": case[:1], "radon_bound": case[1:]}.get(least.name, case)
        assert least.value == bounds.rho_upper_bound(*case)
        assert function(*arguments) <= least.value
        assert least.value == pytest.approx(function(*arguments), rel=1e-14)
        assert least.proves
    assert bounds.upper_bound(1000, 8).name == "lifted_bound"
    assert bounds.upper_bound(50257, 768).name == "closed_form_bound"


@pytest.mark.parametrize(("side", "dim"), [(2, 8), (3, 5), (4, 3), (30, 1)])
def test_no_grid_or_shell_exceeds_the_lifted_bound(side, dim, generator):
    grid = torch.cartesian_prod(*[torch.arange(side).double()] * dim).reshape(-1, dim)
    assert cloud.ratio(grid).value <= bounds.lifted_bound(len(grid), dim)
    shell = torch.randn(50, dim + 1, generator=generator, dtype=torch.float64)
    assert cloud.ratio(shell).value <= bounds.lifted_bound(50, dim + 1)


def test_a_cosine_bound_is_none_on_rho():
    # of 16 unit vectors of R^5 two have a cosine of 1/5 or more, so their separation is at most
    # sqrt(2 (1 - 1/5)); dividing by the diameter 2 of the sphere gives no bound on rho, as the
    # diameter of the cloud may be less
    naive = math.sqrt((1 - codes.levenshtein_cosine(16, 5)) / 2)
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 5).double()
    clebsch = signs[signs.prod(dim=1) > 0]  # 16 points, squared distances 8 and 16
    assert cloud.ratio(clebsch).value == pytest.approx(math.sqrt(0.5))
    assert cloud.ratio(clebsch).value > naive
    assert cloud.ratio(clebsch).value <= bounds.rho_upper_bound(16, 5) * (1 + 1e-12)
