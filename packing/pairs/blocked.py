"""All pairs in tiles, by plain tensor operations on any device, in O(V d) memory."""

from packing.pairs.search import extremes
from packing.pairs.smooth import soft_extremes
from packing.pairs.summation import forces

__all__ = ["extremes", "forces", "soft_extremes"]
