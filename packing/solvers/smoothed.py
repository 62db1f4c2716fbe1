"""Log-sum-exp smoothing with continuation in beta, over the pairs that are wrong.

`F_beta(X) = (1/beta) log sum q_ij^beta + (1/beta) log sum q_ij^-beta`
(docs/explanation/mathematics.md) has the gradient

    dF/dx_i = 2 sum_j (w+_ij - w-_ij) (x_i - x_j) / q_ij

with softmax weights `w+-` of `+-beta log q_ij`. Each row takes the direction of its part of the
gradient and the length of its own worst violation: within a row the softmax's normaliser cancels,
and a row far from the closest pair of all still learns whom to leave. Sums run over the pairs
closer than the target and those farther than the far radius, the rest having no violation to
remove. `beta` grows from 2, where a row leaves all its neighbours, to 20, where it leaves the
nearest.
"""

import math

from torch import Tensor

from ..pairs import Forces, forces
from .geometry import Geometry
from .separation import stretched_

FIRST, LAST = 2.0, 20.0


class Smoothed:
    """All neighbours of a row act at first, the nearest at last."""

    reach = 1.0

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        """Softmax forces of the pairs closer than `near` or farther than `far`."""
        beta = FIRST * (LAST / FIRST) ** part
        near_q, far_q = near**2, far**2

        def power(log_q: Tensor, reference: float, exponent: float) -> Tensor:
            # (q/reference)^exponent / q, saturated at e^60: one neighbour decides long before
            log_w = (log_q * (exponent - 1)).sub_(exponent * math.log(reference))
            return log_w.clamp_max_(60).exp_()

        def weight(q: Tensor) -> Tensor:
            log_q = q.clamp_min(1e-12).log_()
            wrong = power(log_q, near_q, -beta).mul_(q <= near_q)
            if far_q < math.inf:
                wrong -= power(log_q, far_q, beta).mul_(q >= far_q)
            return wrong

        return forces(rows, weight, near=near_q, far=far_q)

    def step_(self, geometry: Geometry, rows: Tensor, force: Tensor, room: Tensor) -> Tensor:
        """The direction of the force, every row as long as its worst violation."""
        return stretched_(geometry, rows, force, room)
