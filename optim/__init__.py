"""Optimisers for language-model heads built on the packing solvers."""

from optim.base import HeadOptimizer
from optim.polar_grad import HybridPolarGradM, LeftPolarGradM, RightPolarGradM
from optim.row_norm import RowNormM
from optim.row_separation import RowSeparation, StepReport
from optim.signum import Signum
from optim.steepest_descent import SteepestDescent

__all__ = [
    "HeadOptimizer",
    "HybridPolarGradM",
    "LeftPolarGradM",
    "RightPolarGradM",
    "RowNormM",
    "RowSeparation",
    "Signum",
    "SteepestDescent",
    "StepReport",
]
