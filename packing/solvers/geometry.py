"""Where the rows of an iterate may be, and how the alignment floor is restored there.

The diameter is not a constraint on an iterate: rows live at unit scale and the finished cloud is
scaled to the diameter asked, which changes neither `rho` nor alignment. By Jung's theorem nothing
is lost by asking that rows lie in the unit ball.

Floors are restored by moving along `B`, the momentum with its row norms to the power 1/4
(`B_i = a_i / ||a_i||^(3/4)`): the projection in the metric that weighs row i by
`||a_i||^(3/4)`. The Euclidean projection (`B = A`) puts heavy rows straight back onto the momentum
and leaves them no room to part; `B_i = a_i / ||a_i||` moves light rows, which carry no alignment,
as much as heavy ones. Measured in docs/solvers.md.
"""

import math
from typing import Protocol

import torch
from torch import Tensor

from packing.cloud import jung_radius


class Geometry(Protocol):
    """A feasible set for rows at unit scale together with an alignment floor."""

    def start(self) -> Tensor:
        """Rows, shape (n, d), to start from: the momentum brought into the set."""
        ...

    def retract(self, rows: Tensor) -> Tensor:
        """The nearest rows in the set."""
        ...

    def tangent(self, rows: Tensor, step: Tensor) -> Tensor:
        """The part of a step that stays in the set to first order."""
        ...

    def restore(self, rows: Tensor, diameter: float, floor: float) -> Tensor:
        """Rows in the set that meet the floor if their diameter is at most `diameter`."""
        ...

    def spacing(self) -> float:
        """Distance between neighbours worth aiming at first."""
        ...


def unit_rows(rows: Tensor) -> Tensor:
    """`s_i / ||s_i||`, zero rows left at zero; no square overflows or underflows."""
    scaled = rows / rows.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
    return scaled / scaled.norm(dim=1, keepdim=True).clamp_min(0.5)


class Shell:
    """Unit sphere, floor on the share of the largest decrease.

    `sum_i ||a_i||` bounds `<A, X>` on the sphere, so pushing every row outwards is what the
    linear measure rewards.
    """

    def __init__(self, momentum: Tensor):
        """Hold the momentum `A`, shape (n, d)."""
        self.momentum = momentum
        self.norms = momentum.norm(dim=1, dtype=torch.float64)
        self.total = float(self.norms.sum())
        self.unit = jung_radius(momentum.shape[1]) * self.total
        self.pull = self.norms.clamp_min(1e-300).pow(-0.75) * (self.norms > 0)

    def start(self) -> Tensor:
        """Row-normalised momentum."""
        return unit_rows(self.momentum)

    def retract(self, rows: Tensor) -> Tensor:
        """Rows scaled to unit norm."""
        return unit_rows(rows)

    def tangent(self, rows: Tensor, step: Tensor) -> Tensor:
        """`step - <step_i, x_i> x_i`."""
        return torch.addcmul(step, (step * rows).sum(dim=1, keepdim=True), rows, value=-1)

    def restore(self, rows: Tensor, diameter: float, floor: float) -> Tensor:
        """Least move along `B` with `<A,X> >= floor * diameter * J * sum ||a_i||`, by bisection.

        Where the floor lies beyond what rows in the set can give at this diameter, half of what
        is missing to `<A,X> = sum ||a_i||` is made up, and the diameter has to give way.
        """
        along = (self.momentum * rows).sum(dim=1).double()
        square = (rows * rows).sum(dim=1).double()

        def inner(t: float) -> float:
            # <a_i, x_i + t b_i> / ||x_i + t b_i|| with b_i = pull_i a_i, from scalars per row
            bent = t * self.pull
            length = (square + bent * (2 * along + bent * self.norms**2)).clamp_min(1e-30).sqrt()
            return float(((along + bent * self.norms**2) / self.divisor(length)).sum())

        now = inner(0.0)
        goal = min(floor * diameter * self.unit, 0.5 * (max(now, 0.0) + self.total))
        if now >= goal:
            return rows
        low, high = 0.0, 1.0
        while inner(high) < goal:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if inner(middle) < goal else (low, middle)
        bent = (high * self.pull).to(rows.dtype)[:, None]
        return self.retract(torch.addcmul(rows, bent, self.momentum))

    def divisor(self, lengths: Tensor) -> Tensor:
        """What `retract` divides a row of this length by."""
        return lengths

    def spacing(self) -> float:
        """A little under the distance of orthogonal rows."""
        return 1.05


