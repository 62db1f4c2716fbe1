"""Minimal vectors of E8, of the Barnes-Wall lattice in R^16 and of the Leech lattice.

One of each pair of opposite ones is kept: all cosines are within +-1/2, so `rho = 1/sqrt 3`. In the
coordinates of J. H. Conway and N. J. A. Sloane, Sphere Packings, Lattices and Groups, 3rd ed.,
chapters 4 and 5 (construction B), they are

    (+-2, +-2, 0, ..)                   any two places
    (+-1 at eight places, 0, ..)        the support of a word of weight 8, an even number of -1
    (-+3, +-1, .., +-1)/2               Leech only: the sign of place i by bit i of a Golay word

of norm sqrt 8, for the words of weight 8 of the repetition code, of the first-order Reed-Muller
code and of the Golay code.
"""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ... import checks
from ..binary.golay import octads, words
from ..code import Code, rho_of_cosines

NAMES = {8: "root lattice E8", 16: "Barnes-Wall lattice in R^16", 24: "Leech lattice"}
SIGNS = 64
"""Even sign patterns on eight places, one of each pair of opposite ones."""


class MinimalVectors(Code):
    """120, 2160 or 98,280 rows: pairs of places first, then words, then those of the third kind.

    Entries are integers: those above, and twice those for the Leech lattice.
    """

    def __init__(self, dim: int):
        """Take 8, 16 or 24 dimensions.

        Raises:
            TypeError, ValueError: not an integer, or another dimension.
        """
        dim = checks.check_integer(dim, "dim")
        if dim not in NAMES:
            raise ValueError(f"dim is {dim}, expected one of {', '.join(map(str, NAMES))}")
        self._twos = dim * (dim - 1)
        self._eights = SIGNS * len(_supports(dim))
        odd = dim * len(words()) // 2 if dim == 24 else 0
        count = self._twos + self._eights + odd
        origin = f"the minimal vectors of the {NAMES[dim]} up to sign"
        super().__init__(count, dim, rho_of_cosines(-0.5, 0.5), "exact", origin)
        self.cosines = -0.5, 0.5
        self._unit = 2 if dim == 24 else 1
        self.norm, self.integral = self._unit * math.sqrt(8), True

    def _rows(self, indices: Tensor, dtype: torch.dtype) -> Tensor:
        rows = torch.zeros((len(indices), self.dim), dtype=torch.int64, device=indices.device)
        eights = indices - self._twos
        odd = eights - self._eights
        for fill, kind, at in (
            (self._fill_twos, eights < 0, indices),
            (self._fill_eights, (eights >= 0) & (odd < 0), eights),
            (self._fill_odd, odd >= 0, odd),
        ):
            chosen = kind.nonzero()[:, 0]
            if len(chosen):
                rows[chosen] = fill(at[chosen])
        return rows.to(dtype)

    def _fill_twos(self, at: Tensor) -> Tensor:
        places = torch.triu_indices(self.dim, self.dim, 1, device=at.device).T[at // 2]
        rows = at.new_zeros(len(at), self.dim)
        rows.scatter_(1, places[:, :1], 2 * self._unit)
        return rows.scatter_(1, places[:, 1:], (2 * self._unit * (1 - 2 * (at % 2)))[:, None])

    def _fill_eights(self, at: Tensor) -> Tensor:
        places = torch.from_numpy(_supports(self.dim)).to(at.device)[at // SIGNS]
        bits = (at[:, None] % SIGNS >> torch.arange(6, device=at.device)) & 1
        # the first sign is +, the last one makes the number of -1 even
        bits = torch.cat([torch.zeros_like(bits[:, :1]), bits, bits.sum(1, True) % 2], dim=1)
        rows = at.new_zeros(len(at), self.dim)
        return rows.scatter_(1, places, self._unit * (1 - 2 * bits))

    def _fill_odd(self, at: Tensor) -> Tensor:
        # a word and its complement give opposite rows, and those below 2048 begin with 0
        signs = 1 - 2 * torch.from_numpy(words().astype(np.int64)).to(at.device)
        rows = signs[at // self.dim]
        place = (at % self.dim)[:, None]
        return rows.scatter(1, place, -3 * rows.gather(1, place))


@cache
def _supports(dim: int) -> np.ndarray:
    """The supports of the words of weight 8, shape (n, 8), int64."""
    if dim == 24:
        return np.array([sorted(octad) for octad in octads()])
    if dim == 8:
        return np.arange(8)[None]
    points = np.arange(16)
    forms = [np.bitwise_count(points & a) % 2 for a in range(1, 16)]
    return np.array([np.flatnonzero(form == side) for form in forms for side in (0, 1)])
