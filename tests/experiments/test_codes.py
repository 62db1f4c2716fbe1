"""The experiments on codes run, and go on where they were."""

import csv

import numpy as np
import pytest
import torch

from experiments.codes import front, random_start, table
from rowsep.packing import cloud
from rowsep.packing.codes import best_code


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_fronts_are_kept_and_continued(tmp_path):
    generator = torch.Generator().manual_seed(1)
    momentum, results = tmp_path / "momentum.npy", tmp_path / "front.csv"
    np.save(momentum, torch.randn(60, 8, generator=generator).numpy())
    name = f"{momentum}::2"
    front.main([name], floors=[0.3], passes=[2], results=results)
    first = read(results)
    assert [row["start"] for row in first] == ["aligned", "blended", *front.STARTS]
    assert {row["rows"] for row in first} == {"30"}
    front.main([name], floors=[0.3, 0.5], passes=[2], results=results)
    assert read(results)[: len(first)] == first
    assert len(read(results)) == len(first) + 1 + len(front.STARTS)


def test_the_blend_meets_its_floor_with_no_more_of_the_momentum_than_it_takes():
    generator = torch.Generator().manual_seed(2)
    A = cloud.centre(torch.randn(60, 8, generator=generator))
    starts = front.states(A)
    own = cloud.alignment(A, starts["aligned"](-1.0))
    assert cloud.alignment(A, starts["blended"](-1.0)) == pytest.approx(own, abs=0.02)
    for floor in (own + 0.02, 0.7):
        assert floor <= cloud.alignment(A, starts["blended"](floor)) < floor + 0.01


def test_random_starts_are_kept(tmp_path):
    results = tmp_path / "random.csv"
    for _ in range(2):
        random_start.main(num_rows=12, dim=3, seeds=[5], iterations=5, results=results)
    rows = read(results)
    assert [float(row["beta"]) for row in rows] == random_start.BETAS
    assert all(0 < float(row["rho"]) <= float(row["bound"]) for row in rows)


def test_the_pairs_at_the_ends_are_told_from_those_inside():
    """A square, two diagonals and four sides, and a line: distances 1, 1, 2, so all at an end."""
    square = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]], dtype=torch.float64)
    found = random_start.figures(square)
    assert float(found["ends"]) == 1.0 and float(found["freedom"]) == pytest.approx(3 / 6)
    line = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)  # distances 1, 2, 3
    found = random_start.figures(line)
    assert float(found["ends"]) == pytest.approx(2 / 3, abs=1e-6)
    assert float(found["inside"]) == pytest.approx((2 * 4 - 10) ** 2 / 64, abs=1e-6)


@pytest.mark.parametrize("dim", [5, 16])
def test_the_least_ratio_over_all_sizes_stands_at_a_step(dim):
    def ratio(rows):
        code = best_code(rows, dim)
        return code.rho / code.bound

    sizes = range(dim + 1, dim * dim // 2 + 1)
    assert min(map(ratio, table.steps(dim))) == min(map(ratio, sizes))
