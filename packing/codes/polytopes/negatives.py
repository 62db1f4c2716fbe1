"""A spherical code with the negatives of its rows: twice the rows, opposite ones at distance 2."""

import torch
from torch import Tensor

from ..code import Code, rho_of_cosines


class WithNegatives(Code):
    """Rows c and -c: with coherence mu `rho = sqrt((1 - mu)/2)`.

    It lowers `rho` by `sqrt((1 + mu)/2)`, and pays where nothing else has as many rows.
    """

    def __init__(self, code: Code):
        """Double a code.

        Raises:
            ValueError: its rows do not lie on a sphere about the origin, or are opposite already.
        """
        mu = code.coherence
        if mu >= 1:
            raise ValueError(f"{code!r} may have opposite rows, which have the same negatives")
        origin = f"{code.origin} and its negatives"
        super().__init__(2 * code.num_rows, code.dim, rho_of_cosines(-1, mu), code.evidence, origin)
        self.code, self.cosines = code, (-1.0, mu)
        self.norm, self.integral = code.norm, code.integral

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        rows = self.code._rows(indices % self.code.num_rows, dtype)
        return torch.where((indices >= self.code.num_rows)[:, None], -rows, rows)
