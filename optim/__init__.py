"""Optimisers for language-model heads built on the packing solvers."""

from .heads.base import HeadOptimizer
from .heads.normuon import NorMuon
from .heads.polar_grad import HybridPolarGradM, LeftPolarGradM, RightPolarGradM
from .heads.row_norm import RowNormM
from .heads.row_separation import RowSeparation, StepReport
from .heads.rowwise_adam import BoundedReport, RowwiseAdam
from .heads.signum import Signum
from .heads.steepest_descent import SteepestDescent
from .hidden_metric import HiddenMetric
from .input_gradient_rank import limit_input_gradient_rank
from .model.combined import Combined
from .model.for_language_model import for_language_model
from .model.groups import Assignment, assign_roles
from .model.stacked import Stacked
from .normalized_head import NormalizedHead
from .pace import Pace
from .spectral_cap import SpectralCap

__all__ = [
    "Assignment",
    "BoundedReport",
    "Combined",
    "HeadOptimizer",
    "HiddenMetric",
    "HybridPolarGradM",
    "LeftPolarGradM",
    "NorMuon",
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
