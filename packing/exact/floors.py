"""What the exact solver is asked: how many points, in how many dimensions, and above which floor.

A floor on the agreement with a centred momentum `A` is a concave constraint `g(x) >= 0` on clouds
of diameter at most 1:

    decrease   g = <A,x> / (sqrt(d/(2(d+1))) sum_i ||a_i||) - floor
    cosine     g = <A,x> / ||A|| - floor ||x - mean||
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..cloud import jung_radius
from .interior_point.clouds import Floor, solve_batch
from .kkt import HELD, NEAR, Guess, active
from .problem import Ends
from .starts import KINDS, Cloud

MARGIN = 0.05
"""A start begins at diameter 1 - MARGIN."""
EASE = 0.1
"""Part of the way left to the anchor that a start goes beyond the floor."""


class Decrease:
    """Floor on `<A,S> / (D sqrt(d/(2(d+1))) sum_i ||a_i||)`, linear once D is 1."""

    def __init__(self, A: Tensor, floor: float):
        """Take the centred momentum, shape (n, d), float64, not zero."""
        n, d = A.shape
        self.normal = A.T / (jung_radius(d) * A.norm(dim=1).sum())
        self.floor = floor

    def value(self, x: Tensor) -> Tensor:
        """Return `g`, shape (B,), of x, shape (B, d, n)."""
        return (self.normal * x).sum(dim=(1, 2)) - self.floor

    def turned(self, x: Tensor) -> Tensor:
        """Return x turned so that `g` is largest."""
        return _turned(x, self.normal)

    def gradient(self, x: Tensor) -> Tensor:
        """Return the normal, once for each cloud."""
        return self.normal.expand_as(x)

    def hessian(self, x: Tensor) -> Tensor:
        """Return zeros."""
        size = x.shape[1] * x.shape[2]
        return x.new_zeros(len(x), size, size)

    def exact(self, x: NDArray[np.object_]) -> tuple[Any, NDArray[np.object_]]:
        """Return `g` and its gradient for one cloud, shape (n, d), in the arithmetic of `x`."""
        normal = _centred_exactly(self.normal.T.numpy() + 0 * x)
        return (normal * x).sum() - self.floor, normal


class Cosine:
    """Floor on `<A,S> / (||A|| ||S||)`: a second-order cone."""

    def __init__(self, A: Tensor, floor: float):
        """Take the centred momentum, shape (n, d), float64, not zero."""
        self.normal = A.T / A.norm()
        self.floor = floor

    def value(self, x: Tensor) -> Tensor:
        """Return `g`, shape (B,), of x, shape (B, d, n)."""
        return (self.normal * x).sum(dim=(1, 2)) - self.floor * _centred(x).norm(dim=(1, 2))

    def turned(self, x: Tensor) -> Tensor:
        """Return x turned so that `g` is largest."""
        return _turned(x, self.normal)

    def gradient(self, x: Tensor) -> Tensor:
        """Return `A/||A|| - floor (x - mean)/||x - mean||`."""
        centred = _centred(x)
        return self.normal - self.floor * centred / centred.norm(dim=(1, 2), keepdim=True)

    def hessian(self, x: Tensor) -> Tensor:
        """Return `-floor (P - c c^T)/||x - mean||` with `c` the unit vector of `x - mean`."""
        B, d, n = x.shape
        centred = _centred(x).reshape(B, d * n)
        size = centred.norm(dim=1)[:, None, None]
        unit = centred[:, :, None] / size
        projection = torch.eye(n, dtype=x.dtype) - 1.0 / n
        whole = torch.block_diag(*[projection] * d)
        return -self.floor * (whole - unit @ unit.transpose(1, 2)) / size

    def exact(self, x: NDArray[np.object_]) -> tuple[Any, NDArray[np.object_]]:
        """Return `g` and its gradient for one cloud, shape (n, d), in the arithmetic of `x`."""
        normal = _centred_exactly(self.normal.T.numpy() + 0 * x)
        centred = _centred_exactly(x)
        size = (centred**2).sum() ** 0.5
        return (normal * x).sum() - self.floor * size, normal - self.floor * centred / size


def _turned(x: Tensor, normal: Tensor) -> Tensor:
    """The orthogonal image of x, shape (B, d, n), of largest `<normal, x>` (Procrustes)."""
    left, _, right = torch.linalg.svd(x @ normal.T)
    return (left @ right).transpose(1, 2) @ x


def _centred_exactly(x: NDArray[np.object_]) -> NDArray[np.object_]:
    """To all digits, as a force that does not sum to zero has no equilibrium."""
    return x - x.sum(axis=0) / len(x)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(dim=2, keepdim=True)


@dataclass(frozen=True)
class Problem:
    """Largest separation of `num_points` points of R^dim of diameter 1, above a floor if any."""

    num_points: int
    dim: int
    floor: Floor | None = None
    anchor: Cloud | None = None
    """With a floor: a cloud of diameter 1, shape (n, d), that starts are drawn to."""

    name: ClassVar[str] = "cloud"
    kinds: ClassVar[tuple[str, ...]] = KINDS

    def ends(self, clouds: Sequence[Cloud], mu: Sequence[float]) -> Ends:
        """Return the local optima of diameter 1 that clouds, drawn to the anchor, run to."""
        margin = self.margin
        starts = torch.from_numpy(np.stack([self.inside(cloud, margin) for cloud in clouds]))
        first = torch.tensor(mu, dtype=torch.float64)
        optima = solve_batch(starts, first, margin, self.floor)
        return Ends(optima.points, 1.0 / optima.separation, optima.converged)

    def guess(self, points: Cloud) -> Guess:
        """Return the optimum near a cloud that meets the floor, with its multipliers."""
        start = torch.from_numpy(self.inside(points, NEAR, NEAR))[None]
        mu = torch.tensor([NEAR], dtype=torch.float64)
        found = solve_batch(start, mu, NEAR, self.floor)
        v = float(found.floor[0])
        return Guess(
            x=found.points[0].numpy(),
            s=float(found.separation[0]),
            near=active(found.near[0].numpy()),
            far=active(found.far[0].numpy()),
            floor=self.floor,
            v=v if v > HELD else None,
        )

    @property
    def margin(self) -> float:
        """How far inside the unit diameter starts begin: less where the floor leaves little."""
        if self.floor is None or self.anchor is None:
            return MARGIN
        low, high = 0.0, MARGIN
        if self.above(self.anchor, high):
            return high
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.above(self.anchor, middle) else (low, middle)
        return 0.5 * low

    def inside(self, cloud: Cloud, margin: float, ease: float = EASE) -> Cloud:
        """Return `cloud` or, if it is not above the floor, one on the way to the anchor.

        Args:
            cloud: shape (n, d).
            margin: diameter 1 - `margin` is where it has to be above the floor.
            ease: part of the way left to the anchor to go beyond the floor.
        """
        start = unit_diameter(cloud)
        if self.floor is not None:
            start = self.floor.turned(torch.from_numpy(start.T.copy())[None])[0].numpy().T
        if self.anchor is None or self.above(start, margin):
            return start
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if self.above(start + middle * (self.anchor - start), margin):
                high = middle
            else:
                low = middle
        return start + (high + ease * (1.0 - high)) * (self.anchor - start)

    def above(self, cloud: Cloud, margin: float = 0.0) -> bool:
        """Tell whether a cloud is above the floor when it is scaled to diameter 1 - `margin`."""
        if self.floor is None:
            return True
        scaled = torch.from_numpy((1.0 - margin) * unit_diameter(cloud).T)[None]
        return bool(self.floor.value(scaled) > 0.0)


def unit_diameter(cloud: Cloud) -> Cloud:
    """Return a cloud scaled to diameter 1."""
    differences = cloud[:, None] - cloud[None]
    return cloud / np.sqrt((differences**2).sum(axis=2).max())
