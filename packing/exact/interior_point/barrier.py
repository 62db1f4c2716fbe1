"""What the interior-point methods for clouds and for spherical codes have in common.

Both maximise some `s` under constraints `slack >= 0`, for a batch of starts at once. Iterates stay
strictly inside. A Newton step on the conditions of first order, with `mu` in place of the zero for
`multiplier * slack`, is shortened to stay inside and to lower `-s - mu sum log(slack)`; its matrix
is shifted until it is positive definite, so that negative curvature does no harm. `mu` falls
superlinearly. Rules for `mu` and for the reset of multipliers: Waechter and Biegler, Math. Program.
106 (2006). One start of 16 points in the plane is thousands of tiny operations; a hundred starts
are the same number of operations.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

LAST = 1e-12
"""Last barrier parameter."""
STATIONARY = 1e-10
"""Largest entry of the Lagrangian's gradient at the end."""
ITERATIONS = 250
TO_BOUNDARY = 0.99
"""Part of the way to the nearest constraint that a step may go."""
LEAST = 1e-16
"""Least slack, as rounding may eat one of the size of the last `mu`."""
KEEP = 1e10
"""Multipliers are kept within this factor of `mu / slack`."""
SHIFTS = (1e-9, 1e-4, 8.0, 0.25)
"""Least shift, first one for negative curvature, growth until positive definite, decay after."""


class Lanes(ABC):
    """The starts still under way, one lane each: tensors have the lanes in front.

    Attributes:
        which: numbers of the starts, shape (B,).
        mu: barrier parameters, shape (B,).
        shift: last shifts of the Newton matrices, shape (B,).
        off: 0 on the diagonal and 1 off it, shape (n, n), for pair tensors of shape (B, n, n).
    """

    STATE: tuple[str, ...] = ("which", "mu", "shift")
    """Names of the tensors that `keep` thins out."""

    def __init__(self, mu: Tensor, num_points: int):
        """Begin at the barrier parameters `mu`."""
        self.own = torch.eye(num_points, dtype=mu.dtype)
        self.off = 1.0 - self.own
        self.which = torch.arange(len(mu))
        self.mu = mu.clone()
        self.shift = torch.zeros_like(mu)

    @abstractmethod
    def stationarity(self) -> Tensor:
        """Return the largest entry of the gradient of the Lagrangian, shape (B,)."""

    @abstractmethod
    def gap(self) -> Tensor:
        """Return the largest `|multiplier * slack - mu|`, shape (B,)."""

    @abstractmethod
    def advance(self) -> None:
        """Take one step in every lane."""

    @property
    def mu_pairs(self) -> Tensor:
        """`mu`, shape (B, 1, 1)."""
        return self.mu[:, None, None]

    def keep(self, which: Tensor) -> None:
        """Go on with some lanes only."""
        for name in self.STATE:
            setattr(self, name, getattr(self, name)[which])

    def lower_mu(self) -> Tensor:
        """Lower `mu` where its problem is solved; return which lanes are done."""
        stationary = self.stationarity()
        while True:
            gap = self.gap()
            solved = torch.maximum(stationary, gap) <= 10.0 * self.mu
            lower = solved & (self.mu > LAST)
            if not bool(lower.any()):
                break
            less = torch.minimum(0.2 * self.mu, self.mu**1.5).clamp_min(LAST)
            self.mu = torch.where(lower, less, self.mu)
        return (self.mu <= LAST) & (gap <= 10.0 * LAST) & (stationary <= STATIONARY)

    def factor(self, K: Tensor) -> Tensor:
        """Cholesky factors of `K` plus the least shift tried that makes it positive definite."""
        least, first, growth, decay = SHIFTS
        shift = (self.shift * decay).clamp_min(least)
        trial = K.clone()
        trial.diagonal(dim1=1, dim2=2).add_(shift[:, None])
        factor, info = torch.linalg.cholesky_ex(trial)
        failed = info.nonzero()[:, 0]
        while len(failed):
            shift[failed] = (growth * shift[failed]).clamp_min(first)
            trial = K[failed]
            trial.diagonal(dim1=1, dim2=2).add_(shift[failed][:, None])
            again, info = torch.linalg.cholesky_ex(trial)
            factor[failed] = again
            failed = failed[info != 0]
        self.shift = torch.where(shift > least, shift, 0.0)
        return factor

    def fall(self, multiplier: Tensor, step: Tensor) -> Tensor:
        """How far the multipliers of pairs can follow their step before one is zero, (B,)."""
        return (multiplier / (-step).clamp_min(1e-300) + self.own).amin(dim=(1, 2))


def run(lanes: Lanes, collect: Callable[[Tensor, Tensor, Tensor], None]) -> None:
    """Take steps until all lanes have ended.

    Args:
        lanes: at their starts.
        collect: called with the numbers of the starts that ended, a mask of their lanes, and
            which of them are done, not merely out of iterations.
    """
    for k in range(ITERATIONS):
        done = lanes.lower_mu()
        ended = done if k < ITERATIONS - 1 else torch.ones_like(done)
        if bool(ended.any()):
            collect(lanes.which[ended], ended, done[ended])
            if bool(ended.all()):
                break
            lanes.keep(~ended)
        lanes.advance()


def reset(multiplier: Tensor, goal: Tensor, slack: Tensor) -> Tensor:
    """Return a multiplier kept within `KEEP` of `mu / slack`."""
    middle = goal / slack
    return torch.minimum(torch.maximum(multiplier, middle / KEEP), middle * KEEP)


def chosen(which: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return `a` in the lanes that `which` names and `b` in the others."""
    return torch.where(which.reshape(-1, *[1] * (a.ndim - 1)), a, b)


def first_root(c: Tensor, p: Tensor, r: Tensor) -> Tensor:
    """Return the least t > 0 with `c + p t + r t^2 = 0`, c > 0, or infinity."""
    below = (p * p - 4.0 * r * c).sqrt() - p  # NaN without a real root
    return torch.where(below > 0.0, 2.0 * c / below, torch.inf)
