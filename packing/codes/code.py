"""What every explicit configuration is: points of known `rho`, any of which can be generated alone.

For rows on one sphere with cosines between `c_min` and `c_max`, the squared distance of unit rows
is `2 - 2c`, so

    rho >= sqrt((1 - c_max) / (1 - c_min)).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .. import checks, cloud
from ..bounds import rho_upper_bound

BLOCK_ENTRIES = 1 << 22
"""Entries generated at a time; temporaries are some multiples of it."""
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)


class Code(ABC):
    """A configuration of `num_rows` points of R^dim.

    Attributes:
        num_rows: V.
        dim: d.
        rho: separation over diameter, at least; exactly where `evidence` says so. 0.0 for one row,
            as in `rowsep.packing.cloud.ratio`.
        evidence: "exact", "proved" (a lower bound by a theorem), "measured" (on all pairs) or
            "estimate" (no guarantee).
        origin: where the configuration comes from, in a sentence.
        cosines: lower and upper bound on the cosine of two different rows if all rows lie on one
            sphere about the origin, else None.
        norm: norm of the rows before `rows` divides by it: 1, or the root of an integer where
            the entries are integers. Rows that are not on a sphere have norms of at most 1 after.
        integral: whether entries before that are integers, of some rows at least.
    """

    cosines: tuple[float, float] | None = None
    norm: float = 1.0
    integral: bool = False

    def __init__(self, num_rows: int, dim: int, rho: float, evidence: str, origin: str):
        """Hold the figures."""
        self.num_rows = num_rows
        self.dim = dim
        self.rho = rho if num_rows > 1 else 0.0
        self.evidence = evidence
        self.origin = origin

    @property
    def bound(self) -> float:
        """What `rho` no configuration of as many points in this dimension exceeds."""
        return rho_upper_bound(self.num_rows, self.dim)

    @property
    def coherence(self) -> float:
        """Largest absolute cosine of two different rows, at most.

        Raises:
            ValueError: the rows do not lie on a sphere about the origin.
        """
        if self.cosines is None:
            raise ValueError(f"{self!r} is not a spherical code: its rows differ in norm")
        return max(abs(c) for c in self.cosines)

    def rows(
        self,
        indices: Tensor | np.ndarray | Sequence[int] | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """Return rows, O(d) or O(d log d) each, without generating any others.

        Args:
            indices: shape (n,), integers between 0 and V - 1, in any order: a tensor, an array, a
                list or a range; all rows by default.
            dtype: a floating dtype for rows scaled to norm 1; a signed integer one for the integer
                entries (signs, for most) of a code that has them, of norm `norm`.
            device: of the result; that of `indices` by default.

        Returns:
            Shape (n, d). Rows that differ by less than the rounding of `dtype` come out equal.

        Raises:
            TypeError: an index is not an integer, `dtype` is no floating or signed integer dtype,
                or the code has no integer entries and they are asked for.
            ValueError: an index is out of range, a row has entries that the integer dtype cannot
                hold, or `device` is meta.
        """
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype is {dtype!r}, expected one of torch, torch.float32 say")
        chosen = self._chosen(indices, device)
        if not dtype.is_floating_point:
            self._check_integers(chosen, dtype)
        working = dtype if dtype in (*INTEGERS, torch.float64) else torch.float32
        out = torch.empty((len(chosen), self.dim), dtype=dtype, device=chosen.device)
        size = max(1, BLOCK_ENTRIES // self.dim)
        for start in range(0, len(chosen), size):
            block = self._rows(chosen[start : start + size], working)
            out[start : start + size] = block / self.norm if dtype.is_floating_point else block
        return out

    def measured_rho(self) -> float:
        """Return `rho` of all rows in float64, exact to rounding; two passes over all pairs."""
        return cloud.ratio(self.rows(dtype=torch.float64)).value

    @abstractmethod
    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        """Rows of norm `norm`, shape (n, d), on the device of `indices`."""

    def __repr__(self) -> str:
        """Return size and origin."""
        return f"<{self.num_rows} x {self.dim}, rho {self.rho:.6f} {self.evidence}: {self.origin}>"

    def _chosen(self, indices, device) -> Tensor:
        if indices is None:
            chosen = torch.arange(self.num_rows, device=device)
        else:
            chosen = checks.check_indices(indices, self.num_rows).to(device)
        if chosen.is_meta:
            raise ValueError("device is meta, where rows have no entries; use a real one")
        return chosen

    def _check_integers(self, indices: Tensor, dtype: torch.dtype) -> None:
        """Check that `dtype` holds the integer entries of the rows `indices`."""
        if dtype not in INTEGERS or not self.integral:
            raise TypeError(
                f"dtype is {dtype}, but {self!r} has no integer entries; use a floating dtype"
                if dtype in INTEGERS
                else f"dtype is {dtype}, expected a floating or a signed integer dtype"
            )


class Part(Code):
    """The first `num_rows` rows of a code, with columns of zeros up to `dim`.

    Neither lowers `rho`: leaving out rows lowers no separation and raises no diameter.
    """

    def __init__(self, code: Code, num_rows: int, dim: int):
        """Cut `code` to `num_rows` rows and pad it to `dim` columns.

        Raises:
            TypeError, ValueError: `code` has fewer rows or more columns.
        """
        num_rows = checks.check_count(num_rows, "num_rows", 1)
        dim = checks.check_count(dim, "dim", code.dim)
        if num_rows > code.num_rows:
            raise ValueError(f"num_rows is {num_rows}, but {code!r} has {code.num_rows}")
        steps = [code.origin]
        if num_rows < code.num_rows:
            steps.append(f"the first {num_rows} of its {code.num_rows} rows")
        if dim > code.dim:
            steps.append(f"{dim - code.dim} columns of zeros added")
        whole = num_rows == code.num_rows or code.evidence == "estimate"
        evidence = code.evidence if whole else "proved"
        super().__init__(num_rows, dim, code.rho, evidence, ", ".join(steps))
        self.code, self.cosines = code, code.cosines
        self.norm, self.integral = code.norm, code.integral

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        rows = self.code._rows(indices, dtype)
        return functional.pad(rows, (0, self.dim - self.code.dim))

    def _check_integers(self, indices: Tensor, dtype: torch.dtype) -> None:
        self.code._check_integers(indices, dtype)


class Held(Code):
    """A code whose rows are all held in memory once any are asked for."""

    @abstractmethod
    def _build(self) -> Tensor:
        """All rows, of norm `norm`, shape (V, d)."""

    @cached_property
    def _stored(self) -> Tensor:
        return self._build()

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        return self._stored.to(indices.device, dtype)[indices]


class Stored(Held):
    """Rows of the caller, `rho` measured on all pairs."""

    def __init__(self, rows: Tensor, origin: str):
        """Hold `rows`, shape (V, d), V >= 2, and measure them."""
        checks.check_cloud(rows, "rows")
        checks.check_count(len(rows), "number of rows", 2)
        scaled = rows.double() / rows.double().norm(dim=1).max()
        rho = cloud.ratio(scaled).value
        super().__init__(len(rows), rows.shape[1], rho, "measured", origin)
        self._scaled = scaled

    def _build(self) -> Tensor:
        return self._scaled


def rho_of_cosines(least: float, largest: float) -> float:
    """Return `sqrt((1 - largest) / (1 - least))`, 0.0 for a largest cosine of 1 or more."""
    return math.sqrt(max(0.0, 1.0 - largest) / (1.0 - least))
