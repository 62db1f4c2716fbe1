"""An exact certificate: n points of R^d whose squared ratio is at most a given number.

A certificate is a JSON object. Integer coordinates over a common denominator make the points
rational, and with `q_ij = sum_k (c_ik - c_jk)^2`, an integer, it proves

    max_{i<j} q_ij  <=  ratio_squared * min_{i<j} q_ij,       min_{i<j} q_ij > 0,

that is `rho >= 1/sqrt(ratio_squared)`. The check below is in integers throughout and uses nothing
of how the points were found. It proves an upper bound on the least squared ratio, not that no
better points exist.

    num_points      n, at least 2
    dim             d, at least 1
    denominator     positive integer; the points are coordinates / denominator
    coordinates     n lists of d integers
    ratio_squared   decimal number without exponent, or p/q, as a string
"""

import itertools
import re
import reprlib
from collections.abc import Mapping
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

CLAIM = re.compile(r"[0-9]{1,1000}(\.[0-9]{1,1000}|/0*[1-9][0-9]{0,999})?", re.ASCII)


class CertificateError(ValueError):
    """The certificate does not prove what it claims; the message says why."""


class Proved(NamedTuple):
    """What a certificate proves."""

    num_points: int
    dim: int
    claimed: Fraction
    """The squared ratio is at most this."""
    attained: Fraction
    """The squared ratio of the points, exactly."""


def check_certificate(certificate: Mapping[str, Any]) -> Proved:
    """Check a certificate in integer arithmetic.

    Args:
        certificate: the object that the module's docstring describes; other keys are ignored.

    Returns:
        What it proves.

    Raises:
        CertificateError: a key is missing or of the wrong kind, two points are equal, or the
            squared ratio exceeds the claim.
    """
    n, d = _integer(certificate, "num_points", 2), _integer(certificate, "dim", 1)
    _integer(certificate, "denominator", 1)
    points = _get(certificate, "coordinates")
    if not isinstance(points, list) or len(points) != n:
        raise CertificateError(f"coordinates must be a list of {n} points")
    for index, point in enumerate(points):
        if not isinstance(point, list) or len(point) != d or any(type(c) is not int for c in point):
            raise CertificateError(f"point {index} must be a list of {d} integers")
    claim = _get(certificate, "ratio_squared")
    # no exponent, as a few characters could then stand for a number that fills the memory
    if not isinstance(claim, str) or not CLAIM.fullmatch(claim):
        raise CertificateError(
            f"ratio_squared is {reprlib.repr(claim)}, expected a decimal number such as '2.5' in "
            f"a string"
        )
    claimed = Fraction(claim)

    squares = [
        sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
        for p, q in itertools.combinations(points, 2)
    ]
    if min(squares) == 0:
        raise CertificateError("two points are equal")
    attained = Fraction(max(squares), min(squares))
    if attained > claimed:
        raise CertificateError(
            f"the squared ratio of the points is {_short(attained, 17)}, which exceeds the "
            f"{claim} claimed by {_short(attained - claimed, 3)}"
        )
    return Proved(n, d, claimed, attained)


def _get(certificate: Mapping[str, Any], name: str) -> Any:
    if not isinstance(certificate, Mapping):
        raise CertificateError(
            f"a certificate is a JSON object, not a {type(certificate).__name__}"
        )
    if name not in certificate:
        raise CertificateError(f"{name} is missing")
    return certificate[name]


def _short(value: Fraction, digits: int) -> str:
    """The number to some digits, also where a float cannot hold it."""
    with localcontext(prec=digits, Emax=MAX_EMAX):
        return f"{Decimal(value.numerator) / value.denominator:g}"


def _integer(certificate: Mapping[str, Any], name: str, least: int) -> int:
    value = _get(certificate, name)
    if type(value) is not int or value < least:
        raise CertificateError(f"{name} is {value!r}, expected an integer of at least {least}")
    return value
