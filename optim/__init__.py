"""Optimisers for language-model heads built on the packing solvers."""

from optim.base import HeadOptimizer
from optim.combined import Combined
from optim.for_language_model import for_language_model
from optim.groups import Assignment, assign_roles
from optim.input_gradient_rank import limit_input_gradient_rank
from optim.normalized_head import NormalizedHead
from optim.pace import Pace
from optim.polar_grad import HybridPolarGradM, LeftPolarGradM, RightPolarGradM
from optim.row_norm import RowNormM
from optim.row_separation import RowSeparation, StepReport
from optim.rowwise_adam import BoundedReport, RowwiseAdam
from optim.signum import Signum
from optim.spectral_cap import SpectralCap
from optim.stacked import Stacked
from optim.steepest_descent import SteepestDescent

__all__ = [
    "Assignment",
    "BoundedReport",
    "Combined",
    "HeadOptimizer",
    "HybridPolarGradM",
    "LeftPolarGradM",
    "NormalizedHead",
    "Pace",
    "RightPolarGradM",
    "RowNormM",
    "RowSeparation",
    "RowwiseAdam",
    "Signum",
    "SpectralCap",
    "Stacked",
    "SteepestDescent",
    "StepReport",
    "assign_roles",
    "for_language_model",
    "limit_input_gradient_rank",
]
