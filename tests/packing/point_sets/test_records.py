"""The shipped table: certificates that hold, published values reached, honest words."""

import json
from fractions import Fraction

import pytest
from mpmath import cos, mp, mpf, pi, sqrt

from rowsep.packing.bounds.certificate import check_certificate
from rowsep.packing.point_sets import records
from rowsep.packing.point_sets.configuration import DENOMINATOR
from rowsep.packing.point_sets.records import Published, best_configuration

mp.dps = 40
CLOSED = {  # (n, d): what is known in closed form
    (4, 2): mpf(2),
    (5, 2): (3 + sqrt(5)) / 2,
    (6, 2): (5 + sqrt(5)) / 2,
    (7, 2): mpf(4),
    (8, 2): 1 / (2 - 2 * cos(pi / 7)),
    (12, 2): 5 + 2 * sqrt(3),
    (19, 2): 8 + 4 * sqrt(3),
    (5, 3): mpf(12) / 7,
    (6, 3): mpf(2),
    (8, 3): 1 + sqrt(2),
    (9, 3): (9 + sqrt(129)) / 8,
    (12, 3): (5 + sqrt(5)) / 2,
}
TABLE = {(one.n, one.dim): one for one in records.records()}
STORED = sorted(key for key, one in TABLE.items() if one.found)


@pytest.mark.parametrize("key", STORED, ids=str)
def test_certificate(key):
    found = best_configuration(*key)
    proved = check_certificate(found.certificate())
    assert (proved.num_points, proved.dim) == key
    assert proved.attained <= Fraction(TABLE[key].found)
    assert float(proved.attained) >= TABLE[key].bound * (1 - 1e-12)
    assert max(abs(c) for point in found.coordinates for c in point) < 2 * DENOMINATOR


@pytest.mark.parametrize("key", CLOSED, ids=str)
def test_closed_forms(key):
    found = best_configuration(*key).ratio_squared
    assert abs(mpf(found.numerator) / found.denominator - CLOSED[key]) < mpf(10) ** -26


def test_every_published_value_is_reached():
    for one in records._published():
        found = best_configuration(one.num_points, one.dim).ratio_squared
        assert one.reached_by(found), (one, float(found))
    assert {(n, 2) for n in range(2, 31)} <= set(STORED)
    assert {(n, 3) for n in range(4, 21)} <= set(STORED)


def test_better_than_alphaevolve():
    """Novikov et al. 2025, problem B.8."""
    assert best_configuration(16, 2).ratio_squared < Fraction("12.88926611203")
    assert best_configuration(14, 3).ratio_squared < Fraction("4.16584976723")


@pytest.mark.parametrize("d", range(2, 13))
def test_two_more_points_than_dimensions(d):
    """Schuette 1963, beyond the 12 digits asked."""
    exact = 1 + (Fraction(2, d) if d % 2 == 0 else Fraction(2 * (d + 2), d * (d + 2) - 1))
    assert abs(best_configuration(d + 2, d).ratio_squared - exact) < Fraction(1, 10**26)
    assert TABLE[d + 2, d].status == "proved"


@pytest.mark.parametrize("key", [(10, 4), (16, 5)], ids=str)
def test_two_distance_sets_are_optimal_by_the_bound(key):
    assert TABLE[key].status == "proved"
    assert TABLE[key].credit == "meets the upper bound"


def test_status_is_honest():
    for key, one in TABLE.items():
        if one.status == "proved":
            published = [p for p in records._published() if (p.num_points, p.dim) == key]
            by_others = any(p.status == "proved" for p in published)
            assert by_others or float(one.ratio_squared) <= one.bound * (1 + 1e-12)
        assert 0 <= one.agreeing <= one.starts and one.starts >= 64
        if one.published is None and one.status != "proved":
            assert one.status == "found here"


def test_more_points_never_have_less():
    for n, d in STORED:
        if (n + 1, d) in TABLE:
            less, more = (Fraction(TABLE[k, d].found) for k in (n, n + 1))
            assert more >= less - Fraction(1, 10**26)


def test_one_dimension_in_order():
    ns = [one.n for one in records.records(2)]
    assert ns == sorted(ns) and {one.dim for one in records.records(2)} == {2}


@pytest.mark.parametrize(
    ("value", "reached", "beaten"),
    [
        ("12.8892", True, False),
        ("12.88999", True, False),
        ("12.8900001", False, False),
        ("12.8889", True, True),
    ],
)
def test_truncated_digits(value, reached, beaten):
    one = Published(16, 2, "12.889", True, None, "best known", "", "")
    assert one.reached_by(Fraction(value)) is reached
    assert one.beaten_by(Fraction(value)) is beaten


def test_what_is_not_stored():
    with pytest.raises(KeyError, match="no configuration of 99 points"):
        best_configuration(99, 2)
    with pytest.raises(ValueError):
        best_configuration(1, 2)
    assert records.records(40) == []


def test_data_has_no_other_keys():
    for one in records._stored():
        assert set(json.loads(json.dumps(one))) == {
            "num_points",
            "dim",
            "ratio_squared",
            "denominator",
            "coordinates",
            "optimality",
            "starts",
            "agreeing",
            "seeds",
            "versions",
            "date",
        }
