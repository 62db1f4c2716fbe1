"""What a solver visits late in a run: the cloud that gradient passes are timed on."""

import math
from typing import NamedTuple

from torch import Tensor

from rowsep.packing.pairs import Forces
from rowsep.packing.solvers.geometry import Shell
from rowsep.packing.solvers.projected_gradient import ProjectedGradient
from rowsep.packing.solvers.separation import Agreement, Limits, Run, separate


class Iterate(NamedTuple):
    """Rows that projected gradient visited, and what counted as wrong there."""

    rows: Tensor
    """Shape (V, d)."""
    near: float
    """Pairs closer than this act, a distance."""
    far: float
    """Pairs farther than this act, a distance."""


class _Recorder(ProjectedGradient):
    last: Iterate

    def visit(self, rows: Tensor, near: float, far: float, part: float) -> Forces:
        self.last = Iterate(rows, near, far)
        return super().visit(rows, near, far, part)


def late_iterate(A: Tensor, passes: int, floor: float = 0.5) -> Iterate:
    """The iterate of the last of some passes of projected gradient.

    Args:
        A: momentum, shape (V, d), centred.
        passes: all-pairs passes, at least 1.
        floor: least alignment.
    """
    recorder, geometry = _Recorder(), Shell(A)
    run = Run(geometry.start(), math.inf)
    agreement = Agreement(floor, floor, floor)
    separate(geometry, floor, recorder, run, Limits(passes), lambda *_: agreement)
    return recorder.last