class Ball(Shell):
    """Unit ball, floor on the share of the largest decrease: for crowds in few dimensions.

    Where the volume bound on `rho` is the binding one a sphere has no room: rows fill the ball.
    """

    def start(self) -> Tensor:
        """The momentum drawn into the ball, its median row to half the radius."""
        norms = self.momentum.norm(dim=1, keepdim=True)
        return self.momentum / (norms + norms.median().clamp_min(1e-30))

    def retract(self, rows: Tensor) -> Tensor:
        """Rows outside scaled to unit norm."""
        return rows / rows.norm(dim=1, keepdim=True).clamp_min(1.0)

    def tangent(self, rows: Tensor, step: Tensor) -> Tensor:
        """The step itself."""
        del rows
        return step

    def divisor(self, lengths: Tensor) -> Tensor:
        """What `retract` divides a row of this length by."""
        return lengths.clamp_min(1.0)

    def spacing(self) -> float:
        """The diameter of n balls that would fill the unit ball, at most the shell's."""
        n, d = self.momentum.shape
        return min(1.05, 2 * n ** (-1 / d))


class Cone:
    """All rows, floor on the cosine: the circular cone about the momentum.

    The cosine keeps the proportions of the rows and asks for the smallest change that separates
    them, so nothing is normalised. The component along `A` is kept and the rest shrunk.
    """

    def __init__(self, momentum: Tensor, floor: float):
        """Hold the momentum `A`, shape (n, d), and the cosine to be kept."""
        self.heaviest = float(momentum.norm(dim=1).max())
        self.momentum = momentum / self.heaviest
        self.square = _inner(self.momentum, self.momentum)
        self.slope = math.sqrt(max(0.0, 1 - floor**2)) / floor if floor > 0 else math.inf

    def start(self) -> Tensor:
        """The momentum, its heaviest row of norm 1."""
        return self.momentum.clone()

    def retract(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows

    def tangent(self, rows: Tensor, step: Tensor) -> Tensor:
        """The step itself."""
        del rows
        return step

    def restore(self, rows: Tensor, diameter: float, floor: float) -> Tensor:
        """Shrink `X - alpha A`, `alpha = <A,X>/||A||^2`, until `cos(A, X) >= floor`."""
        del diameter
        if floor <= 0:
            return rows
        alpha = max(_inner(self.momentum, rows) / self.square, 1e-3)
        rest = rows - alpha * self.momentum
        slope = math.sqrt(max(0.0, 1 - min(floor, 1.0) ** 2)) / floor
        room = alpha * math.sqrt(self.square) * slope
        size = math.sqrt(_inner(rest, rest))
        if size <= room:
            return rows
        return torch.add(alpha * self.momentum, rest, alpha=room / size)

    def spacing(self) -> float:
        """`||X - A||` at the floor, shared out evenly: `||A|| tan(theta) sqrt(2/n)`."""
        n, d = self.momentum.shape
        even = math.sqrt(2 * self.square / n) * self.slope
        return min(1.05, 2 * n ** (-1 / d), even)


def _inner(x: Tensor, y: Tensor) -> float:
    """`<x, y>` accumulated in float64, a block of rows at a time."""
    blocks = zip(x.split(8192), y.split(8192), strict=True)
    return float(sum((a.double() * b.double()).sum() for a, b in blocks))
