"""All pairs in tiles, by plain tensor operations on any device, in O(V d) memory."""

from .search import extremes
from .smooth import soft_extremes
from .summation import forces

__all__ = ["extremes", "forces", "soft_extremes"]
