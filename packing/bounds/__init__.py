"""What cannot be beaten: bounds on `rho` over all clouds, and on the steepest step.

`rowsep.packing.bounds.codes` and `rowsep.packing.bounds.delsarte` bound the cosines of spherical
codes, `rowsep.packing.bounds.semidefinite` bounds `rho` at a given alignment; they are imported by
name.
"""

from .ratio import (
    Bound,
    closed_form_bound,
    lifted_bound,
    planar_bound,
    radon_bound,
    rho_upper_bound,
    upper_bound,
    volume_bound,
)
from .step import (
    AlignmentBounds,
    StepBound,
    alignment_upper_bound,
    max_alignment_bounds,
    steepest_lower_bound,
    steepest_upper_bound,
)

__all__ = [
    "AlignmentBounds",
    "Bound",
    "StepBound",
    "alignment_upper_bound",
    "closed_form_bound",
    "lifted_bound",
    "max_alignment_bounds",
    "planar_bound",
    "radon_bound",
    "rho_upper_bound",
    "steepest_lower_bound",
    "steepest_upper_bound",
    "upper_bound",
    "volume_bound",
]
