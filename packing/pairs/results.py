"""What an all-pairs pass returns: named tuples of plain numbers and tensors."""

from typing import NamedTuple

from torch import Tensor


class Extremes(NamedTuple):
    """Separation and diameter of a cloud with one pair of rows attaining each."""

    delta: float
    """`min_{i<j} ||s_i - s_j||`; `inf` with fewer than two rows."""
    diameter: float
    """`max_{i<j} ||s_i - s_j||`; 0.0 with fewer than two rows."""
    closest: tuple[int, int]
    """Rows `i < j` at the separation; (-1, -1) with fewer than two rows."""
    farthest: tuple[int, int]
    """Rows `i < j` at the diameter; (-1, -1) with fewer than two rows."""


class SoftExtremes(NamedTuple):
    """The smoothed condition number of a cloud, its gradient and the exact extremes behind it."""

    value: float
    """`F_beta`; `inf` when two rows coincide, `-inf` with fewer than two rows."""
    gradient: Tensor
    """`dF_beta/dS`, shape (V, d); zero for rows masked out and where `value` is not finite."""
    delta: float
    """`min_{i<j} ||s_i - s_j||`, exact."""
    diameter: float
    """`max_{i<j} ||s_i - s_j||`, exact."""
    pairs: int
    """Pairs that carried weight; the others together weigh less than the dtype's rounding."""


class Forces(NamedTuple):
    """Pairwise forces on every row, with each row's nearest and farthest squared distance."""

    force: Tensor
    """`sum_{j != i} w(q_ij) (s_i - s_j)`, shape (V, d)."""
    nearest: Tensor
    """`min_{j != i} q_ij`, shape (V,); `inf` for a row without a partner."""
    farthest: Tensor
    """`max_{j != i} q_ij`, shape (V,); 0 for a row without a partner."""
    pairs: int
    """Pairs `i < j` with `q_ij <= near` or `q_ij >= far`."""
