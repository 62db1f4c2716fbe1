"""Projected gradient on the active pairs: a squared hinge at a target that moves.

    E(X) = 1/2 sum_{i<j} max(0, near - d_ij)^2 + max(0, d_ij - far)^2,      d_ij = ||x_i - x_j||

    -dE/dx_i = sum_j [max(0, near - d_ij) - max(0, d_ij - far)] (x_i - x_j) / d_ij

A step of unit size would move each row of a pair by the whole violation; no row moves farther
than 1.6 times its worst violation. The projections are those of the geometry. Position-based
dynamics treats constraints alike (Mueller et al., Position based dynamics, JVCIR 18, 2007).
"""

import math
from collections.abc import Callable

from torch import Tensor

from ..pairs import Forces, forces
from .geometry import Geometry
from .separation import shortened_


class ProjectedGradient:
    """Only violated pairs act, so late passes cost little more than the product itself."""

    reach = 1.6
    """A row whose partner is held back by others has to make room for two."""

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        """Hinge forces of the pairs closer than `near` or farther than `far`."""
        del part
        return forces(rows, hinge(near, far), near=near**2, far=far**2)

    def step_(self, geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
        """The force, no row longer than its worst violation."""
        return shortened_(geometry, rows, force, room)


def hinge(near: float, far: float) -> Callable[[Tensor], Tensor]:
    """`(max(0, near - d) - max(0, d - far)) / d` as a function of `q = d^2`."""

    def weight(q: Tensor) -> Tensor:
        d = q.clamp_min(1e-12).sqrt_()
        wrong = (near - d).clamp_min_(0)
        if far < math.inf:
            wrong -= (d - far).clamp_min_(0)
        return wrong.div_(d)

    return weight
