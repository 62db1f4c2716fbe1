"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows."""

from packing.configuration import Configuration
from packing.minimal import minimal_diameter
from packing.solution import FloorNotMet, Progress, Solution
from packing.solve import solve

__all__ = [
    "Configuration",
    "FloorNotMet",
    "Progress",
    "Solution",
    "minimal_diameter",
    "solve",
]
