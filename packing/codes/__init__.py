"""Explicit configurations of known `rho`; `best_code(V, d)` picks the best one that applies."""

from packing.codes.aligned import Aligned, align, blend
from packing.codes.best import best_code
from packing.codes.code import Code
from packing.codes.inverse import LeastDimension, MostRows, least_dimension, most_rows
from packing.codes.polish import polish

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
