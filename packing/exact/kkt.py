"""The conditions of a local optimum as equations, solved by Newton's method with 60 digits.

With the pairs of positive multiplier as equalities:

    2 sum_j (w_ij - u_ij) (x_i - x_j) - v grad_i g = 0,     sum u_ij = 1,
    q_ij = s  (near),     q_ij = 1  (far),     g(x) = 0  (if the floor has a multiplier).

Residuals are evaluated with 60 digits; each correction is the least-squares solution in float64,
which gains about ten digits and leaves alone what the equations do not fix: rigid motions, points
that no pair holds, multipliers that are not unique (more equations than unknowns may hold at once).

On a sphere the last point is the centre and the far pairs are all those with it: there `q_ij = 1`
is asked in any case and `w_ij` may have either sign. What acts on the centre then balances by
itself, as all forces sum to zero.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..extras import extra
from .interior_point.clouds import Floor
from .starts import Cloud

with extra("exact"):
    import mpmath

DIGITS = 60
"""Of the arithmetic: call everything here under `mpmath.workdps(DIGITS)`."""
TOUCHING = 1e-20
"""Slack below which a pair without a multiplier is active all the same."""
RANK = 1e-9
"""Singular values below this part of the largest count as zero."""
STEPS = 12
NEAR = 1e-7
"""Margin and barrier parameter with which a float64 optimum is taken up again for a guess."""
HELD = 1e-6
"""Least multiplier of an active pair; multiplier times slack is 1e-12 at the float64 optimum."""

MULTIPLIERS = {"near": "u", "far": "w"}

Pairs = NDArray[np.int64]
Numbers = NDArray[np.object_]
"""Entries are `mpmath.mpf`."""


def exactly(values: Cloud) -> Numbers:
    """Return float64 numbers as `mpmath.mpf`."""
    return np.frompyfunc(lambda one: mpmath.mpf(float(one)), 1, 1)(values)


def active(multipliers: Cloud) -> tuple[Pairs, Numbers]:
    """Return the pairs i < j whose multiplier exceeds `HELD`, with it; shape (n, n) to (pairs,)."""
    pairs = np.argwhere(np.triu(multipliers, 1) > HELD)
    return pairs, exactly(multipliers[tuple(pairs.T)])


class Guess(NamedTuple):
    """A float64 optimum; make it under `mpmath.workdps(DIGITS)`."""

    x: Cloud
    """Shape (n, d)."""
    s: float
    near: tuple[Pairs, Numbers]
    """Active pairs with their multipliers."""
    far: tuple[Pairs, Numbers]
    floor: Floor | None = None
    v: float | None = None
    """None if the floor has no multiplier."""
    centred: bool = False
    """Whether the last point is the centre of a sphere that the others are on."""


class System:
    """The equations and their unknowns; `near` and `far` are pairs with multipliers `u`, `w`."""

    def __init__(self, guess: Guess):
        """Take what a float64 optimum says."""
        self.floor, self.centred = guess.floor, guess.centred
        self.x, self.s = exactly(guess.x), mpmath.mpf(guess.s)
        self.v = None if guess.v is None else mpmath.mpf(guess.v)
        self.near, self.u = guess.near
        self.far, self.w = guess.far

    def solve(self) -> float:
        """Newton's method; return the residual that it came to."""
        best, before = np.inf, (self.x, self.s, self.u, self.w, self.v)
        for _ in range(STEPS):
            values = self.values()
            residual = float(max(abs(one) for one in values))
            if residual >= best:
                self.x, self.s, self.u, self.w, self.v = before
                return best
            if residual < 10.0 ** (10 - DIGITS):  # rounding, far below what is asked for
                return residual
            best, before = residual, (self.x, self.s, self.u, self.w, self.v)
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
        rows = np.concatenate([normals(x, self.near), normals(x, self.far)])
        count = len(rows)
        floor = None if self.v is None else self.floor
        more = int(floor is not None)
        out = np.zeros((size + count + 1 + more, size + 1 + count + more))
        out[:size, :size] = bending(x.shape, self.near, -u) + bending(x.shape, self.far, w)
        signs = np.repeat([-1.0, 1.0], [len(u), len(w)])
        out[:size, size + 1 : size + 1 + count] = rows.T * signs
        out[size : size + count, :size] = rows
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

    def points(self) -> Numbers:
        """The points; on a sphere the unit vectors."""
        return self.x[:-1] - self.x[-1] if self.centred else self.x

    def slacks(self) -> tuple[dict[str, Numbers], Pairs]:
        """Slacks of all pairs i < j of points under "near" and, but on a sphere, "far"."""
        points = self.points()
        pairs = np.argwhere(np.triu(np.ones((len(points),) * 2), 1))
        q = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)
        slacks = {"near": q - self.s}
        return slacks if self.centred else slacks | {"far": 1 - q}, pairs

    def correct_active(self) -> bool:
        """Take in pairs that are violated, drop those that pull the wrong way; tell if any."""
        changed = False
        slacks, pairs = self.slacks()
        for name, slack in slacks.items():
            multipliers = MULTIPLIERS[name]
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
            zeros = exactly(np.zeros(len(added)))
            setattr(self, multipliers, np.concatenate([values[kept.astype(bool)], zeros]))
        return changed


def normals(x: Cloud, pairs: Pairs) -> Cloud:
    """Gradients of the squared distances, shape (pairs, n d)."""
    out = np.zeros((len(pairs), *x.shape))
    diff = 2.0 * (x[pairs[:, 0]] - x[pairs[:, 1]])
    rows = np.arange(len(pairs))
    out[rows, pairs[:, 0]] = diff
    out[rows, pairs[:, 1]] = -diff
    return out.reshape(len(pairs), x.size)


def bending(shape: tuple[int, ...], pairs: Pairs, weights: Cloud) -> Cloud:
    """Second derivatives of the weighted sum of squared distances, shape (n d, n d)."""
    n, d = shape
    graph = np.zeros((n, n))
    i, j = pairs.T
    np.add.at(graph, (i, j), -2.0 * weights)
    np.add.at(graph, (j, i), -2.0 * weights)
    graph -= np.diag(graph.sum(axis=1))
    return np.kron(graph, np.eye(d))
