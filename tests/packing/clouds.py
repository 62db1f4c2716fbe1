"""Clouds for the tests: random ones with traits, and structured ones with exact extremes."""

import torch
from torch import Tensor

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def gaussian(V: int, d: int, generator: torch.Generator, dtype=torch.float32) -> Tensor:
    """Independent normal entries."""
    return torch.randn(V, d, generator=generator, dtype=torch.float64).to(dtype)


def with_twins(V: int, d: int, generator: torch.Generator, gap: float = 1e-6) -> Tensor:
    """Normal entries, far from the origin, with a dozen near twins at relative distance `gap`."""
    S = gaussian(V, d, generator, torch.float64) + 3
    twins = torch.randperm(V, generator=generator)[: 2 * min(12, V // 2)].view(2, -1)
    S[twins[0]] = S[twins[1]] + gap * torch.randn(twins.shape[1], d, generator=generator).double()
    return S.float()


def heavy(V: int, d: int, generator: torch.Generator, decades: float = 4.0) -> Tensor:
    """Row norms spread over `decades` powers of ten."""
    size = 10 ** (decades * torch.rand(V, 1, generator=generator, dtype=torch.float64))
    return (gaussian(V, d, generator, torch.float64) * size).float()


def clusters(V: int, d: int, generator: torch.Generator, spread: float = 1e-6) -> Tensor:
    """Four tight clusters of relative width `spread`."""
    centres = gaussian(4, d, generator, torch.float64)
    which = torch.randint(4, (V,), generator=generator)
    return (centres[which] + spread * gaussian(V, d, generator, torch.float64)).float()


def orthoplex(d: int) -> Tensor:
    """The 2d points `+-e_k`: delta is sqrt 2, D is 2."""
    return torch.cat([torch.eye(d), -torch.eye(d)])


def grid(side: int) -> Tensor:
    """The side^2 points of a square grid: delta is 1, D is (side-1) sqrt 2."""
    line = torch.arange(side, dtype=torch.float32)
    return torch.cartesian_prod(line, line)


def simplex(V: int) -> Tensor:
    """V points at mutual distance sqrt 2, all pairs tied."""
    return torch.eye(V)


def rotation(d: int, generator: torch.Generator) -> Tensor:
    """A random orthogonal matrix, float64."""
    return torch.linalg.qr(gaussian(d, d, generator, torch.float64))[0]


def momenta(generator):
    """Momenta with the traits of real ones, by name."""
    unit = gaussian(1, 16, generator)
    yield "normal", gaussian(90, 16, generator)
    yield "four decades", heavy(90, 16, generator)
    yield "nine decades", heavy(90, 16, generator, decades=9.0)
    yield "clusters", clusters(60, 16, generator, spread=1e-3)
    yield "equal rows", torch.cat([unit.expand(50, 16), gaussian(40, 16, generator)])
    yield "zero rows", torch.cat([torch.zeros(50, 16), gaussian(40, 16, generator)])
    yield "one row", torch.cat([unit, torch.zeros(60, 16)])
    yield "heavy row", torch.cat([1e6 * unit, 1e-3 * gaussian(60, 16, generator)])
    yield "rank 1", gaussian(60, 1, generator) @ unit
    yield "rank 3", gaussian(60, 3, generator) @ gaussian(3, 32, generator)
    yield "orthoplex", orthoplex(8)
    yield "huge", 1e30 * gaussian(60, 16, generator)
    yield "denormal", 1e-42 * gaussian(60, 16, generator)
    yield "offset", gaussian(60, 16, generator) + 1e4
    yield "line", gaussian(30, 1, generator)
    yield "plane", gaussian(40, 2, generator)
    yield "crowd", gaussian(300, 3, generator)
