"""Packing quality: cases, resumption, what is measured, and the fits."""

import csv
from functools import partial

import numpy as np
import pytest
import torch
from typer import Typer
from typer.testing import CliRunner

from experiments.packing_quality import run, show
from experiments.packing_quality.fits import power_law
from experiments.table import read
from rowsep.packing import cloud
from rowsep.packing.bounds import rho_upper_bound

app = Typer()
app.command()(run.main)


def test_an_exact_power_law_is_found_again(generator):
    rng = np.random.default_rng(generator.initial_seed())
    a, b, c = rng.uniform(0.5, 2.5, 3)
    V, d = rng.integers(10, 10000, 12), rng.integers(2, 2000, 12)
    law = power_law(V.tolist(), d.tolist(), (a * V**b * d**c).tolist())
    assert law.factor == pytest.approx(a) and law.cases == 12
    assert (law.rows, law.dim) == pytest.approx((b, c))
    assert law.spread == pytest.approx(1.0) and max(law.rows_error, law.dim_error) < 1e-6


def test_errors_are_those_of_noise(case_seed):
    """The standard errors cover the true exponents about as often as they should.

    Not fuzzed: one seed in some ten thousand lies outside.
    """
    rng = np.random.default_rng(case_seed)
    V, d = np.repeat([100, 1000, 10000], 3), np.tile([10, 100, 1000], 3)
    inside = 0
    for _ in range(200):
        noisy = V**2.0 * d * np.exp(0.1 * rng.standard_normal(9))
        law = power_law(V.tolist(), d.tolist(), noisy.tolist())
        inside += abs(law.rows - 2.0) <= law.rows_error
    assert 0.5 < inside / 200 < 0.85  # 0.64 for Student's t with six degrees of freedom


def test_too_little_for_a_fit():
    with pytest.raises(ValueError, match="a fit needs four"):
        power_law([10, 10, 10, 10], [1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="positive"):
        power_law([10, 20, 10, 20], [1, 2, 3, 4], [1.0, 0.0, 3.0, 4.0])


def test_cases_are_new_and_the_cheapest_first():
    listed = run.cases([64, 256], [16, 64], seed=0)
    assert len(set(listed)) == len(listed)
    assert all(case.rows > case.dim for case in listed)
    sizes = [case.rows**2 * case.dim for case in listed]
    assert sizes == sorted(sizes)
    assert {case.method for case in listed} == set(run.METHODS)


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "unit_seconds", partial(run.unit_seconds, least=0.0))
    results = tmp_path / "results.csv"
    command = ["--rows", "12", "--dims", "4", "--results", str(results)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    rows = read(results)
    assert {row["method"] for row in rows} == set(run.METHODS)
    for row in rows:
        assert 0 < float(row["rho"]) <= float(row["bound"]) * (1 + 1e-6)
        assert float(row["bound"]) == pytest.approx(rho_upper_bound(12, 4), abs=1e-6)
        assert float(row["seconds"]) > 0 and float(row["products"]) > 0
    found = next(row for row in rows if row["method"] == "gaussian")
    made = torch.nn.functional.normalize(
        torch.randn(12, 4, generator=torch.Generator().manual_seed(0)), dim=1
    )
    assert float(found["rho"]) == pytest.approx(cloud.ratio(made).value, abs=1e-6)

    kept = rows[:3]
    with results.open("w", newline="") as file:
        writer = csv.DictWriter(file, run.FIELDS)
        writer.writeheader()
        writer.writerows(kept)
    assert CliRunner().invoke(app, command).exit_code == 0
    again = read(results)
    assert again[:3] == kept
    figures = [{k: row[k] for k in (*run.KEY, "rho")} for row in again]
    assert figures == [{k: row[k] for k in (*run.KEY, "rho")} for row in rows]


def test_what_would_take_too_long_is_named(tmp_path):
    command = ["--rows", "1024", "--dims", "64", "--most-minutes", "1e-9"]
    done = CliRunner().invoke(app, [*command, "--results", str(tmp_path / "results.csv")])
    assert done.exit_code == 0 and "projected_gradient, 1024 x 64: about" in done.output
    assert not (tmp_path / "results.csv").exists()


def test_missing_cells_stay_empty():
    rows = [
        {"rows": "10", "dim": "2", "method": "code", "share": "0.5"},
        {"rows": "20", "dim": "3", "method": "code", "share": "0.75"},
    ]
    Vs, ds, share = show.grid(rows, "code")
    assert (Vs, ds) == ([10, 20], [2, 3])
    assert share[0, 0] == 0.5 and share[1, 1] == 0.75
    assert np.isnan(share[0, 1]) and np.isnan(share[1, 0])


def test_costs_of_different_processors_are_fitted_apart():
    """Exact laws V^2 d on one, ten times the cost on another, and too few cases on a third."""
    rows = [
        {
            "method": "smoothed",
            "cpu": cpu,
            "rows": str(V),
            "dim": str(d),
            "passes": "6",
            "seconds": str(8 * factor * V**2 * d),
        }
        for cpu, factor, dims in (("one", 1e-6, (8, 16)), ("two", 1e-5, (8, 16)), ("few", 1, (8,)))
        for V in (512, 1024)
        for d in dims
    ]
    made = show.fit_table(rows)[2:]
    assert [line.split(" | ")[1] for line in made] == ["one", "two"]
    assert "1e-06 V^2.00 d^1.00" in made[0] and "1e-05 V^2.00 d^1.00" in made[1]
