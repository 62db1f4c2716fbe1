"""The loop that the separating solvers share: visit all pairs, move, restore the floor.

Rows live at unit scale in a `Geometry`. Two radii say which pairs are wrong: closer than the
target `near`, or farther than `far`, the least of the rows' farthest distances in the pass before
but no less than 0.9 of its diameter. A `Method` turns the wrong pairs into a step per row, by its
force and its own worst violation, so that no step size is needed and a row that has room stays
where it is. (Scaling per row keeps equivariance under rotation, which scaling per coordinate as in
Adam breaks.)

The target is the one number to control. Far above what the floor allows, heavy rows cannot follow
and violate it most; once met, nothing moves. It is left alone while the separation is on its way
there and else steered to where the separation is a set fraction of it, 0.90 at the start of the
run and 0.98 at its end. The constants were chosen on real momenta (docs/explanation/solvers.md).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ..cloud import jung_radius
from ..pairs import Forces
from ..solution import Progress
from .geometry import ROWS, Geometry, row_inner, row_norms

FAR = 0.9
"""Least far radius relative to the diameter of the pass before."""
DROP, BRAKE, RECOVER = 0.8, 0.6, 1.1
"""Where the separation falls below DROP of itself steps shrink by BRAKE, else grow by RECOVER."""
STALL = 1.05
"""Growth of the separation in a pass below which the target is steered."""
WANTED = (0.90, 0.98)
"""Separation over target aimed at in the first pass and in the last."""
RATE, RISE, FALL = 0.05, 0.05, 0.06
"""Gain of the steering, and most that the log of the target rises or falls in a pass."""
MARGIN = 1e-3
"""Aimed for beyond the floor, as the diameter is that of the pass before."""
MET = 1e-6
"""Relative distance to the bound at which nothing is left to gain."""
WINDOW = 8
"""Passes over which the gain is held against the tolerance."""


class Method(Protocol):
    """How a pass over all pairs becomes a step."""

    reach: float
    """Relaxation: what steps are multiplied by while all goes well."""

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        """One pass. `near`, `far` are distances, `part` the part of the run done, 0 to 1."""
        ...

    def step_(self, geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
        """The step of each row in place of `force`; `room`, shape (n,), is its worst violation."""
        ...


class Agreement(NamedTuple):
    """How far rows agree with the momentum."""

    alignment: float
    cosine: float
    held: float
    """The one of them that the floor is about."""


Measure = Callable[[Tensor, float], Agreement]
"""Agreement of rows of a given diameter."""


def agreement(momentum: Tensor, measure: str) -> Measure:
    """What measures alignment and cosine of iterates, in the working dtype, sums in float64."""
    norms = row_norms(momentum)
    unit = jung_radius(momentum.shape[1]) * float(norms.sum())
    size = float(norms.norm())

    def agree(rows: Tensor, diameter: float) -> Agreement:
        inner = float(row_inner(momentum, rows).double().sum())
        mean = rows.new_zeros(rows.shape[1], dtype=torch.float64)
        for block in rows.split(ROWS):
            mean += block.sum(dim=0, dtype=torch.float64)
        mean /= len(rows)
        square = float(row_norms(rows).square().sum()) - len(rows) * float(mean @ mean)
        alignment = inner / (diameter * unit) if diameter > 0 else 0.0
        cosine = inner / (size * math.sqrt(square)) if square > 0 else 0.0
        held = alignment if measure == "decrease" else cosine
        return Agreement(alignment, cosine, held)

    return agree


@dataclass
class Limits:
    """When to stop and whom to tell."""

    passes: int
    tolerance: float | None = None
    deadline: float | None = None
    """On the clock of `time.monotonic`."""
    on_pass: Callable[[Progress], None] | None = None
    bound: float = math.inf
    """No `rho` is larger."""


@dataclass
class Run:
    """Where a run has come to; kept up to date while it goes on, so it can be cut short."""

    rows: Tensor
    """The newest iterate; its pass is still to come."""
    diameter: float
    """Of the iterate visited last."""
    best: Tensor | None = None
    """The iterate of largest `rho` among those that met the floor, as their passes saw them."""
    best_rho: float = -1.0
    records: list[float] = field(default_factory=list)
    """`best_rho` after each pass."""
    history: list[Progress] = field(default_factory=list)
    stop: str = ""


def separate(
    geometry: Geometry,
    floor: float,
    method: Method,
    run: Run,
    limits: Limits,
    measure: Measure,
) -> None:
    """Advance `run` by up to `limits.passes` passes over all pairs.

    Args:
        geometry: where rows may be.
        floor: least alignment, in the measure of the geometry.
        method: which pairs move whom.
        run: start, changed in place.
        limits: passes, tolerance, deadline, bound.
        measure: what is reported and held against the floor.
    """
    target = geometry.spacing()
    far = math.inf
    separation = 0.0
    pace = method.reach
    aim = floor + MARGIN * (1 - abs(floor))
    for k in range(limits.passes):
        part = k / max(1, limits.passes - 1)
        forces = method.visit(run.rows, target, far, part)
        nearest = forces.nearest.clamp_min(0).sqrt()
        farthest = forces.farthest.clamp_min(0).sqrt()
        before, separation = separation, float(nearest.min())
        run.diameter = float(farthest.max())
        _note(run, floor, separation, measure)
        if limits.on_pass is not None:
            limits.on_pass(run.history[-1])
        if run.best_rho >= limits.bound * (1 - MET):
            run.stop = "rho meets its upper bound: no update is separated further"
            return

        room = (target - nearest).clamp_min_(0)
        if far < math.inf:
            room += (farthest - far).clamp_min_(0)
        pace = min(method.reach, RECOVER * pace) if separation >= DROP * before else BRAKE * pace
        step = method.step_(geometry, run.rows, forces.force, room)
        moved = step.mul_(pace).add_(run.rows)
        run.rows = geometry.restore_(geometry.retract_(moved), run.diameter, aim)

        far = max(float(farthest.min()), FAR * run.diameter)
        if 0 < before:
            target *= _steer(separation, before, target, k, limits.passes)
        target = max(target, 1.01 * separation)
        if limits.deadline is not None and time.monotonic() >= limits.deadline:
            run.stop = f"the time limit was reached after {k + 1} passes; give it more time"
            return
        if limits.tolerance is not None and _settled(run, limits.tolerance):
            run.stop = (
                f"rho gained less than {limits.tolerance:g} of itself in {WINDOW} passes; "
                f"a smaller tolerance goes on"
            )
            return
    run.stop = f"the {limits.passes} passes asked for are done; more passes may separate further"


def _steer(separation: float, before: float, target: float, k: int, passes: int) -> float:
    """Factor for the target after pass `k` of `passes`.

    1 while the separation grows by more than 5 % a pass and would at that pace come to the wanted
    fraction of the target in the passes left.
    """
    left = passes - 1 - k
    part = k / max(1, passes - 1)
    wanted = WANTED[0] + (WANTED[1] - WANTED[0]) * part
    growth = separation / before
    if growth >= STALL and separation * min(growth, 1e3) ** min(left, 60) >= wanted * target:
        return 1.0
    rate = RATE * (separation / target - wanted) / (1 - wanted)
    return math.exp(min(RISE, max(-FALL, rate)))


def shortened_(geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
    """The tangential force, no row of it longer than its `room`, in place of `force`."""
    step = geometry.tangent_(rows, force)
    length = step.norm(dim=1)
    return step.mul_((torch.minimum(length, room) / length.clamp_min(_tiny(rows)))[:, None])


def stretched_(geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
    """The direction of the tangential force, every row as long as its `room`, in place."""
    largest = torch.linalg.vector_norm(force, ord=math.inf, dim=1, keepdim=True)
    step = geometry.tangent_(rows, force.div_(largest.clamp_min(_tiny(rows))))
    length = step.norm(dim=1)
    return step.mul_((room / length.clamp_min(_tiny(rows)) * (length > _tiny(rows)))[:, None])


def _tiny(rows: Tensor) -> float:
    return torch.finfo(rows.dtype).tiny * 1e4


def _note(run: Run, floor: float, separation: float, measure: Measure) -> None:
    rho = separation / run.diameter if run.diameter > 0 else 0.0
    figures = measure(run.rows, run.diameter)
    run.history.append(Progress(len(run.history) + 1, rho, figures.alignment, figures.cosine))
    if figures.held >= floor and rho > run.best_rho:
        run.best, run.best_rho = run.rows, rho
    run.records.append(run.best_rho)


def _settled(run: Run, tolerance: float) -> bool:
    if len(run.records) <= WINDOW:
        return False
    before = run.records[-1 - WINDOW]
    return before > 0 and run.best_rho <= before * (1 + tolerance)
