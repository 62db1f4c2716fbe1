"""The problem of spherical codes, as the search over starts and Newton's method see it.

The largest cosine of n unit vectors is least where their least squared distance, `2 - 2 cos`, is
largest. The vectors with the centre of the sphere as one more point are a cloud in which the pairs
with the centre are all at distance 1, so that the conditions of an optimum are those of kkt.py with
`far` these pairs, multipliers of either sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from .interior_point.spheres import solve_codes
from .kkt import NEAR, Guess, active, exactly
from .problem import Ends
from .starts import Cloud

MARGIN = 0.05


@dataclass(frozen=True)
class Sphere:
    """Least largest cosine of `num_points` unit vectors of R^dim.

    `ratio_squared` is that of the diameter of the sphere to the least distance, `2/(1 - cos)`.
    """

    num_points: int
    dim: int

    name: ClassVar[str] = "sphere"
    kinds: ClassVar[tuple[str, ...]] = ("gaussian", "symmetric")

    def ends(self, clouds: Sequence[Cloud], mu: Sequence[float]) -> Ends:
        """Return the local optima that clouds, projected to the sphere, run to."""
        first = torch.tensor(mu, dtype=torch.float64)
        found = solve_codes(torch.from_numpy(np.stack(clouds)), first, MARGIN)
        return Ends(found.points, 4.0 / found.separation, found.converged)

    def guess(self, points: Cloud) -> Guess:
        """Return the optimum near unit vectors with the centre as its last point."""
        mu = torch.tensor([NEAR], dtype=torch.float64)
        found = solve_codes(torch.from_numpy(points)[None], mu, NEAR)
        x, u = found.points[0].numpy(), found.near[0].numpy()
        radii = np.stack([np.arange(len(x)), np.full(len(x), len(x))], axis=1)
        # the pull along a radius of the pairs at its end
        pull = (u * (1.0 - x @ x.T)).sum(axis=1)
        return Guess(
            x=np.concatenate([x, np.zeros((1, self.dim))]),
            s=float(found.separation[0]),
            near=active(u),
            far=(radii, exactly(pull)),
            centred=True,
        )
