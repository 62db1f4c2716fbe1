"""The checker accepts what is true, and nothing else."""

import copy
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsep.packing.bounds.certificate import CertificateError, check_certificate

SQUARE = {
    "num_points": 4,
    "dim": 2,
    "denominator": 10,
    "coordinates": [[0, 0], [5, 0], [0, 5], [5, 5]],
    "ratio_squared": "2",
}
HUGE = "1" + "0" * 99


def changed(**keys):
    return copy.deepcopy(SQUARE) | keys


def test_the_unit_square_has_squared_ratio_two():
    proved = check_certificate(SQUARE)
    assert proved == (4, 2, Fraction(2), Fraction(2))


def test_survives_json():
    check_certificate(json.loads(json.dumps(SQUARE)))


def test_a_claim_that_is_too_low_by_one_in_10_to_the_40():
    check_certificate(changed(ratio_squared="2." + "0" * 40))
    with pytest.raises(CertificateError, match="exceeds"):
        check_certificate(changed(ratio_squared="1." + "9" * 40))


@pytest.mark.parametrize("name", list(SQUARE))
def test_a_missing_key(name):
    certificate = changed()
    del certificate[name]
    with pytest.raises(CertificateError, match=f"{name} is missing"):
        check_certificate(certificate)


@pytest.mark.parametrize(
    "keys",
    [
        {"num_points": 5},
        {"num_points": True},
        {"num_points": 1, "coordinates": [[0, 0]]},
        {"dim": 3},
        {"dim": 0},
        {"denominator": 0},
        {"denominator": 0.5},
        {"coordinates": [[0, 0], [5, 0], [0, 5], [5, 5.0]]},
        {"coordinates": [[0, 0], [5, 0], [0, 5], [5, True]]},
        {"coordinates": [[0, 0], [5, 0], [0, 5], [5]]},
        {"coordinates": [[0, 0], [5, 0], [0, 5], [0, 0]]},
        {"coordinates": "0000"},
        {"ratio_squared": 2.0},
        {"ratio_squared": "nan"},
        {"ratio_squared": "inf"},
        {"ratio_squared": "1/0"},
        {"ratio_squared": "-3"},
        {"ratio_squared": "1e99999999999"},
        {"ratio_squared": "3_0"},
        {"ratio_squared": " 3"},
        {"ratio_squared": "\u0663"},
        {"coordinates": [[0, 0], [5, 0], [0, 5], [5, 10**400]]},
    ],
    ids=str,
)
def test_a_tampered_certificate(keys):
    with pytest.raises(CertificateError):
        check_certificate(changed(**keys))


def test_a_fraction_is_a_claim():
    assert check_certificate(changed(ratio_squared="4/02")).claimed == 2


def test_a_refusal_shows_what_no_float_holds():
    coordinates = [[0, 0], [5, 0], [0, 5], [10**400, 0]]
    with pytest.raises(CertificateError, match=r"is 4\.0+e\+798, .* by 4\.00e\+798"):
        check_certificate(changed(coordinates=coordinates))


def test_not_an_object():
    with pytest.raises(CertificateError, match="JSON object"):
        check_certificate([SQUARE])


@given(
    st.lists(st.tuples(*[st.integers(-(10**40), 10**40)] * 3), min_size=2, max_size=6, unique=True),
    st.integers(0, 5),
)
def test_one_unit_of_a_coordinate_decides(points, which):
    """The claim is the exact ratio: it holds, and any move that widens the ratio breaks it."""
    certificate = changed(
        num_points=len(points), dim=3, coordinates=[list(p) for p in points], ratio_squared=HUGE
    )
    exact = check_certificate(certificate).attained
    certificate["ratio_squared"] = f"{exact.numerator}/{exact.denominator}"
    assert check_certificate(certificate).attained == exact
    certificate["coordinates"][which % len(points)][0] += 1
    try:
        moved = check_certificate(certificate | {"ratio_squared": HUGE}).attained
    except CertificateError:  # two points became equal
        return
    if moved > exact:
        with pytest.raises(CertificateError):
            check_certificate(certificate)
