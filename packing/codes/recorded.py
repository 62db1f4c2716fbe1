"""The configurations of the record table: few points in few dimensions, found by search."""

from torch import Tensor

from ..point_sets.records import best_configuration, found_ratios
from .code import Held


class Recorded(Held):
    """The stored configuration of n points of R^d, centred; `rho` is certified to 27 digits.

    Where a published value is better than the one stored
    (`rowsep.packing.point_sets.records.records` says so), its points are not known here.
    """

    def __init__(self, num_rows: int, dim: int):
        """Take n and d.

        Raises:
            KeyError: none is stored.
        """
        rho = float(found_ratios()[dim, num_rows]) ** -0.5
        origin = f"the record of {num_rows} points in R^{dim} (point_sets.records)"
        super().__init__(num_rows, dim, rho, "proved", origin)

    def _build(self) -> Tensor:
        points = best_configuration(self.num_rows, self.dim).points
        rows = points - points.mean(dim=0)
        return rows / rows.norm(dim=1).max()
