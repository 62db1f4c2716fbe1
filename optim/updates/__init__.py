"""Updates as pure functions of the momentum, of its shape, dtype and device."""

from .hybrid import hybrid
from .left_polar import left_polar
from .normuon import normuon
from .right_polar import right_polar
from .row_norm import row_norm
from .row_separation import row_separation
from .rowwise_adam import rowwise_adam
from .sign import sign
from .steepest import steepest

__all__ = [
    "hybrid",
    "left_polar",
    "normuon",
    "right_polar",
    "row_norm",
    "row_separation",
    "rowwise_adam",
    "sign",
    "steepest",
]
