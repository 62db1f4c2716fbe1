"""Where the rows of an iterate may be, and how the alignment floor is restored there.

The diameter is not a constraint on an iterate: rows live at unit scale and the finished cloud is
scaled to the diameter asked, which changes neither `rho` nor alignment. By Jung's theorem nothing
is lost by asking that rows lie in the unit ball.

Floors are restored by moving along `B_i = r_i a_i / ||a_i||^(3/4)`, `r_i` the radius of the row's
sphere: the projection in the metric that weighs row i by `||a_i||^(3/4)`. The Euclidean projection
(`B = A`) puts heavy rows straight back onto the momentum and leaves them no room to part;
`B_i = a_i / ||a_i||` moves light rows, which carry no alignment, as much as heavy ones. Measured in
docs/explanation/solvers.md.
"""

from typing import Protocol

import torch
from torch import Tensor

from ..cloud import jung_radius

STRAIN = 0.9
"""Part of the largest `<A,X>` up to which a floor is restored at once on the way."""
ROWS = 1024
"""Rows handled at a time. What comes of a block is written in its place at once: kept until the
end between the blocks it would keep the allocator from using their memory again."""
PULL = 0.75
"""Power of the row norm that weighs a row in the metric of the projection."""


class Geometry(Protocol):
    """A feasible set for rows at unit scale together with an alignment floor."""

    def start(self) -> Tensor:
        """Rows, shape (n, d), to start from: the momentum brought into the set."""
        ...

    def retract_(self, rows: Tensor) -> Tensor:
        """The nearest rows in the set, in place."""
        ...

    def tangent_(self, rows: Tensor, step: Tensor) -> Tensor:
        """The part of a step that stays in the set to first order, in place of `step`."""
        ...

    def restore_(
        self, rows: Tensor, diameter: float, floor: float, strain: float = STRAIN
    ) -> Tensor:
        """Rows in the set that meet the floor if their diameter is at most `diameter`, in place.

        A goal beyond the part `strain` of what rows in the set can give is approached by halves.
        """
        ...

    def spacing(self) -> float:
        """Distance between neighbours worth aiming at first."""
        ...


def row_inner(x: Tensor, y: Tensor) -> Tensor:
    """`<x_i, y_i>` for each row, shape (n,), a block of rows at a time."""
    inner = x.new_zeros(len(x))
    for part, a, b in zip(inner.split(ROWS), x.split(ROWS), y.split(ROWS), strict=True):
        part.copy_((a * b).sum(dim=1))
    return inner


def row_norms(rows: Tensor) -> Tensor:
    """`||x_i||` in float64, shape (n,); no square overflows or underflows in a float32 cloud."""
    norms = rows.new_zeros(len(rows), dtype=torch.float64)
    for part, block in zip(norms.split(ROWS), rows.split(ROWS), strict=True):
        part.copy_(torch.linalg.vector_norm(block, dim=1, dtype=torch.float64))
    return norms


