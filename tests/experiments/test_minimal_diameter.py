"""From starts to a record file by the commands of the experiment, on the smallest cases."""

import json
from fractions import Fraction

import pytest

from experiments.minimal_diameter import compare, records, run, show
from rowsep.packing.bounds.certificate import check_certificate
from rowsep.packing.exact.log import SearchLog


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"
    run.main(rounds=1, only=[2], most=4, results=path)
    return path


def test_the_plan_is_what_is_claimed():
    cases = {(case.num_points, case.dim) for case in run.PLAN}
    assert len(cases) == len(run.PLAN)
    assert {(n, 2) for n in range(2, 31)} | {(n, 3) for n in range(4, 21)} <= cases
    assert {(d + 2, d) for d in range(2, 13)} <= cases
    assert {(n, d) for d in range(4, 9) for n in range(d + 2, 33)} <= cases


def test_a_second_run_adds_nothing(results, monkeypatch):
    before = results.read_text()
    monkeypatch.setattr(run, "search", None)
    run.main(rounds=1, only=[2], most=4, results=results)
    assert results.read_text() == before


def test_records_of_a_run(results, tmp_path):
    run.main(neighbours=True, only=[2], most=4, results=results)
    assert any(key.given for key in SearchLog(results).lines)
    records.main(results=results, folder=tmp_path)
    found = json.loads((tmp_path / "found_d2.json").read_text())
    assert [one["num_points"] for one in found] == [2, 3, 4]
    for one, value in zip(found, (1, 1, 2), strict=True):
        assert abs(check_certificate(one).attained - value) < Fraction(1, 10**26)
        assert one["starts"] == 64 and one["agreeing"] > 0, "perturbed starts are not counted"
        assert one["seeds"] == [0]


def test_comparison_table(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "SIZES", ((4, 2),))
    monkeypatch.setattr(compare, "FLOORS", (-1.0,))
    monkeypatch.setattr(compare, "PASSES", (8,))
    path = tmp_path / "compare.csv"
    compare.main(starts=64, results=path)
    before = path.read_text()
    compare.main(starts=64, results=path)
    assert path.read_text() == before
    monkeypatch.setattr(show, "RESULTS", path)
    lines = show.comparison()
    assert lines[2].startswith("| 4 | 2 | none | 0.707107, ")
