"""The record table: least known squared ratios of n points of R^d, with their sources.

    published.json      values that others published; decimals are truncated where it says so
    found_d<dim>.json   configurations found by experiments/minimal_diameter, as certificates that
                        bounds.certificate checks, to thirty digits

The ratio is that of the largest to the smallest distance, `1/rho`, squared.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from ... import checks
from ...bounds import rho_upper_bound
from ..configuration import Configuration, from_certificate

EQUAL = Fraction(1, 10**20)
"""Values this close count as equal; those found are certified to 27 decimals."""
OWN_SOURCE = "experiments/minimal_diameter"


@dataclass(frozen=True)
class Published:
    """A value that others published."""

    num_points: int
    dim: int
    ratio_squared: str
    """Decimal number."""
    truncated: bool
    """Whether digits after the last one are cut off."""
    closed_form: str | None
    status: str
    """"proved" or "best known"."""
    credit: str
    source: str

    def reached_by(self, value: Fraction) -> bool:
        """Tell whether `value` has the published digits or is less."""
        digits = len(self.ratio_squared.partition(".")[2])
        room = Fraction(1, 10**digits) if self.truncated else EQUAL
        return value < Fraction(self.ratio_squared) + room

    def beaten_by(self, value: Fraction) -> bool:
        """Tell whether `value` is less than every number with the published digits."""
        return value < Fraction(self.ratio_squared) - EQUAL


@dataclass(frozen=True)
class Record:
    """The least squared ratio known here of n points of R^d."""

    n: int
    dim: int
    ratio_squared: str
    """Decimal number; if `found`, certified from above and rounded up in the last digit."""
    status: str
    """"proved": no points have less. "best known": published, and found here too if `found`.
    "found here": nothing published is known here, or what is known is more."""
    credit: str
    source: str
    published: str | None
    """The least value published, as published."""
    found: str | None
    """The value found here, certified."""
    starts: int
    """Random starts of the search, none of which knew a stored configuration."""
    agreeing: int
    """Starts that ended at the value found."""
    bound: float
    """No n points of R^dim have a smaller squared ratio (`rowsep.packing.bounds`, float64)."""


def records(dim: int | None = None) -> list[Record]:
    """Return the table, by dimension and number of points.

    Args:
        dim: one dimension only, or None for all.

    Raises:
        TypeError, ValueError: `dim` is no integer or below 1.
    """
    if dim is not None:
        checks.check_count(dim, "dim", 1)
    keys = {(one.dim, one.num_points) for one in _published()} | set(_found())
    return [_record(*key) for key in sorted(keys) if dim in (None, key[0])]


@cache
def found_ratios() -> dict[tuple[int, int], Fraction]:
    """Return the certified squared ratio of every stored configuration, by (d, n)."""
    return {key: Fraction(one["ratio_squared"]) for key, one in _found().items()}


def best_configuration(num_points: int, dim: int) -> Configuration:
    """Return the stored configuration of n points of R^d, its certificate checked.

    Raises:
        TypeError, ValueError: no integers, or too small.
        KeyError: none is stored; `rowsep.packing.minimal_diameter` finds one.
        CertificateError: the data file has been damaged.
    """
    checks.check_count(num_points, "num_points", 2)
    checks.check_count(dim, "dim", 1)
    if (dim, num_points) not in _found():
        raise KeyError(f"no configuration of {num_points} points in R^{dim} is stored")
    return from_certificate(_found()[dim, num_points])


def _record(dim: int, num_points: int) -> Record:
    certificate = _found().get((dim, num_points))
    values = [one for one in _published() if (one.dim, one.num_points) == (dim, num_points)]
    known = min(values, key=lambda one: Fraction(one.ratio_squared), default=None)
    ratio_squared, status, credit, source = _best(certificate, known)
    return Record(
        n=num_points,
        dim=dim,
        ratio_squared=ratio_squared,
        status=status,
        credit=credit,
        source=source,
        published=known.ratio_squared if known else None,
        found=certificate["ratio_squared"] if certificate else None,
        starts=certificate["starts"] if certificate else 0,
        agreeing=certificate["agreeing"] if certificate else 0,
        bound=rho_upper_bound(num_points, dim) ** -2,
    )


def _best(certificate: dict[str, Any] | None, known: Published | None) -> tuple[str, str, str, str]:
    """Value, status, credit and source of the better one of what is found and published."""
    if certificate is None:
        assert known is not None
        return known.ratio_squared, known.status, known.credit, known.source
    value = certificate["ratio_squared"]
    if known is not None and not known.reached_by(Fraction(value)):
        return known.ratio_squared, known.status, known.credit, known.source
    if known is not None and known.beaten_by(Fraction(value)):
        known = None
    if (known is None or known.status != "proved") and from_certificate(certificate).optimal:
        return value, "proved", "meets the upper bound", "docs/explanation/mathematics.md"
    if known is not None:
        return value, known.status, known.credit, known.source
    return value, "found here", "rowsep", OWN_SOURCE


@cache
def _published() -> tuple[Published, ...]:
    text = (files(__name__) / "published.json").read_text()
    return tuple(Published(**entry) for entry in json.loads(text))


@cache
def _found() -> dict[tuple[int, int], dict[str, Any]]:
    return {(one["dim"], one["num_points"]): one for one in _stored()}


def _stored() -> Iterator[dict[str, Any]]:
    for file in sorted(files(__name__).iterdir(), key=lambda one: one.name):
        if file.name.startswith("found_d") and file.name.endswith(".json"):
            yield from json.loads(file.read_text())
