"""Trace functions on finite fields, the one ingredient of the algebraic codes.

Elements of GF(q) are numbered 0, g^0, g^1, ..., g^(q-2) for a primitive element g: number 0 is
zero, number c > 0 is `g^(c-1)`. Products are then sums of numbers, and every family needs nothing
of the field but `Tr(g^k)`, the trace to the prime field GF(p).
"""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ..extras import extra

with extra("codes"):
    import galois


@cache
def prime_powers(limit: int) -> dict[int, int]:
    """Return the prime powers up to `limit`, ascending, each with its prime."""
    powers = {}
    for p in galois.primes(limit) if limit >= 2 else []:
        q = p
        while q <= limit:
            powers[q] = p
            q *= p
    return dict(sorted(powers.items()))


def characteristic(q: int) -> int:
    """Return p for `q = p^k`.

    Raises:
        ValueError: `q` is not a prime power.
    """
    primes, _ = galois.factors(q) if q >= 2 else ([], [])
    if len(primes) != 1:
        raise ValueError(f"the order of a field is a prime power, got {q}")
    return primes[0]


@cache
def traces(q: int) -> Tensor:
    """Return `Tr(g^k)` for k = 0 .. q-2, int64 between 0 and p-1, g a primitive element of GF(q).

    For k below the degree of the field the `g^k` are a basis, so the traces of `y, g y, g^2 y, ..`
    determine y.
    """
    p = characteristic(q)
    if q == p:
        g = galois.primitive_root(p)
        return torch.tensor([pow(g, k, p) for k in range(p - 1)])
    galois.GF(p, compile="python-calculate")  # spares seconds of compilation for a few products
    polynomial = galois.conway_poly(p, round(math.log(q, p)))
    field = galois.GF(q, irreducible_poly=polynomial, repr="int", compile="python-calculate")
    feedback = polynomial.coefficients(order="asc")[:-1].tolist()
    # Conway polynomials are primitive: the root of this one is a primitive element
    first = field.primitive_element ** np.arange(len(feedback))
    found = first.field_trace().tolist()
    while len(found) < q - 1:
        # the traces obey the linear recurrence of that polynomial
        last = found[-len(feedback) :]
        found.append(-sum(c * t for c, t in zip(feedback, last, strict=True)) % p)
    return torch.tensor(found)


def trace_terms(
    q: int, coefficients: Tensor, points: Tensor, exponent: int = 1, shift: int = 0
) -> Tensor:
    """Return `Tr(g^shift c x^exponent)` for every coefficient c and point x.

    Args:
        q: order of the field.
        coefficients: numbers of elements, shape (n,), int64.
        points: numbers of elements, shape (m,), int64, on the same device.
        exponent: at least 0; `0^0` is 1.
        shift: power of the primitive element to multiply by.

    Returns:
        Shape (n, m), int64 between 0 and p-1.
    """
    table = torch.cat([traces(q), torch.zeros(1, dtype=torch.int64)]).to(coefficients.device)
    logs = (exponent * (points - 1) + shift) % (q - 1)
    where = (coefficients[:, None] - 1 + logs) % (q - 1)
    where.masked_fill_((coefficients == 0)[:, None], q - 1)
    if exponent > 0:
        where.masked_fill_(points == 0, q - 1)
    return table[where]


def digits(numbers: Tensor, base: int, count: int) -> list[Tensor]:
    """Return the `count` lowest digits of `numbers`, the lowest first."""
    found = []
    for _ in range(count):
        found.append(numbers % base)
        numbers = numbers // base
    return found
