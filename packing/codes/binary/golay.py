"""The words of the extended Golay code and of its shortened codes, as signs.

Words of weights w in a linear code have distances `2 sqrt(w)` as sign vectors, so
`rho = sqrt(w_min / w_max)`: `1/sqrt 3` for all 4096 words (weights 8, 12, 16, 24), and `1/sqrt 2`
for the 2048 that are 0 at one place, which is left out (weights 8, 12, 16). J. H. Conway and
N. J. A. Sloane, Sphere Packings, Lattices and Groups, 3rd ed., chapter 3.
"""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ... import checks
from ..code import Held

LENGTH, BITS = 24, 12


class Golay(Held):
    """The words that are 0 at the first `24 - dim` places, these left out: `2^(dim - 12)` rows."""

    def __init__(self, dim: int = LENGTH):
        """Take the length, 16 to 24.

        Raises:
            TypeError, ValueError: not an integer, or out of range.
        """
        dim = checks.check_count(dim, "dim", 16, LENGTH)
        weights = words()[1 : 2 ** (dim - BITS)].sum(axis=1)
        least, most = int(weights.min()), int(weights.max())
        origin = "the extended Golay code"
        if dim < LENGTH:
            origin += f", shortened to length {dim}"
        super().__init__(2 ** (dim - BITS), dim, math.sqrt(least / most), "exact", origin)
        self.cosines = 1 - 2 * most / dim, 1 - 2 * least / dim
        self.norm, self.integral = math.sqrt(dim), True

    def _build(self) -> Tensor:
        bits = words()[: self.num_rows, LENGTH - self.dim :]
        return torch.from_numpy(1 - 2 * bits.astype(np.int8))


@cache
def words() -> np.ndarray:
    """Return the 4096 words, uint8 of shape (4096, 24); word m has the bits of m first.

    They are spanned by the shifts of the squares modulo 23, with a parity bit; any 12 places in a
    row of a cyclic code of dimension 12 determine the word.
    """
    squares = {x * x % 23 for x in range(1, 23)}
    word = np.array([x in squares for x in range(23)], dtype=np.uint8)
    cyclic = np.array([np.roll(word, shift) for shift in range(BITS)])
    generators = np.hstack([cyclic, cyclic.sum(axis=1, keepdims=True) % 2])
    messages = (np.arange(2**BITS)[:, None] >> np.arange(BITS)) & 1
    spanned = (messages @ generators % 2).astype(np.uint8)
    order = spanned[:, :BITS] @ (1 << np.arange(BITS)[::-1])
    return spanned[np.argsort(order)]


@cache
def octads() -> tuple[frozenset[int], ...]:
    """Return the 759 blocks of S(5, 8, 24): the words of weight 8, by the place of their ones."""
    return tuple(frozenset(np.flatnonzero(w).tolist()) for w in words() if w.sum() == 8)
