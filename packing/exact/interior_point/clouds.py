"""Many small separation problems at once: a primal-dual interior-point method over a batch.

    maximise  s   over  x_1 .. x_n in R^d  and  s
    subject to  q_ij - s >= 0  and  1 - q_ij >= 0  for i < j,       q_ij = ||x_i - x_j||^2,
                g(x) >= 0                                           (a floor, if there is one)

so that `s = rho^2` of a cloud of diameter 1. With multipliers `u_ij` of the near pairs, `w_ij` of
the far ones and `v` of the floor the conditions of first order read

    sum_{i<j} u_ij = 1,      2 sum_j (w_ij - u_ij) (x_i - x_j) = v grad_i g,
    u_ij (q_ij - s) = 0,     w_ij (1 - q_ij) = 0,     v g = 0.

The method is that of barrier.py. Coordinates come first, x has shape (B, d, n): the last axis is
the one that is summed over.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .barrier import LEAST, TO_BOUNDARY, Lanes, chosen, first_root, reset, run


class Floor(Protocol):
    """A concave `g` of all points together, invariant to a common shift; `g >= 0` is asked."""

    def value(self, x: Tensor) -> Tensor:
        """Return `g`, shape (B,), of x, shape (B, d, n)."""
        ...

    def gradient(self, x: Tensor) -> Tensor:
        """Return its gradient, shape (B, d, n)."""
        ...

    def turned(self, x: Tensor) -> Tensor:
        """Return x after the rotation or reflection that makes `g` largest."""
        ...

    def hessian(self, x: Tensor) -> Tensor:
        """Return its second derivatives, shape (B, d n, d n)."""
        ...

    def exact(self, x: NDArray[np.object_]) -> tuple[Any, NDArray[np.object_]]:
        """Return `g` and its gradient for one cloud, shape (n, d), in the arithmetic of `x`."""
        ...


class Optima(NamedTuple):
    """Where the starts of a batch ended; all float64."""

    points: Tensor
    """Shape (B, n, d), diameter at most 1."""
    separation: Tensor
    """`s` carried on to `mu = 0`, shape (B,)."""
    near: Tensor
    """Multipliers `u`, shape (B, n, n), symmetric, zero diagonal."""
    far: Tensor
    """Multipliers `w`, shape (B, n, n), likewise."""
    floor: Tensor
    """Multiplier `v`, shape (B,); 0 without a floor."""
    converged: Tensor
    """Bool, shape (B,): whether the conditions of first order are met."""


@torch.no_grad()
def solve_batch(starts: Tensor, mu: Tensor, margin: float, floor: Floor | None = None) -> Optima:
    """Run every start to a local optimum.

    Args:
        starts: shape (B, n, d), float64, n >= 2, no two points of a start equal; scaled here
            to diameter `1 - margin`, at which `floor` must be positive.
        mu: first barrier parameters, shape (B,); with small ones the optimum lies near the start.
        margin: how far inside the constraints to begin, at most 0.05; small near a known optimum.
        floor: of all the starts.

    Returns:
        The optima in the order of the starts. The result of a start may depend on the others of
        its batch by rounding.
    """
    x = starts.transpose(1, 2)
    x = x * ((1.0 - margin) / squared_distances(x).amax(dim=(1, 2)).sqrt())[:, None, None]
    lanes = _Clouds(x, mu, floor, margin)
    size, n, d = starts.shape
    out = Optima(
        points=torch.zeros_like(starts),
        separation=torch.zeros_like(mu),
        near=starts.new_zeros(size, n, n),
        far=starts.new_zeros(size, n, n),
        floor=torch.zeros_like(mu),
        converged=torch.zeros(size, dtype=torch.bool),
    )

    def collect(where: Tensor, ended: Tensor, done: Tensor) -> None:
        out.points[where] = lanes.x[ended].transpose(1, 2)
        out.separation[where] = lanes.limit()[ended]
        out.near[where], out.far[where] = lanes.u[ended], lanes.w[ended]
        out.floor[where] = lanes.v[ended]
        out.converged[where] = done

    run(lanes, collect)
    return out


def squared_distances(x: Tensor) -> Tensor:
    """Return `||x_i - x_j||^2`, shape (B, n, n), of x, shape (B, d, n), from differences."""
    return (x[..., :, None] - x[..., None, :]).square().sum(dim=1)


class _Clouds(Lanes):
    """Pair tensors have shape (B, n, n) and slack 1 on the diagonal."""

    STATE = (*Lanes.STATE, "x", "s", "u", "w", "v", "diff", "near", "far", "room")

    def __init__(self, x: Tensor, mu: Tensor, floor: Floor | None, margin: float):
        super().__init__(mu, x.shape[2])
        self.floor = floor
        least = (squared_distances(x) + 4.0 * self.own).amin(dim=(1, 2))
        self.move_to(x, (1.0 - 10.0 * margin) * least)
        self.u = self.off * self.mu_pairs / self.near
        self.w = self.off * self.mu_pairs / self.far
        self.v = self.mu / self.room if floor else torch.zeros_like(mu)

    def move_to(self, x: Tensor, s: Tensor) -> None:
        """Take a point, turned as the floor likes it best, and measure its slacks."""
        x = self.floor.turned(x) if self.floor else x
        self.x, self.s = x, s
        self.diff = x[..., :, None] - x[..., None, :]
        q = self.diff.square().sum(dim=1)
        self.near = (q - s[:, None, None]).mul_(self.off).add_(self.own).clamp_min_(LEAST)
        self.far = (1.0 - q).clamp_min_(LEAST)
        self.room = self.floor.value(x).clamp_min(LEAST) if self.floor else torch.ones_like(s)

    def limit(self) -> Tensor:
        """`s` at `mu = 0` to first order: each active constraint holds it back by `mu`."""
        held = torch.where(self.u > self.near, self.u * self.near, 0.0)
        held += torch.where(self.w > self.far, self.w * self.far, 0.0)
        limit = self.s + 0.5 * held.sum(dim=(1, 2))
        if self.floor:
            limit += torch.where(self.v > self.room, self.v * self.room, 0.0)
        return limit

    def gradient(self, u: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient of the Lagrangian with given multipliers, in x and in s."""
        grad = ((w - u)[:, None] * self.diff).sum(dim=3).mul_(2.0)
        if self.floor:
            grad -= v[:, None, None] * self.floor.gradient(self.x)
        return grad, 0.5 * u.sum(dim=(1, 2)) - 1.0

    def stationarity(self) -> Tensor:
        grad_x, grad_s = self.gradient(self.u, self.w, self.v)
        return torch.maximum(grad_x.abs().amax(dim=(1, 2)), grad_s.abs())

    def gap(self) -> Tensor:
        goal = self.mu_pairs * self.off
        near, far = self.u * self.near, self.w * self.far
        gap = torch.maximum((near - goal).abs(), (far - goal).abs()).amax(dim=(1, 2))
        if self.floor:
            gap = torch.maximum(gap, (self.v * self.room - self.mu).abs())
        return gap

    def advance(self) -> None:
        factor = self.factor(self.newton_matrix())
        zero = torch.zeros_like(self.near)
        first = self.newton_step(factor, zero, torch.zeros_like(self.s))
        # where the constraints bend the step short, aim again at where they will be
        second = self.newton_step(factor, first.bend, first.curve)
        better = second.length > first.length
        step = _Step(*(chosen(better, a, b) for a, b in zip(second, first, strict=True)))

        goal = self.mu_pairs * self.off
        fall = torch.minimum(self.fall(self.u, step.u), self.fall(self.w, step.w))
        if self.floor:
            fall = torch.minimum(fall, self.v / (-step.v).clamp_min(1e-300))
        dual = (TO_BOUNDARY * fall).clamp_max_(1.0)
        pairs = dual[:, None, None]
        u, w, v = self.u + pairs * step.u, self.w + pairs * step.w, self.v + dual * step.v
        self.move_to(self.x + step.length[:, None, None] * step.x, self.s + step.length * step.s)
        self.u = reset(u, goal, self.near)
        self.w = reset(w, goal, self.far)
        if self.floor:
            self.v = reset(v, self.mu, self.room)

    def newton_step(self, factor: Tensor, bend: Tensor, curve: Tensor) -> "_Step":
        """Solve for a step at whose end the slacks are expected to be bent by `bend`, `curve`."""
        B, d, n = self.x.shape
        goal = self.mu_pairs * self.off
        u, w = (goal - self.u * bend) / self.near, (goal + self.w * bend) / self.far
        v = (self.mu - self.v * curve) / self.room if self.floor else self.v
        grad_x, grad_s = self.gradient(u, w, v)
        right = -torch.cat([grad_x.reshape(B, d * n), grad_s[:, None]], dim=1)
        step = torch.cholesky_solve(right[..., None], factor)[..., 0]
        dx, ds = step[:, :-1].reshape(B, d, n), step[:, -1]

        ddiff = dx[..., :, None] - dx[..., None, :]
        bent = ddiff.square().sum(dim=1)
        dfar = (self.diff * ddiff).sum(dim=1).mul_(-2.0)
        dnear = -dfar - ds[:, None, None] * self.off
        droom, curved = torch.zeros_like(ds), torch.zeros_like(ds)
        if self.floor:
            droom = (self.floor.gradient(self.x) * dx).sum(dim=(1, 2))
            curved = self.floor.value(self.x + dx) - self.floor.value(self.x) - droom
        goal_x, goal_s = self.gradient(goal / self.near, goal / self.far, self.mu / self.room)
        slope = (goal_x * dx).sum(dim=(1, 2)) + goal_s * ds
        return _Step(
            x=dx,
            s=ds,
            u=u - self.u * dnear / self.near - self.u,
            w=w - self.w * dfar / self.far - self.w,
            v=v - self.v * droom / self.room - self.v,
            length=self.step_length(dx, ds, slope, dnear, dfar, bent),
            bend=bent,
            curve=curved,
        )

    def newton_matrix(self) -> Tensor:
        """Second derivatives of the Lagrangian plus those of the slacks, shape (B, dn+1, dn+1)."""
        B, d, n = self.x.shape
        soft = self.u / self.near
        stiff = (soft + self.w / self.far).mul_(-4.0)
        pull = (self.w - self.u).mul_(-2.0)
        K = self.x.new_zeros(B, d * n + 1, d * n + 1)
        for k in range(d):
            rows = slice(k * n, (k + 1) * n)
            scaled = stiff * self.diff[:, k]
            for m in range(k + 1):
                block = scaled * self.diff[:, m]
                if m == k:
                    block += pull
                block.diagonal(dim1=1, dim2=2).sub_(block.sum(dim=2))
                columns = slice(m * n, (m + 1) * n)
                K[:, rows, columns] = block
                if m != k:
                    K[:, columns, rows] = block.transpose(1, 2)
        cross = (soft[:, None] * self.diff).sum(dim=3).mul_(-2.0).reshape(B, d * n)
        K[:, :-1, -1] = cross
        K[:, -1, :-1] = cross
        K[:, -1, -1] = 0.5 * soft.sum(dim=(1, 2))
        if self.floor:
            normal = self.floor.gradient(self.x).reshape(B, d * n)
            weight = (self.v / self.room)[:, None, None]
            K[:, :-1, :-1] += weight * normal[:, :, None] * normal[:, None, :]
            K[:, :-1, :-1] -= self.v[:, None, None] * self.floor.hessian(self.x)
        return K

    def step_length(
        self, dx: Tensor, ds: Tensor, slope: Tensor, dnear: Tensor, dfar: Tensor, bend: Tensor
    ) -> Tensor:
        """Length that stays inside and lowers the barrier function, shape (B,).

        Along the step `near` becomes `near + t dnear + t^2 bend` and `far` likewise with `-bend`.
        """
        t = torch.minimum(
            first_root(TO_BOUNDARY * self.near, dnear, bend),
            first_root(TO_BOUNDARY * self.far, dfar, -bend),
        )
        t = t.amin(dim=(1, 2)).clamp_max(1.0)
        for _ in range(15):
            long = t[:, None, None]
            bent = long * long * bend
            near = (self.near + long * dnear).add_(bent).div_(self.near)
            far = (self.far + long * dfar).sub_(bent).div_(self.far)
            logs = 0.5 * (near.mul_(far)).log_().sum(dim=(1, 2))
            inside = torch.ones_like(t, dtype=torch.bool)
            if self.floor:
                room = self.floor.value(self.x + long * dx) / self.room
                inside = room > 1.0 - TO_BOUNDARY
                logs += room.clamp_min(LEAST).log()
            rise = -t * ds - self.mu * logs
            good = inside & (rise <= 1e-4 * t * slope.clamp_max(0.0) + 1e-14)
            if bool(good.all()):
                break
            t = torch.where(good, t, 0.5 * t)
        return t


class _Step(NamedTuple):
    """A direction in all unknowns, how far to go along it, and how the slacks bend on the way."""

    x: Tensor
    s: Tensor
    u: Tensor
    w: Tensor
    v: Tensor
    length: Tensor
    bend: Tensor
    curve: Tensor
