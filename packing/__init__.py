"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows."""

from packing.configuration import Configuration
from packing.minimal import minimal_diameter
from packing.solution import FloorNotMet, Progress, Solution
from packing.solve import solve
from packing.spherical import SphericalCode, spherical_code
from packing.steepest import SteepestStep, steepest_step

__all__ = [
    "Configuration",
    "FloorNotMet",
    "Progress",
    "Solution",
    "SphericalCode",
    "SteepestStep",
    "minimal_diameter",
    "solve",
    "spherical_code",
    "steepest_step",
]
