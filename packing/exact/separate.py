"""Row separation of a small momentum: the best of many starts above the floor.

    maximise  delta(S)  subject to  D(S) <= 1,  agreement(A, S) >= floor

Starts are random clouds drawn towards one that is surely above the floor, the steepest step or,
under the cosine, the momentum itself.
"""

import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .floors import Cosine, Decrease, Problem, unit_diameter
from .optimality import DENOMINATOR, Optimality, refine
from .search import Found, search
from .starts import Cloud


@dataclass(frozen=True)
class Separated:
    """A local optimum above a floor."""

    rows: Tensor
    """Shape (n, d), float64, diameter 1."""
    optimality: Optimality | None
    """None if the floor leaves no room to search."""
    found: Found
    stop: str
    momentum: Tensor
    """Centred, float64."""
    measure: str
    anchor: Cloud

    def raised(self, floor: float) -> "Separated":
        """Return the optimum near this one above a slightly higher floor."""
        problem = _problem(self.momentum, self.measure, floor, self.anchor)
        if not problem.above(self.anchor):
            return replace(self, optimality=None)
        rows, optimality = _solved(self.rows.numpy(), problem)
        return replace(self, rows=rows, optimality=optimality)


def separate_exactly(
    A: Tensor,
    measure: str,
    floor: float,
    towards: Tensor,
    *,
    starts: int,
    seed: int,
    deadline: float | None,
    state: Tensor | None,
) -> Separated:
    """Return the best of many local optima.

    Args:
        A: centred momentum, shape (n, d), not zero.
        measure: "decrease" or "cosine".
        floor: least agreement.
        towards: the cloud of largest agreement, shape (n, d), that starts are drawn to.
        starts: rounded up to batches of 64.
        seed: of the starts.
        deadline: on the clock of `time.monotonic`.
        state: a cloud to perturb, shape (n, d), or None.

    Returns:
        The optimum, or the cloud of largest agreement if the floor is not below that.
    """
    A = A.detach().double().cpu()
    anchor = unit_diameter(towards.detach().double().cpu().numpy())
    problem = _problem(A, measure, floor, anchor)
    made = Separated(
        torch.from_numpy(anchor),
        None,
        Found(),
        "no update has more agreement with the momentum",
        A,
        measure,
        anchor,
    )
    if not problem.above(anchor):
        return made
    found = search(
        problem,
        starts=starts,
        seed=seed,
        time_limit=None if deadline is None else max(0.0, deadline - time.monotonic()),
        given=[] if state is None else [state.detach().double().cpu().numpy()],
    )
    made = replace(made, found=found, stop=found.summary())
    if found.points is None:
        return made
    rows, optimality = _solved(found.points, problem)
    return replace(made, rows=rows, optimality=optimality)


def _problem(A: Tensor, measure: str, floor: float, anchor: Cloud) -> Problem:
    kind = Cosine if measure == "cosine" else Decrease
    num_rows, dim = A.shape
    return Problem(num_rows, dim, kind(A, floor), anchor)


def _solved(points: Cloud, problem: Problem) -> tuple[Tensor, Optimality]:
    """Return the optimum near a cloud, rounded to float64, and in what sense it is one."""
    coordinates, optimality = refine(points, problem)
    rows = [[c / DENOMINATOR for c in point] for point in coordinates]
    return torch.tensor(rows, dtype=torch.float64), optimality
