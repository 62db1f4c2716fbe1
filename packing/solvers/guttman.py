"""The Guttman transform: the majorisation step for "all distances equal".

    x_i <- (1/n) sum_{j != i} (x_i - x_j) / ||x_i - x_j||

minimises a quadratic that majorises the stress `sum_{i<j} (||x_i - x_j|| - 1)^2` and touches it at
the present rows, so the stress never rises (Borg and Groenen, Modern Multidimensional Scaling,
2005, ch. 8). It has no step size and no state. Under an alignment floor the geometry's projection
follows each transform. It evens distances out rather than raising the least one: a cheap start,
not a rival to the other solvers for `rho`.
"""

from torch import Tensor

from ..pairs import Forces, forces
from .geometry import Geometry


class Guttman:
    """Every pair acts with a unit vector."""

    reach = 1.0

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        """Unit vectors away from every other row, summed."""
        del near, far, part
        return forces(rows, lambda q: q.clamp_min(1e-30).rsqrt_())

    def step_(self, geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
        """To the transform."""
        del geometry, room
        return force.div_(len(rows)).sub_(rows)
