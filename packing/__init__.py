"""Row clouds: what is measured, what cannot be beaten, and solvers that separate rows.

The searches over few points need `rowsep[exact]` and are loaded when they are asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .measure import Measures, measure
from .solution import FloorNotMet, Progress, Solution
from .solve import solve
from .steepest import SteepestStep, steepest_step

if TYPE_CHECKING:
    from .point_sets.configuration import Configuration
    from .point_sets.minimal_diameter import minimal_diameter
    from .point_sets.spherical import SphericalCode, spherical_code

__all__ = [
    "Configuration",
    "FloorNotMet",
    "Measures",
    "Progress",
    "Solution",
    "SphericalCode",
    "SteepestStep",
    "measure",
    "minimal_diameter",
    "solve",
    "spherical_code",
    "steepest_step",
]

_FEW_POINTS = {
    "Configuration": "configuration",
    "minimal_diameter": "minimal_diameter",
    "SphericalCode": "spherical",
    "spherical_code": "spherical",
}


_ROOMS = ("baselines", "codes", "io", "metric", "point_sets")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _FEW_POINTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = importlib.import_module(f"{__name__}.point_sets.{_FEW_POINTS[name]}")
    return getattr(room, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
