"""Clouds to measure on: random, like a real momentum, and optimised until near ties are many."""

import math
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from rowsep.packing.pairs import extremes, forces
from rowsep.packing.solvers.projected_gradient import hinge

CACHE = Path(".cache") / "benchmarks"


def natural(V: int, d: int) -> Tensor:
    """Random directions, norms one give or take 5 %."""
    g = torch.Generator().manual_seed(0)
    size = 1 + 0.05 * torch.randn(V, 1, generator=g)
    return normalize(torch.randn(V, d, generator=g)) * size


def real_like(V: int, d: int) -> Tensor:
    """Falling spectrum, row norms over four decades, 5 % of the rows with a near twin."""
    g = torch.Generator().manual_seed(1)
    S = torch.randn(V, d, generator=g) / torch.arange(1, d + 1).sqrt()
    twins = torch.randperm(V, generator=g)[: V // 20 * 2].view(2, -1)
    S[twins[0]] = S[twins[1]] + 0.05 * torch.randn(twins.shape[1], d, generator=g) / d**0.5
    return S * torch.exp(1.2 * torch.randn(V, 1, generator=g))


def optimised(V: int, d: int, steps: int = 40) -> Tensor:
    """Unit rows pushed apart by hinge forces until about a hundredth of the pairs nearly tie."""
    path = CACHE / f"optimised_{V}_{d}_{steps}.pt"
    if path.exists():
        return torch.load(path)
    S = normalize(natural(V, d))
    reach = 1.02 * extremes(S).delta
    for _ in range(steps):
        pushed = forces(S, hinge(reach, math.inf), near=reach**2, far=math.inf)
        lack = (reach - pushed.nearest.sqrt()).clamp_(min=0)
        tangent = pushed.force - (pushed.force * S).sum(1, keepdim=True) * S
        S = normalize(S + 0.5 * lack[:, None] * normalize(tangent))
        if pushed.pairs < 0.002 * V * V:
            reach *= 1.01
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(S, path)
    return S


def reach_of(S: Tensor, share: float) -> float:
    """The distance below which about this share of the pairs lie, from a sample of the rows."""
    g = torch.Generator().manual_seed(2)
    some = torch.randperm(len(S), generator=g)[:256]
    r = torch.cdist(S[some], S).flatten()
    return float(r[r > 1e-3].kthvalue(max(1, int(share * r.numel()))).values)


def structured() -> dict[str, Tensor]:
    """Clouds of many exact ties or tight clusters, by name."""
    n, p = 2048, 61
    g = torch.Generator().manual_seed(3)
    centres = torch.randn(4, n // 4, generator=g)[torch.arange(n) % 4]
    return {
        f"simplex of {n}": torch.eye(n),
        f"orthoplex of {n}": torch.cat([torch.eye(n // 2), -torch.eye(n // 2)]),
        f"chirps of {p}": chirps(p),
        f"four clusters of {n // 4}": centres + 1e-6 * torch.randn(n, n // 4, generator=g),
    }


def chirps(p: int) -> Tensor:
    """`exp(2 pi i (a t^2 + b t) / p) / sqrt(p)` for all a, b: p^2 rows of 2 p entries, p prime.

    Rows of equal a are orthogonal, others have inner product `1/sqrt(p)` in magnitude.
    """
    t = torch.arange(p)
    a, b = torch.cartesian_prod(t, t).T[:, :, None]
    angle = 2 * math.pi / p * ((a * t * t + b * t) % p).double()
    return (torch.cat([angle.cos(), angle.sin()], 1) / p**0.5).float()
