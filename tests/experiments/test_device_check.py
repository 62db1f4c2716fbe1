"""The device check runs its stages, writes what it found and says so when a result is wrong."""

import json

import pytest
import torch

from benchmarks.head_optimisers import OPTIMISERS
from experiments.device_check import correctness, run, timing
from experiments.device_check.inputs import FULL, SMALL

STAGES = (
    "extremes",
    "forces",
    "soft_extremes",
    "pair_list",
    "solvers",
    "passes 600 x 16",
    "passes 700 x 24",
    "solve 320 x 12",
    "steps 320 x 12",
)
PRODUCTS = ("product, bfloat16", "product, tf32", "product, float32")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Exit status and JSON of a run at tiny sizes."""
    path = tmp_path_factory.mktemp("device") / "new" / "check.json"
    status = run.main(["--small", "--device", "cpu", "--out", str(path)])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return status, json.loads(path.read_text())


def test_small_run_passes(small):
    status, record = small
    assert record["passed"] and record["complete"] and status == 0
    assert tuple(record["stages"]) == STAGES
    for name, stage in record["stages"].items():
        assert stage["status"] == "passed" and stage["error"] is None, name
        assert stage["failed"] == [] and all(check["passed"] for check in stage["checks"])
        assert 0 < stage["seconds"] < stage["budget_seconds"]
    for name in STAGES[:5]:
        assert record["stages"][name]["checks"], name


def test_facts_are_recorded(small):
    _, record = small
    assert record["device"]["type"] == "cpu" and record["device"]["name"]
    assert record["versions"]["torch"] == torch.__version__
    assert {"cuda", "python", "rowsep"} <= record["versions"].keys()
    assert record["small"] and record["date"]
    assert record["command"].startswith("python -m experiments.device_check --small")


@pytest.mark.parametrize("name", STAGES[5:7])
def test_passes_are_ratios_to_the_products_of_the_run(small, name):
    figures = small[1]["stages"][name]["figures"]
    methods = figures["methods"]
    expected = {"extremes, momentum", "extremes, iterate", "forces, iterate", "forces, every pair"}
    assert methods.keys() >= expected | set(PRODUCTS)
    assert 0 < figures["active_share"] <= 1
    for method in methods.values():
        assert len(method["seconds"]) >= 1
        assert method["ratio"].keys() == set(PRODUCTS)
        for unit, ratio in method["ratio"].items():
            assert ratio == pytest.approx(method["median"] / methods[unit]["median"])
        assert method["peak_bytes_above_input"] is None  # of a device only


def test_steps_are_ratios_to_the_products_of_the_run(small):
    figures = small[1]["stages"]["steps 320 x 12"]["figures"]
    assert figures["steps"].keys() == OPTIMISERS.keys()
    for step in figures["steps"].values():
        assert step["seconds"] > 0 and step["ratio"].keys() == set(PRODUCTS)


def test_solve_is_timed(small):
    figures = small[1]["stages"]["solve 320 x 12"]["figures"]
    assert figures["shape"] == [320, 12] and figures["median"] > 0 and 0 < figures["rho"] < 1


def test_wrong_results_and_errors_are_reported(tmp_path, monkeypatch, capsys):
    right = correctness.extremes

    def wrong(S, **options):
        found = right(S, **options)
        if S.dtype == torch.float32:
            found = found._replace(delta=found.delta * (1 + 1e-9))
        return found

    def broken(*_, **__):
        raise RuntimeError("planted")

    def endless(_):
        while True:
            pass

    budgets = run.stages(SMALL)
    chosen = {name: budgets[name] for name in STAGES[:4]} | {"endless": (0.05, endless)}
    monkeypatch.setattr(run, "stages", lambda _: chosen)
    monkeypatch.setattr(correctness, "extremes", wrong)
    monkeypatch.setattr(correctness, "soft_extremes", broken)
    path = tmp_path / "check.json"
    assert run.main(["--small", "--out", str(path)]) == 1
    record = json.loads(path.read_text())
    assert not record["passed"] and record["complete"]
    assert {name: stage["status"] for name, stage in record["stages"].items()} == {
        "extremes": "failed",
        "forces": "passed",
        "soft_extremes": "error",
        "pair_list": "passed",
        "endless": "error",
    }
    failed = record["stages"]["extremes"]["failed"]
    assert failed and all("separation" in name for name in failed)
    assert "planted" in record["stages"]["soft_extremes"]["error"]
    assert "budget" in record["stages"]["endless"]["error"]
    assert "not passed" in capsys.readouterr().out


def test_products_leave_the_precision_as_it_was():
    before = torch.get_float32_matmul_precision()
    timing.product(torch.randn(8, 3), "high")
    assert torch.get_float32_matmul_precision() == before


def test_without_a_device_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / "check.json"
    assert run.main(["--device", "cuda", "--out", str(path)]) == 2
    assert not path.exists()


def test_budgets_are_under_eight_minutes():
    assert sum(budget for budget, _ in run.stages(FULL).values()) < 480
