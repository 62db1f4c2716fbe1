"""What a solver returns, and how its passes are told to whoever watches."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

if TYPE_CHECKING:  # of an extra
    from .exact.optimality import Optimality


class Progress(NamedTuple):
    """One iterate as its all-pairs pass saw it (working precision, so an estimate)."""

    passes: int
    """All-pairs passes spent so far, this one included."""
    rho: float
    """Separation over diameter of the iterate."""
    alignment: float
    """`<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)` of the iterate."""
    cosine: float
    """`<A,S> / (||A|| ||S||)` of the iterate, Frobenius norms."""


@dataclass(frozen=True)
class Solution:
    """An update with its figures, exact to float64 rounding of the entries of `update`.

    `delta`, `diameter`, `rho`, `alignment` and `cosine` are measured on the rows that take part
    (all of them without a mask) of `update` as returned, in its dtype. With a metric they are those
    of `S Sigma^(1/2)` and `A Sigma^(-1/2)`, multiplied in float64: `s_i` and `a_i` stand for these.
    """

    update: Tensor
    """`S`, shape (V, d), centred, dtype and device of the momentum, `D(S) <= diameter` asked."""
    delta: float
    """`min_{i<j} ||s_i - s_j||`; 0.0 for a zero update, `inf` with fewer than two rows."""
    diameter: float
    """`max_{i<j} ||s_i - s_j||`."""
    rho: float
    """`delta / diameter`, between 0 and 1; 0.0 for a zero update."""
    alignment: float
    """`<A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)`, between -1 and 1."""
    cosine: float
    """`<A,S> / (||A|| ||S||)`, Frobenius norms."""
    bound: float
    """Upper bound on `rho` over every cloud of this many rows in this dimension."""
    closest: tuple[int, int]
    """The pair of rows at the separation; (-1, -1) if there is none."""
    farthest: tuple[int, int]
    """The pair of rows at the diameter; (-1, -1) if there is none."""
    passes: int
    """All-pairs passes spent, those that certify the result included; of "exact" only those."""
    met: bool
    """Whether the floor is met, on the alignment or the cosine as asked."""
    stop: str
    """Why the solver stopped and what to do next, in words."""
    state: Tensor
    """Row positions, shape (rows that take part, d); pass it as `state=` to go on from here."""
    history: tuple[Progress, ...] = field(repr=False)
    """One entry per all-pairs pass of the solver; none of "exact"."""
    optimality: "Optimality | None" = field(default=None, repr=False)
    """Of "exact": active pairs (rows of `state`), multipliers and conditions at 60 digits."""
    starts: int = 1
    """Starts of the solver."""
    agreeing: int = 1
    """Starts that ended at this `rho`, to one part in 10^9 of its square."""


class FloorNotMet(RuntimeError):
    """The floor was missed; `solution` holds what was reached."""

    def __init__(self, solution: Solution):
        """Take the message from `solution.stop`."""
        super().__init__(solution.stop)
        self.solution = solution
