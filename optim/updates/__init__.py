"""Updates as pure functions of the momentum, of its shape, dtype and device."""

from optim.updates.row_norm import row_norm

__all__ = ["row_norm"]
