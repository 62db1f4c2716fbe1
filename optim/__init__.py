"""Optimisers for language-model heads built on the packing solvers."""

from optim.base import HeadOptimizer
from optim.row_norm import RowNormM

__all__ = ["HeadOptimizer", "RowNormM"]
