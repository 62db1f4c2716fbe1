"""Spherical codes from many starts at once: an interior-point method on a product of spheres.

    maximise  s   over unit vectors x_1 .. x_n of R^d  and  s
    subject to  q_ij - s >= 0  for i < j,       q_ij = ||x_i - x_j||^2 = 2 - 2 <x_i, x_j>,

so that the largest cosine is `1 - s/2`. With multipliers `u_ij` the conditions of first order read

    sum_{i<j} u_ij = 1,      sum_j u_ij x_j = nu_i x_i,      u_ij (q_ij - s) = 0;

`nu_i`, of either sign, is the multiplier of `||x_i||^2 = 1`. The method is that of barrier.py. A
step is one in the tangent spaces, each with an orthonormal basis, and every vector is divided by
its norm at the end. On the sphere the second derivatives of `sum u_ij q_ij` are those in space,
`-2 u_ij` for a pair, and `2 nu_i` for each vector (Absil, Mahony and Sepulchre, Optimization
Algorithms on Matrix Manifolds, 2008, 5.5).

Coordinates come first, x has shape (B, d, n), as in interior_point.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .barrier import LEAST, TO_BOUNDARY, Lanes, chosen, first_root, reset, run
from .clouds import squared_distances


class Codes(NamedTuple):
    """Where the starts of a batch ended; all float64."""

    points: Tensor
    """Unit vectors, shape (B, n, d)."""
    separation: Tensor
    """`s` carried on to `mu = 0`, shape (B,)."""
    near: Tensor
    """Multipliers `u`, shape (B, n, n), symmetric, zero diagonal."""
    converged: Tensor
    """Bool, shape (B,): whether the conditions of first order are met."""


@torch.no_grad()
def solve_codes(starts: Tensor, mu: Tensor, margin: float) -> Codes:
    """Run every start to a local optimum.

    Args:
        starts: shape (B, n, d), float64, n >= 2, d >= 2; no row zero, no two in one direction.
        mu: first barrier parameters, shape (B,); with small ones the optimum lies near the start.
        margin: `s` begins at `1 - 10 margin` of the least squared distance; small near a known
            optimum, at most 0.05.

    Returns:
        The optima in the order of the starts.
    """
    x = starts.transpose(1, 2)
    lanes = _Codes(x / x.norm(dim=1, keepdim=True), mu, margin)
    size, n, _ = starts.shape
    out = Codes(
        points=torch.zeros_like(starts),
        separation=torch.zeros_like(mu),
        near=starts.new_zeros(size, n, n),
        converged=torch.zeros(size, dtype=torch.bool),
    )

    def collect(where: Tensor, ended: Tensor, done: Tensor) -> None:
        out.points[where] = lanes.x[ended].transpose(1, 2)
        out.separation[where] = lanes.limit()[ended]
        out.near[where] = lanes.u[ended]
        out.converged[where] = done

    run(lanes, collect)
    return out


class _Codes(Lanes):
    """Pair tensors have shape (B, n, n) and slack 1 on the diagonal."""

    STATE = (*Lanes.STATE, "x", "s", "u", "near", "basis", "across")

    def __init__(self, x: Tensor, mu: Tensor, margin: float):
        super().__init__(mu, x.shape[2])
        least = (squared_distances(x) + 4.0 * self.own).amin(dim=(1, 2))
        self.move_to(x, (1.0 - 10.0 * margin) * least)
        self.u = self.off * self.mu_pairs / self.near

    def move_to(self, x: Tensor, s: Tensor) -> None:
        """Take a point; `across[:, a, i, j]` is x_j along the basis vector a at x_i."""
        self.x, self.s = x, s
        self.near = self.slack(x, s).clamp_min_(LEAST)
        self.basis = tangent_basis(x)
        self.across = torch.einsum("bkai,bkj->baij", self.basis, x)

    def slack(self, x: Tensor, s: Tensor) -> Tensor:
        return (squared_distances(x) - s[:, None, None]).mul_(self.off).add_(self.own)

    def limit(self) -> Tensor:
        """`s` at `mu = 0` to first order: each active constraint holds it back by `mu`."""
        held = torch.where(self.u > self.near, self.u * self.near, 0.0)
        return self.s + 0.5 * held.sum(dim=(1, 2))

    def gradient(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient of the Lagrangian in the tangent bases, shape (B, d-1, n), and in s."""
        return 2.0 * (u[:, None] * self.across).sum(dim=3), 0.5 * u.sum(dim=(1, 2)) - 1.0

    def stationarity(self) -> Tensor:
        grad_x, grad_s = self.gradient(self.u)
        return torch.maximum(grad_x.abs().amax(dim=(1, 2)), grad_s.abs())

    def gap(self) -> Tensor:
        return (self.u * self.near - self.mu_pairs * self.off).abs().amax(dim=(1, 2))

    def advance(self) -> None:
        factor = self.factor(self.newton_matrix())
        first = self.newton_step(factor, torch.zeros_like(self.near))
        # where the sphere bends the step short, aim again at where the slacks will be
        second = self.newton_step(factor, first.bend)
        better = second.length > first.length
        step = _Step(*(chosen(better, a, b) for a, b in zip(second, first, strict=True)))
        goal = self.mu_pairs * self.off
        dual = (TO_BOUNDARY * self.fall(self.u, step.u)).clamp_max_(1.0)
        u = self.u + dual[:, None, None] * step.u
        self.move_to(self.along(step.x, step.length), self.s + step.length * step.s)
        self.u = reset(u, goal, self.near)

    def along(self, dx: Tensor, t: Tensor) -> Tensor:
        """The vectors after part t of a tangent step, back on the sphere."""
        moved = self.x + t[:, None, None] * dx
        return moved / moved.norm(dim=1, keepdim=True)

    def newton_step(self, factor: Tensor, bend: Tensor) -> "_Step":
        """Solve for a step at whose end the slacks are expected to be bent by `bend`."""
        B, _, n = self.x.shape
        goal = self.mu_pairs * self.off
        u = (goal - self.u * bend) / self.near
        grad_x, grad_s = self.gradient(u)
        right = -torch.cat([grad_x.reshape(B, -1), grad_s[:, None]], dim=1)
        step = torch.cholesky_solve(right[..., None], factor)[..., 0]
        inside, ds = step[:, :-1].reshape(B, -1, n), step[:, -1]

        part = (self.across * inside[..., None]).sum(dim=1)
        dnear = -2.0 * (part + part.transpose(1, 2)) - ds[:, None, None] * self.off
        goal_x, goal_s = self.gradient(goal / self.near)
        slope = (goal_x * inside).sum(dim=(1, 2)) + goal_s * ds
        dx = torch.einsum("bkai,bai->bki", self.basis, inside)
        whole = self.slack(self.along(dx, torch.ones_like(ds)), self.s + ds)
        bent = whole - self.near - dnear
        return _Step(
            x=dx,
            s=ds,
            u=u - self.u * dnear / self.near - self.u,
            length=self.step_length(dx, ds, slope, dnear, bent),
            bend=bent,
        )

    def newton_matrix(self) -> Tensor:
        """Second derivatives of the Lagrangian plus those of the slacks, in the tangent bases."""
        B, d, n = self.x.shape
        soft = self.u / self.near
        normal = 2.0 * (self.u * (self.x.transpose(1, 2) @ self.x)).sum(dim=2)
        size = (d - 1) * n
        K = self.x.new_zeros(B, size + 1, size + 1)
        for a in range(d - 1):
            rows = slice(a * n, (a + 1) * n)
            scaled = 4.0 * soft * self.across[:, a]
            for b in range(a + 1):
                turn = self.basis[:, :, a].transpose(1, 2) @ self.basis[:, :, b]
                block = scaled * self.across[:, b].transpose(1, 2) + 2.0 * self.u * turn
                block.diagonal(dim1=1, dim2=2).add_((scaled * self.across[:, b]).sum(dim=2))
                if a == b:
                    block.diagonal(dim1=1, dim2=2).sub_(normal)
                columns = slice(b * n, (b + 1) * n)
                K[:, rows, columns] = block
                if a != b:
                    K[:, columns, rows] = block.transpose(1, 2)
        cross = 2.0 * (soft[:, None] * self.across).sum(dim=3).reshape(B, size)
        K[:, :-1, -1] = cross
        K[:, -1, :-1] = cross
        K[:, -1, -1] = 0.5 * soft.sum(dim=(1, 2))
        return K

    def step_length(
        self, dx: Tensor, ds: Tensor, slope: Tensor, dnear: Tensor, bend: Tensor
    ) -> Tensor:
        """Length that stays inside and lowers the barrier function, shape (B,)."""
        # slacks are near + t dnear + t^2 bend up to third order
        t = first_root(TO_BOUNDARY * self.near, dnear, bend).amin(dim=(1, 2)).clamp_max(1.0)
        for _ in range(15):
            near = self.slack(self.along(dx, t), self.s + t * ds) / self.near
            inside = near.amin(dim=(1, 2)) > 0.5 * (1.0 - TO_BOUNDARY)
            logs = 0.5 * near.clamp_min_(LEAST).log_().sum(dim=(1, 2))
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
    length: Tensor
    bend: Tensor


def tangent_basis(x: Tensor) -> Tensor:
    """Return orthonormal bases of the tangent spaces at unit vectors, by Householder reflections.

    Args:
        x: shape (B, d, n).

    Returns:
        Shape (B, d, d-1, n): columns 2 to d of the reflection that takes x_i to `-+e_1`.
    """
    d = x.shape[1]
    normal = x.clone()
    normal[:, 0] += torch.where(x[:, 0] < 0.0, -1.0, 1.0)
    normal = normal / normal.norm(dim=1, keepdim=True)
    one = torch.eye(d, dtype=x.dtype)[None, :, 1:, None]
    return one - 2.0 * normal[:, :, None] * normal[:, None, 1:]