class Shell:
    """Unit sphere, floor on the share of the largest decrease.

    `sum_i ||a_i||` bounds `<A, X>` on the sphere, so pushing every row outwards is what the
    linear measure rewards.
    """

    def __init__(self, momentum: Tensor):
        """Hold the momentum `A`, shape (n, d)."""
        self.momentum = momentum
        self.norms = row_norms(momentum)
        self.unit = jung_radius(momentum.shape[1]) * float(self.norms.sum())
        self.radii = torch.ones_like(self.norms)

    def start(self) -> Tensor:
        """The momentum with every row scaled to its radius."""
        return self.retract_(self.momentum.clone())

    def retract_(self, rows: Tensor) -> Tensor:
        """Rows scaled to their radii; those below 1e-30 stay as they are."""
        norms = row_norms(rows)
        factor = torch.where(norms > 1e-30, self.rescale(norms.clamp_min(1e-30)), 1.0)
        return rows.mul_(factor.to(rows.dtype)[:, None])

    def tangent_(self, rows: Tensor, step: Tensor) -> Tensor:
        """`step_i - <step_i, x_i> x_i / ||x_i||^2`."""
        radial = row_inner(step, rows) / self.radii.to(rows.dtype).square()
        return step.addcmul_(radial[:, None], rows, value=-1)

    def restore_(
        self, rows: Tensor, diameter: float, floor: float, strain: float = STRAIN
    ) -> Tensor:
        """The least move along `B` that brings `<A,X>` to the goal, by bisection.

        The bisection stays on the device: waiting for it 40 times would cost a GPU more than the
        sums.
        """
        along = row_inner(self.momentum, rows).double()
        square = row_norms(rows).square_()
        pull = self.radii * self.norms.clamp_min(1e-300).pow(-PULL) * (self.norms > 0)

        def inner(t: Tensor) -> Tensor:
            # <a_i, x_i + t b_i> over its length, b_i = pull_i a_i, from scalars per row
            bent = t * pull
            length = (square + bent * (2 * along + bent * self.norms**2)).clamp_min(1e-60).sqrt()
            return ((along + bent * self.norms**2) * self.rescale(length)).sum()

        low, high = along.new_zeros(()), along.new_ones(())
        now = float(inner(low))
        goal = self.goal(now, diameter, floor, strain)
        if now >= goal:
            return rows
        while bool((inner(high) < goal) & (high < 1e30)):
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            short = inner(middle) < goal
            low, high = torch.where(short, middle, low), torch.where(short, high, middle)
        bent = (high * pull).to(rows.dtype)[:, None]
        return self.retract_(rows.addcmul_(bent, self.momentum))

    def goal(self, now: float, diameter: float, floor: float, strain: float) -> float:
        """Least `<A,X>`: `floor * diameter * J * sum ||a_i||`.

        Where that takes more than the part `strain` of all that rows in the set can give, half of
        what is missing to `<A,X> = sum ||a_i||` is made up, and the diameter has to give way.
        """
        goal, most = floor * diameter * self.unit, float(self.norms.sum())
        return goal if goal <= strain * most else min(goal, 0.5 * (max(now, 0.0) + most))

    def rescale(self, lengths: Tensor) -> Tensor:
        """What `retract_` multiplies rows of these lengths by."""
        return self.radii / lengths

    def spacing(self) -> float:
        """A little under the distance of orthogonal rows of the least radius."""
        return 1.05 * float(self.radii.min())


class Ball(Shell):
    """Unit ball, floor on the share of the largest decrease: for crowds in few dimensions.

    `retract_` scales rows outside to unit norm and leaves the others. Where the volume bound on
    `rho` is the binding one a sphere has no room: rows fill the ball.
    """

    def start(self) -> Tensor:
        """The momentum drawn into the ball, its median row to half the radius."""
        factor = 1 / (self.norms + self.norms.median().clamp_min(1e-30))
        return self.momentum * factor.to(self.momentum.dtype)[:, None]

    def tangent_(self, rows: Tensor, step: Tensor) -> Tensor:
        """The step itself."""
        del rows
        return step

    def rescale(self, lengths: Tensor) -> Tensor:
        """What `retract_` multiplies rows of these lengths by."""
        return 1 / lengths.clamp_min(1.0)

    def spacing(self) -> float:
        """The diameter of n balls that would fill the unit ball, at most the shell's."""
        n, d = self.momentum.shape
        return min(1.05, 2 * n ** (-1 / d))


class Onion(Shell):
    """A sphere for each row, floor on the cosine.

    The cosine keeps the proportions of the rows, so heavy rows keep their norms and only the
    light ones are raised, to the radius at which the row directions of `A` have the cosine
    `floor^(3/4)`; turning the rows may then cost another factor `floor^(1/4)`.
    """

    def __init__(self, momentum: Tensor, floor: float):
        """Hold the momentum `A`, shape (n, d), and find the least radius for the cosine floor."""
        super().__init__(momentum)
        share = self.norms / self.norms.max()
        wanted = max(floor, 0.0) ** 0.75
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            radii = share.clamp_min(middle)
            cosine = float((share @ radii) / (share.norm() * radii.norm()))
            low, high = (middle, high) if cosine >= wanted else (low, middle)
        self.radii = share.clamp_min(max(low, 1e-6))

    def goal(self, now: float, diameter: float, floor: float, strain: float) -> float:
        """Least `<A,X>`: `floor ||A|| ||X||`."""
        del now, diameter, strain
        return floor * float(self.norms.norm() * self.radii.norm())
