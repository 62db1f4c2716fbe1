"""From a float64 optimum to one of thirty digits, and what can be said of it.

The pairs with a positive multiplier are taken as equalities, and Newton's method is run on

    2 sum_j (w_ij - u_ij) (x_i - x_j) - v grad_i g = 0,     sum u_ij = 1,
    q_ij = s  (near),     q_ij = 1  (far),     g(x) = 0  (if the floor has a multiplier).

Residuals are evaluated with 60 digits; each correction is the least-squares solution in float64,
which gains about ten digits and leaves alone what the equations do not fix: rigid motions, points
that no pair holds, multipliers that are not unique (more equations than unknowns may hold at once).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray

from packing.solvers.exact.floors import Problem
from packing.solvers.exact.interior_point import solve_batch
from packing.solvers.exact.starts import Cloud

NEAR = 1e-7
"""Margin and barrier parameter with which the float64 optimum is taken up again."""
DIGITS = 60
"""Of the arithmetic."""
DENOMINATOR = 10**30
"""Of the rational points returned."""
RESIDUAL = 1e-30
"""Largest residual of an optimum that counts as solved."""
TOUCHING = 1e-20
"""Slack below which a pair without a multiplier is active all the same."""
HELD = 1e-6
"""Least multiplier of an active pair; multiplier times slack is 1e-12 at the float64 optimum."""
RANK = 1e-9
"""Singular values below this part of the largest count as zero."""
STEPS = 12
CHANGES = 6

Pairs = NDArray[np.int64]
Numbers = NDArray[np.object_]
"""Entries are `mpmath.mpf`."""
Rationals = tuple[tuple[int, ...], ...]


class Pair(NamedTuple):
    """An active pair i < j."""

    i: int
    j: int
    multiplier: float
    """Of its constraint on the squared distance at diameter 1; the near ones sum to 1."""


@dataclass(frozen=True)
class Optimality:
    """How well the conditions of a local optimum hold, for squared distances at diameter 1."""

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
        return self.solved and (self.curvature is None or self.curvature > 1e-9)


def refine(points: Cloud, problem: Problem) -> tuple[Rationals, Optimality]:
    """Solve the conditions of a local optimum near a cloud.

    Args:
        points: shape (n, d), float64, near a local optimum of `problem`.
        problem: without a floor, or with one that the cloud meets.

    Returns:
        The optimum, n points of d integers over `DENOMINATOR` at diameter 1, and how far it is
        one. If the iteration does not settle the cloud is as good as float64 gave it, and
        `Optimality.residual` says so.
    """
    start = torch.from_numpy(problem.inside(points, NEAR, NEAR))[None]
    mu = torch.tensor([NEAR], dtype=torch.float64)
    polished = solve_batch(start, mu, NEAR, problem.floor)
    u, w = (np.triu(one[0].numpy()) for one in (polished.near, polished.far))
    near, far = (np.argwhere(one > HELD) for one in (u, w))
    with mpmath.workdps(DIGITS):
        system = _System(
            problem,
            _exact(polished.points[0].numpy()),
            mpmath.mpf(float(polished.separation[0])),
            (near, _exact(u[tuple(near.T)])),
            (far, _exact(w[tuple(far.T)])),
            mpmath.mpf(float(polished.floor[0])) if float(polished.floor[0]) > HELD else None,
        )
        residual = system.solve()
        for _ in range(CHANGES):
            if not system.correct_active():
                break
            residual = system.solve()
        rationals = tuple(
            tuple(int(mpmath.nint(c * DENOMINATOR)) for c in point) for point in system.x
        )
        return rationals, system.optimality(residual)


def _exact(values: Cloud) -> Numbers:
    return np.frompyfunc(lambda one: mpmath.mpf(float(one)), 1, 1)(values)


class _System:
    """The equations and their unknowns; `near` and `far` are pairs with their multipliers."""

    def __init__(
        self,
        problem: Problem,
        x: Numbers,
        s: Any,
        near: tuple[Pairs, Numbers],
        far: tuple[Pairs, Numbers],
        v: Any,
    ):
        self.floor = problem.floor
        self.x, self.s, self.v = x, s, v
        self.near, self.u = near
        self.far, self.w = far

    def solve(self) -> float:
        """Newton's method; return the residual that it came to."""
        best = np.inf
        for _ in range(STEPS):
            values = self.values()
            residual = float(max(abs(one) for one in values))
            # rounding of the last step, far below what is asked for
            if residual < 10.0 ** (10 - DIGITS) or residual > 0.5 * best:
                return residual
            best = residual
            scaled = np.array([float(one / residual) for one in values])
            step = np.linalg.lstsq(self.jacobian(), scaled, rcond=RANK)[0]
            self.move([mpmath.mpf(float(one)) * residual for one in step])
        return float(max(abs(one) for one in self.values()))

    def values(self) -> Numbers:
        """The left-hand sides."""
        gradient = np.full(self.x.shape, mpmath.mpf(0), dtype=object)
        equations = []
        for pairs, multipliers, sign, level in (
            (self.near, self.u, -2, self.s),
            (self.far, self.w, 2, mpmath.mpf(1)),
        ):
            diff = self.x[pairs[:, 0]] - self.x[pairs[:, 1]]
            pull = sign * multipliers[:, None] * diff
            np.add.at(gradient, pairs[:, 0], pull)
            np.subtract.at(gradient, pairs[:, 1], pull)
            equations.append((diff**2).sum(axis=1) - level)
        ends = [sum(self.u, mpmath.mpf(-1))]
        if self.floor is not None and self.v is not None:
            room, normal = self.floor.exact(self.x)
            gradient -= self.v * normal
            ends.append(room)
        return np.concatenate([gradient.ravel(), *equations, ends])

    def jacobian(self) -> Cloud:
        """Derivatives of the left-hand sides, float64."""
        x, u, w = (one.astype(float) for one in (self.x, self.u, self.w))
        size = x.size
        normals = np.concatenate([_normals(x, self.near), _normals(x, self.far)])
        count = len(normals)
        floor = None if self.v is None else self.floor
        more = int(floor is not None)
        out = np.zeros((size + count + 1 + more, size + 1 + count + more))
        out[:size, :size] = _bending(x.shape, self.near, -u) + _bending(x.shape, self.far, w)
        signs = np.repeat([-1.0, 1.0], [len(u), len(w)])
        out[:size, size + 1 : size + 1 + count] = normals.T * signs
        out[size : size + count, :size] = normals
        out[size : size + len(u), size] = -1.0
        out[size + count, size + 1 : size + 1 + len(u)] = 1.0
        if floor is not None:
            cloud = torch.from_numpy(x.T.copy())[None]
            normal = floor.gradient(cloud)[0].numpy().T.ravel()
            d, n = x.shape[1], x.shape[0]
            hessian = floor.hessian(cloud)[0].numpy().reshape(d, n, d, n)
            hessian = hessian.transpose(1, 0, 3, 2).reshape(size, size)
            out[:size, :size] -= float(self.v or 0) * hessian
            out[:size, -1] = -normal
            out[-1, :size] = normal
        return out

    def move(self, step: Sequence[Any]) -> None:
        """Subtract a correction, in the order of the unknowns."""
        size, near, far = self.x.size, len(self.u), len(self.w)
        taken = np.array(step, dtype=object)
        self.x = self.x - taken[:size].reshape(self.x.shape)
        self.s = self.s - taken[size]
        self.u = self.u - taken[size + 1 : size + 1 + near]
        self.w = self.w - taken[size + 1 + near : size + 1 + near + far]
        if self.v is not None:
            self.v = self.v - taken[-1]

    def slacks(self) -> tuple[Numbers, Numbers, Pairs]:
        """Slacks near and far of all pairs i < j, and the pairs."""
        pairs = np.argwhere(np.triu(np.ones((len(self.x),) * 2), 1))
        q = ((self.x[pairs[:, 0]] - self.x[pairs[:, 1]]) ** 2).sum(axis=1)
        return q - self.s, 1 - q, pairs

    def correct_active(self) -> bool:
        """Take in pairs that are violated, drop those that pull the wrong way; tell if any."""
        changed = False
        slack_near, slack_far, pairs = self.slacks()
        for name, multipliers, slack in (("near", "u", slack_near), ("far", "w", slack_far)):
            own, values = getattr(self, name), getattr(self, multipliers)
            kept = values > -TOUCHING
            listed = {tuple(pair) for pair in own}
            new = [
                pair
                for pair, one in zip(pairs, slack, strict=True)
                if one < -TOUCHING and tuple(pair) not in listed
            ]
            changed |= bool(new) or not all(kept)
            added = np.array(new, dtype=np.int64).reshape(-1, 2)
            setattr(self, name, np.concatenate([own[kept.astype(bool)], added]))
            zeros = _exact(np.zeros(len(added)))
            setattr(self, multipliers, np.concatenate([values[kept.astype(bool)], zeros]))
        return changed

    def optimality(self, residual: float) -> Optimality:
        """Judge the solution."""
        slack_near, slack_far, pairs = self.slacks()
        lists = []
        for own, values, slack in (
            (self.near, self.u, slack_near),
            (self.far, self.w, slack_far),
        ):
            held = {tuple(pair): float(one) for pair, one in zip(own, values, strict=True)}
            touching = [
                tuple(pair)
                for pair, one in zip(pairs, slack, strict=True)
                if one < TOUCHING and tuple(pair) not in held
            ]
            held |= dict.fromkeys(touching, 0.0)
            lists.append(tuple(Pair(int(i), int(j), m) for (i, j), m in sorted(held.items())))
        positive = all(pair.multiplier >= -TOUCHING for part in lists for pair in part)
        inside = min(min(slack_near), min(slack_far)) > -TOUCHING
        in_pairs = {k for part in lists for i, j, m in part if m > 0 for k in (i, j)}
        rattlers = tuple(k for k in range(len(self.x)) if k not in in_pairs)
        freedom, curvature = self._second_order(rattlers)
        return Optimality(
            near=lists[0],
            far=lists[1],
            floor=float(self.v) if self.v is not None else 0.0,
            residual=residual,
            feasible=bool(positive and inside),
            rattlers=rattlers,
            freedom=freedom,
            curvature=curvature,
        )

    def _second_order(self, rattlers: tuple[int, ...]) -> tuple[int, float | None]:
        x, s_column = self.x.astype(float), self.x.size
        jacobian = self.jacobian()
        count = len(self.u) + len(self.w)
        rows = [jacobian[s_column : s_column + count, : s_column + 1]]
        if self.v is not None:
            rows.append(jacobian[-1:, : s_column + 1])
        rigid = _rigid_motions(x - x.mean(axis=0), rotations=self.v is None)
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


def _normals(x: Cloud, pairs: Pairs) -> Cloud:
    """Gradients of the squared distances, shape (pairs, n d)."""
    out = np.zeros((len(pairs), *x.shape))
    diff = 2.0 * (x[pairs[:, 0]] - x[pairs[:, 1]])
    rows = np.arange(len(pairs))
    out[rows, pairs[:, 0]] = diff
    out[rows, pairs[:, 1]] = -diff
    return out.reshape(len(pairs), x.size)


def _bending(shape: tuple[int, ...], pairs: Pairs, weights: Cloud) -> Cloud:
    """Second derivatives of the weighted sum of squared distances, shape (n d, n d)."""
    n, d = shape
    graph = np.zeros((n, n))
    i, j = pairs.T
    np.add.at(graph, (i, j), -2.0 * weights)
    np.add.at(graph, (j, i), -2.0 * weights)
    graph -= np.diag(graph.sum(axis=1))
    return np.kron(graph, np.eye(d))


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
