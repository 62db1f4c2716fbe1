"""Explicit configurations of known `rho`; `best_code(V, d)` picks the best one that applies."""

from .aligned import Aligned, align, blend
from .best import best_code
from .code import Code
from .inverse import LeastDimension, MostRows, least_dimension, most_rows
from .polish import polish

__all__ = [
    "Aligned",
    "Code",
    "LeastDimension",
    "MostRows",
    "align",
    "best_code",
    "blend",
    "least_dimension",
    "most_rows",
    "polish",
]
