"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows."""

from packing.solution import FloorNotMet, Progress, Solution
from packing.solve import solve

__all__ = ["FloorNotMet", "Progress", "Solution", "solve"]
