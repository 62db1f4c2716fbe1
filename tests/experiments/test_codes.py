"""The experiments on codes run, and go on where they were."""

import csv

import numpy as np
import torch

from experiments.codes import front, random_start, table


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
    assert [row["start"] for row in first] == ["aligned", *front.STARTS]
    assert {row["rows"] for row in first} == {"30"}
    front.main([name], floors=[0.3, 0.5], passes=[2], results=results)
    assert read(results)[: len(first)] == first
    assert len(read(results)) == len(first) + len(front.STARTS)


def test_random_starts_are_kept(tmp_path):
    results = tmp_path / "random.csv"
    for _ in range(2):
        random_start.main(num_rows=12, dim=3, seeds=[5], iterations=5, results=results)
    rows = read(results)
    assert [float(row["beta"]) for row in rows] == random_start.BETAS
    assert all(0 < float(row["rho"]) <= float(row["bound"]) for row in rows)


def test_the_grid_of_sizes_has_both_ends():
    sizes = table.grid(16)
    assert sizes[0] == 17 and sizes[-1] == 128
    assert all(a < b for a, b in zip(sizes, sizes[1:], strict=False))
