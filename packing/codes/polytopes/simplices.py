"""Regular simplices of one edge about one centre, in orthogonal subspaces.

m simplices with `p_1 .. p_m` vertices take `sum (p_i - 1) = V - m` dimensions. With edge D their
squared circumradii are `(D^2/2)(1 - 1/p_i)`, so points of two of them are at the squared distance
`D^2 (1 - (1/p_i + 1/p_j)/2)`:

    rho^2 = 1 - (1/p + 1/p')/2,    p, p' the two smallest.

One simplex is the optimum for V <= d+1, two are for V = d+2 (Schuette, Math. Ann. 150, 1963).
"""

import math

import torch
from torch import Tensor

from ... import checks
from ..code import Code, rho_of_cosines


class Simplices(Code):
    """`num_rows` points of R^dim as `max(1, num_rows - dim)` simplices of nearly equal size."""

    def __init__(self, num_rows: int, dim: int):
        """Share the rows out.

        Raises:
            TypeError, ValueError: not integers, or more than `2 dim` rows.
        """
        num_rows = checks.check_count(num_rows, "num_rows", 1)
        dim = checks.check_count(dim, "dim", 1)
        if num_rows > 2 * dim:
            raise ValueError(f"num_rows is {num_rows}, more than two for each of {dim} dimensions")
        self.count = max(1, num_rows - dim)
        small, extra = divmod(num_rows, self.count)
        self._sizes = torch.tensor([small] * (self.count - extra) + [small + 1] * extra)
        least = sorted(self._sizes.tolist())[:2]
        rho = math.sqrt(1 - sum(1 / p for p in least) / 2) if self.count > 1 else 1.0
        shape = f"{self.count} regular simplices in orthogonal subspaces"
        origin = "a regular simplex" if self.count == 1 else shape
        super().__init__(num_rows, dim, rho, "exact", origin)
        self.norm = math.sqrt(1 - 1 / float(self._sizes.max())) if num_rows > 1 else 1.0
        if extra == 0 and num_rows > 1:
            within = -1 / (small - 1)
            self.cosines = (within, within if self.count == 1 else 0.0)

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        sizes = self._sizes.to(indices.device)
        ends = sizes.cumsum(0)
        which = torch.searchsorted(ends, indices, right=True)
        starts = ends - sizes
        columns = torch.arange(self.dim, device=indices.device)
        # the columns of simplex i begin where its rows do, less the i columns saved so far
        first = (starts - torch.arange(self.count, device=indices.device))[which]
        inside = columns - first[:, None] + 1
        rows = helmert(inside, (indices - starts[which])[:, None], dtype)
        return rows.masked_fill_((inside < 1) | (inside >= sizes[which][:, None]), 0)


class Orthoplex(Code):
    """The 2d points `+-e_k`, of largest cosine 0 (Rankin 1955), which no 2d unit vectors undercut.

    As a row cloud it is poor, `rho = 1/sqrt 2`: antipodes are twice as far as they need to be.
    """

    integral = True
    cosines = (-1.0, 0.0)

    def __init__(self, dim: int):
        """Take R^dim.

        Raises:
            TypeError, ValueError: not an integer, or below 2.
        """
        dim = checks.check_count(dim, "dim", 2)
        super().__init__(2 * dim, dim, rho_of_cosines(-1.0, 0.0), "exact", "the orthoplex")

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        axis, sign = indices // 2, 1 - 2 * (indices % 2)
        rows = torch.zeros((len(indices), self.dim), dtype=dtype, device=indices.device)
        return rows.scatter_(1, axis[:, None], sign[:, None].to(dtype))


class Midpoints(Code):
    """The edge midpoints of the regular simplex of R^d: d(d+1)/2 points, `rho = 1/sqrt 2`.

    A two-distance set; for d = 4 (the Petersen graph) it attains the bound on `rho`.
    """

    def __init__(self, dim: int):
        """Take R^dim.

        Raises:
            TypeError, ValueError: not an integer, or below 3.
        """
        dim = checks.check_count(dim, "dim", 3)
        n = dim + 1
        rows = n * dim // 2
        self.cosines = -2 / (n - 2), (n - 4) / (2 * (n - 2))
        rho = rho_of_cosines(*self.cosines)
        origin = "the edge midpoints of a regular simplex"
        super().__init__(rows, dim, rho, "exact", origin)
        self.norm = math.sqrt(2 - 4 / n)

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        # rows j(j-1)/2 .. j(j-1)/2 + j-1 are the edges from j to 0 .. j-1
        j = ((1 + (1 + 8 * indices.double()).sqrt()) / 2).long()
        i = indices - j * (j - 1) // 2
        columns = torch.arange(1, self.dim + 1, device=indices.device)
        return helmert(columns, i[:, None], dtype) + helmert(columns, j[:, None], dtype)


def helmert(column: Tensor, vertex: Tensor, dtype: torch.dtype) -> Tensor:
    """Return coordinate `column` >= 1 of a vertex of the regular simplex of edge `sqrt 2`.

    Column k of the Helmert matrix is `(1, .., 1, -k, 0, .., 0) / sqrt(k(k+1))` with k ones.
    """
    k = column.clamp_min(1).to(dtype)
    entry = torch.where(vertex < column, 1.0, torch.where(vertex == column, -k, 0.0))
    return entry / (k * (k + 1)).sqrt()
