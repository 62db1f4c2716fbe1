"""What the search over starts asks of a problem: clouds in, local optima out."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from torch import Tensor

from .kkt import Guess
from .starts import Cloud


class Ends(NamedTuple):
    """Where starts ended; float64."""

    points: Tensor
    """Shape (B, n, d)."""
    ratio_squared: Tensor
    """What is minimised, shape (B,)."""
    converged: Tensor
    """Bool, shape (B,): whether the conditions of first order are met."""


class PointProblem(Protocol):
    """Least squared ratio of two lengths over configurations of n points of R^d."""

    name: ClassVar[str]
    """What tells its searches from those of other problems of this size."""
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of starts that take turns, of those of starts.py."""

    @property
    def num_points(self) -> int:
        """The number n of points."""
        ...

    @property
    def dim(self) -> int:
        """The dimension d."""
        ...

    def ends(self, clouds: Sequence[Cloud], mu: Sequence[float]) -> Ends:
        """Return the local optima that starts run to, from their first barrier parameters."""
        ...

    def guess(self, points: Cloud) -> Guess:
        """Return what Newton's method on the conditions of an optimum near `points` starts from."""
        ...
