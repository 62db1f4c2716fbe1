"""From a float64 optimum to one of thirty digits, and what can be said of it.

The conditions of first order are those of kkt.py. Those of second order ask that the Lagrangian
bends upwards wherever the active pairs leave the held points free to move, rigid motions apart; if
they leave no freedom there is nothing to ask.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..extras import extra
from .kkt import DIGITS, MULTIPLIERS, RANK, TOUCHING, System
from .problem import PointProblem
from .starts import Cloud

with extra("exact"):
    import mpmath
    import scipy.linalg

CHANGES = 6
"""Times that the active pairs are corrected."""
RESIDUAL = 1e-30
"""Largest residual of an optimum that counts as solved."""
CURVED = 1e-9
"""Least second derivative that counts as positive."""
DENOMINATOR = 10**30
"""Of the rational points returned."""

Rationals = tuple[tuple[int, ...], ...]


class Pair(NamedTuple):
    """An active pair i < j."""

    i: int
    j: int
    multiplier: float
    """Of its constraint on the squared distance; the near ones sum to 1."""


@dataclass(frozen=True)
class Optimality:
    """How well the conditions of a local optimum hold, for squared distances at diameter 1.

    For a spherical code: for squared distances of unit vectors; `far` is empty.
    """

    near: tuple[Pair, ...]
    """The pairs at the separation; multiplier 0.0 for one that only touches."""
    far: tuple[Pair, ...]
    """The pairs at the diameter."""
    floor: float
    """Multiplier of the floor on the alignment or cosine: what `rho^2` loses by a unit of it."""
    residual: float
    """Largest residual of the conditions of first order, with 60-digit arithmetic."""
    feasible: bool
    """Whether no other pair is nearer or farther, and all multipliers are positive."""
    rattlers: tuple[int, ...]
    """Points that no pair with a multiplier holds."""
    freedom: int
    """Dimensions in which the held points can move to first order, rigid motions apart."""
    curvature: float | None
    """Least second derivative of the Lagrangian along them (float64); None if there are none."""

    @property
    def solved(self) -> bool:
        """Whether the conditions of first order hold to 1e-30."""
        return self.feasible and self.residual <= RESIDUAL

    @property
    def isolated(self) -> bool:
        """Whether the held points are a strict local optimum, rigid motions apart."""
        return self.solved and (self.curvature is None or self.curvature > CURVED)


def refine(points: Cloud, problem: PointProblem) -> tuple[Rationals, Optimality]:
    """Solve the conditions of a local optimum near a cloud.

    Args:
        points: shape (n, d), float64, near a local optimum of `problem`.
        problem: if it has a floor, one that the cloud meets.

    Returns:
        The optimum, n points of d integers over `DENOMINATOR`, at diameter 1 or on the unit
        sphere, and how far it is one. If the iteration does not settle the points are as good as
        float64 gave them, and `Optimality.residual` says so.
    """
    with mpmath.workdps(DIGITS):
        system = System(problem.guess(points))
        residual = system.solve()
        for _ in range(CHANGES):
            if not system.correct_active():
                break
            residual = system.solve()
        rationals = tuple(
            tuple(int(mpmath.nint(c * DENOMINATOR)) for c in point) for point in system.points()
        )
        return rationals, _judged(system, residual)


def _judged(system: System, residual: float) -> Optimality:
    """Judge the solution."""
    slacks, pairs = system.slacks()
    lists: dict[str, tuple[Pair, ...]] = {"far": ()}
    for name, slack in slacks.items():
        own, values = getattr(system, name), getattr(system, MULTIPLIERS[name])
        held = {tuple(pair): float(one) for pair, one in zip(own, values, strict=True)}
        touching = [
            tuple(pair)
            for pair, one in zip(pairs, slack, strict=True)
            if one < TOUCHING and tuple(pair) not in held
        ]
        held |= dict.fromkeys(touching, 0.0)
        lists[name] = tuple(Pair(int(i), int(j), m) for (i, j), m in sorted(held.items()))
    positive = all(pair.multiplier >= -TOUCHING for part in lists.values() for pair in part)
    inside = min(min(slack) for slack in slacks.values()) > -TOUCHING
    in_pairs = {k for part in lists.values() for i, j, m in part if m > 0 for k in (i, j)}
    rattlers = tuple(k for k in range(len(system.points())) if k not in in_pairs)
    freedom, curvature = _second_order(system, rattlers)
    return Optimality(
        near=lists["near"],
        far=lists["far"],
        floor=float(system.v) if system.v is not None else 0.0,
        residual=residual,
        feasible=bool(positive and inside),
        rattlers=rattlers,
        freedom=freedom,
        curvature=curvature,
    )


def _second_order(system: System, rattlers: tuple[int, ...]) -> tuple[int, float | None]:
    x, s_column = system.x.astype(float), system.x.size
    jacobian = system.jacobian()
    count = len(system.u) + len(system.w)
    rows = [jacobian[s_column : s_column + count, : s_column + 1]]
    if system.v is not None:
        rows.append(jacobian[-1:, : s_column + 1])
    rigid = _rigid_motions(x - x.mean(axis=0), rotations=system.v is None)
    rows.append(np.pad(rigid, ((0, 0), (0, 1))))
    loose = np.zeros((len(rattlers) * x.shape[1], s_column + 1))
    for row, column in enumerate(
        k * x.shape[1] + axis for k in rattlers for axis in range(x.shape[1])
    ):
        loose[row, column] = 1.0
    rows.append(loose)
    free = scipy.linalg.null_space(np.concatenate(rows), rcond=RANK)
    if not free.shape[1]:
        return 0, None
    free = free[:s_column]
    bent = free.T @ jacobian[:s_column, :s_column] @ free
    return free.shape[1], float(np.linalg.eigvalsh(0.5 * (bent + bent.T))[0])


def _rigid_motions(x: Cloud, *, rotations: bool) -> Cloud:
    """Translations of a centred cloud and, if asked, its infinitesimal rotations, as rows."""
    n, d = x.shape
    motions = [np.tile(axis, n) for axis in np.eye(d)]
    if rotations:
        for a in range(d):
            for b in range(a):
                turn = np.zeros((n, d))
                turn[:, a], turn[:, b] = x[:, b], -x[:, a]
                motions.append(turn.ravel())
    return np.array(motions)
