"""Updates as pure functions of the momentum, of its shape, dtype and device."""

from optim.updates.hybrid import hybrid
from optim.updates.left_polar import left_polar
from optim.updates.right_polar import right_polar
from optim.updates.row_norm import row_norm
from optim.updates.row_separation import row_separation
from optim.updates.rowwise_adam import rowwise_adam
from optim.updates.sign import sign
from optim.updates.steepest import steepest

__all__ = [
    "hybrid",
    "left_polar",
    "right_polar",
    "row_norm",
    "row_separation",
    "rowwise_adam",
    "sign",
    "steepest",
]
