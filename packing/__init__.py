"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows."""

from packing.solution import FloorNotMet, Progress, Solution
from packing.solve import solve
from packing.steepest import SteepestStep, steepest_step

__all__ = ["FloorNotMet", "Progress", "Solution", "SteepestStep", "solve", "steepest_step"]
