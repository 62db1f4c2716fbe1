"""Points of least known diameter: rational coordinates, their exact ratio, and what proves it."""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..bounds import rho_upper_bound
from ..bounds.certificate import check_certificate
from ..exact.optimality import DENOMINATOR, Optimality, Pair

DECIMALS = 27
"""Of the squared ratio that a certificate claims: three fewer than of the coordinates."""
MEETS = 1e-12
"""A squared ratio within this part of the bound's meets it."""


@dataclass(frozen=True, repr=False)
class Configuration:
    """n points of R^d with their squared ratio `max_{i<j} q_ij / min_{i<j} q_ij`, exactly."""

    coordinates: tuple[tuple[int, ...], ...]
    """Points times 10^30; their diameter is 1 up to rounding."""
    optimality: Optimality | None = None
    """In what sense they are a local optimum; None if that was not examined."""
    starts: int = 0
    """Starts of the search that found them."""
    agreeing: int = 0
    """Starts that ended at their squared ratio, to one part in 10^9."""
    stop: str = ""
    """Why the search stopped, in words."""

    @property
    def num_points(self) -> int:
        """The number n of points."""
        return len(self.coordinates)

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.coordinates[0])

    @cached_property
    def ratio_squared(self) -> Fraction:
        """`1/rho^2` of the rational points, exactly."""
        squares = [
            sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
            for p, q in itertools.combinations(self.coordinates, 2)
        ]
        return Fraction(max(squares), min(squares))

    @property
    def rho(self) -> float:
        """Separation over diameter."""
        return 1.0 / math.sqrt(self.ratio_squared)

    @property
    def bound(self) -> float:
        """No n points of R^d have a larger `rho`."""
        return rho_upper_bound(self.num_points, self.dim)

    @property
    def optimal(self) -> bool:
        """Whether `rho` meets the bound to 12 digits, which proves it the largest there is."""
        return float(self.ratio_squared) <= self.bound**-2 * (1.0 + MEETS)

    @property
    def points(self) -> Tensor:
        """The points, shape (n, d), float64, rounded."""
        return torch.tensor(
            [[c / DENOMINATOR for c in point] for point in self.coordinates], dtype=torch.float64
        )

    @property
    def claim(self) -> str:
        """The squared ratio as a decimal number, rounded up."""
        with localcontext() as context:
            context.prec = 60
            context.rounding = ROUND_CEILING
            exact = self.ratio_squared
            value = Decimal(exact.numerator) / Decimal(exact.denominator)
            return str(value.quantize(Decimal(1).scaleb(-DECIMALS)))

    def __repr__(self) -> str:
        """Return size and figures; the coordinates would fill pages."""
        if len(set(self.coordinates)) < max(2, len(self.coordinates)):
            return f"<{len(self.coordinates)} points, fewer than two or not all different>"
        return (
            f"<{self.num_points} points of R^{self.dim}, rho {self.rho:.6f}, "
            f"squared ratio {self.claim}, bound on rho {self.bound:.6f}>"
        )

    def certificate(self) -> dict[str, Any]:
        """Return the certificate that `rowsep.packing.bounds.certificate` checks, with the
        conditions met."""
        return {
            "num_points": self.num_points,
            "dim": self.dim,
            "ratio_squared": self.claim,
            "denominator": DENOMINATOR,
            "coordinates": [list(point) for point in self.coordinates],
            "optimality": None if self.optimality is None else dataclasses.asdict(self.optimality),
            "starts": self.starts,
            "agreeing": self.agreeing,
        }


def from_certificate(certificate: Mapping[str, Any]) -> Configuration:
    """Return the configuration that a certificate is about, after checking it.

    Raises:
        CertificateError: it does not prove what it claims.
    """
    check_certificate(certificate)
    scale = Fraction(DENOMINATOR, certificate["denominator"])
    told = certificate.get("optimality")
    if told is not None:
        told = Optimality(
            **told
            | {
                "near": tuple(Pair(*pair) for pair in told["near"]),
                "far": tuple(Pair(*pair) for pair in told["far"]),
                "rattlers": tuple(told["rattlers"]),
            }
        )
    return Configuration(
        tuple(tuple(round(c * scale) for c in point) for point in certificate["coordinates"]),
        told,
        certificate.get("starts", 0),
        certificate.get("agreeing", 0),
    )
