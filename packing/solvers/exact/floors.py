"""What the exact solver is asked: how many points, in how many dimensions, and above which floor.

A floor on the agreement with a centred momentum `A` is a concave constraint `g(x) >= 0` on clouds
of diameter at most 1:

    decrease   g = <A,x> / (sqrt(d/(2(d+1))) sum_i ||a_i||) - floor       (times D <= 1)
    cosine     g = <A,x> / ||A|| - floor ||x - mean||
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from packing.cloud import jung_radius
from packing.solvers.exact.interior_point import Floor
from packing.solvers.exact.starts import Cloud

EASE = 0.98
"""A start keeps this part of what the best known cloud has to spare above the floor."""


class Decrease:
    """Floor on `<A,S> / (D sqrt(d/(2(d+1))) sum_i ||a_i||)`: linear on clouds of diameter 1."""

    def __init__(self, A: Tensor, floor: float):
        """Take the centred momentum, shape (n, d), float64, not zero."""
        n, d = A.shape
        self.normal = A.T / (jung_radius(d) * A.norm(dim=1).sum())
        self.floor = floor

    def value(self, x: Tensor) -> Tensor:
        """Return `g`, shape (B,), of x, shape (B, d, n)."""
        return (self.normal * x).sum(dim=(1, 2)) - self.floor

    def gradient(self, x: Tensor) -> Tensor:
        """Return the normal, once for each cloud."""
        return self.normal.expand_as(x)

    def hessian(self, x: Tensor) -> Tensor:
        """Return zeros."""
        size = x.shape[1] * x.shape[2]
        return x.new_zeros(len(x), size, size)

    def exact(self, x: NDArray[np.object_]) -> tuple[Any, NDArray[np.object_]]:
        """Return `g` and its gradient for one cloud, shape (n, d), in the arithmetic of `x`."""
        normal = self.normal.T.numpy()
        return (normal * x).sum() - self.floor, normal + 0 * x


class Cosine:
    """Floor on `<A,S> / (||A|| ||S||)`: a second-order cone."""

    def __init__(self, A: Tensor, floor: float):
        """Take the centred momentum, shape (n, d), float64, not zero."""
        self.normal = A.T / A.norm()
        self.floor = floor

    def value(self, x: Tensor) -> Tensor:
        """Return `g`, shape (B,), of x, shape (B, d, n)."""
        return (self.normal * x).sum(dim=(1, 2)) - self.floor * _centred(x).norm(dim=(1, 2))

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
        normal = self.normal.T.numpy()
        centred = x - x.sum(axis=0) / len(x)
        size = (centred**2).sum() ** 0.5
        return (normal * x).sum() - self.floor * size, normal - self.floor * centred / size


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(dim=2, keepdim=True)


@dataclass(frozen=True)
class Problem:
    """Largest separation of `num_points` points of R^dim of diameter 1, above a floor if any."""

    num_points: int
    dim: int
    floor: Floor | None = None
    anchor: NDArray[np.float64] | None = None
    """A cloud of diameter 1 strictly above the floor, shape (n, d), that starts are drawn to."""

    def inside(self, cloud: Cloud) -> Cloud:
        """Return a cloud strictly above the floor: `cloud`, or on the way from it to the anchor."""
        if self.floor is None or self.anchor is None:
            return cloud
        start, end = _unit_diameter(cloud), self.anchor
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (
                (low, middle) if self._above(start + middle * (end - start)) else (middle, high)
            )
        part = min(1.0, high + 0.1 * (1.0 - high))
        return start + part * (end - start)

    def _above(self, cloud: Cloud) -> bool:
        if self.floor is None:
            return True
        scaled = torch.from_numpy(0.9 * _unit_diameter(cloud)).T[None]
        return bool(self.floor.value(scaled) > 0.0)


def _unit_diameter(cloud: Cloud) -> Cloud:
    differences = cloud[:, None] - cloud[None]
    return cloud / np.sqrt((differences**2).sum(axis=2).max())
