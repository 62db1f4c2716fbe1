"""Branch and bound against the planar optima that are proved in the literature."""

import math

import numpy as np
import pytest

pytest.importorskip("pyscipopt")

from rowsep.packing.bounds.branch_and_bound import minimal_diameter


@pytest.mark.parametrize(
    ("num_points", "dim", "ratio_squared"),
    [
        (2, 2, 1.0),
        (3, 2, 1.0),
        (4, 2, 2.0),  # square; Bateman and Erdos, Amer. Math. Monthly 58 (1951)
        (5, 2, (3 + math.sqrt(5)) / 2),  # regular pentagon, the same
        (4, 1, 9.0),
        (4, 3, 1.0),
    ],
)
def test_small_cases_are_proved(num_points, dim, ratio_squared):
    found = minimal_diameter(num_points, dim, gap=1e-3)
    assert found.lower <= ratio_squared * (1 + 1e-6) <= found.ratio_squared * (1 + 2e-6)
    assert found.gap <= 2.1e-3
    i, j = np.triu_indices(num_points, 1)
    q = ((found.points[i] - found.points[j]) ** 2).sum(axis=1)
    assert q.max() / q.min() == pytest.approx(found.ratio_squared)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="num_points is 1"):
        minimal_diameter(1)
    with pytest.raises(ValueError, match="dim is 0"):
        minimal_diameter(3, 0)
