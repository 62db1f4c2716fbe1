"""Results in CSV files: kept, continued after a kill, never doubled; momenta by name."""

import datetime

import pytest
import torch
import typer
from typer.testing import CliRunner

from experiments.codes import front, polish, random_start
from experiments.minimal_diameter import compare, proof
from experiments.momenta import load, short
from experiments.separation import run as separation
from experiments.steepest import run as steepest
from experiments.table import Table, read

KEY, FIELDS = ("case", "size"), ("case", "size", "value", "torch", "date")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.csv"


def test_rows_are_read_back(path):
    table = Table(path, KEY, FIELDS)
    assert table.left([("a", 1), ("b", 2)]) == [("a", 1), ("b", 2)]
    table.append({"case": "a", "size": 1, "value": 'x, "y"\nz'}, {"case": "a", "size": 2})
    first, second = read(path)
    assert (first["case"], first["size"], first["value"]) == ("a", "1", 'x, "y"\nz')
    assert second["value"] == "" and second["torch"] == torch.__version__
    assert second["date"] == datetime.date.today().isoformat()


def test_a_run_goes_on_where_it_was(path):
    Table(path, KEY, FIELDS).append({"case": "a", "size": 0.5})
    before = path.read_bytes()
    table = Table(path, KEY, FIELDS)
    assert table.left([("a", 0.5), ("c", ""), ("b", 1), ("c", "")]) == [("c", ""), ("b", 1)]
    table.append({"case": "b", "size": 1})
    assert path.read_bytes().startswith(before)
    assert [row["case"] for row in read(path)] == ["a", "b"]


def test_a_torn_last_row_is_measured_again(path):
    table = Table(path, KEY, FIELDS)
    table.append({"case": "a", "size": 1}, {"case": "b", "size": 2})
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        table = Table(path, KEY, FIELDS)
        left = table.left([("a", 1), ("b", 2)])
        table.append(*(dict(zip(KEY, case, strict=True)) for case in left))
        assert path.read_bytes() == whole


def test_nothing_is_doubled(path):
    table = Table(path, KEY, FIELDS)
    table.append({"case": "a", "size": 1})
    before = path.read_bytes()
    for rows in ([{"case": "a", "size": "1"}], [{"case": "b", "size": 1}] * 2):
        with pytest.raises(ValueError, match=r"has a row for case=., size=1 already"):
            table.append(*rows)
    with pytest.raises(ValueError, match="speed"):
        table.append({"case": "b", "size": 1, "speed": 3})
    assert path.read_bytes() == before


def test_other_columns_are_refused(path):
    path.write_text("case,value\na,1\n")
    with pytest.raises(ValueError, match="columns case, value, expected case, size"):
        Table(path, KEY, FIELDS)


@pytest.mark.parametrize(
    "made", [separation, front, polish, random_start, steepest, compare, proof]
)
def test_committed_results_are_read(made):
    rows = read(made.RESULTS)
    keys = [tuple(row[name] for name in made.KEY) for row in rows]
    assert keys and len(set(keys)) == len(keys)
    before = made.RESULTS.read_bytes()
    assert Table(made.RESULTS, made.KEY, made.FIELDS).left(keys) == []
    assert made.RESULTS.read_bytes() == before


def test_momenta_by_name(tmp_path):
    torch.manual_seed(0)
    matrix = torch.randn(20, 3, dtype=torch.float64)
    file = tmp_path / "momentum.pt"
    torch.save(matrix, file)
    assert short(f"{file}::3") == "momentum.pt::3"
    for name, rows in ((str(file), matrix), (f"{file}::3", matrix[[0, 3, 6, 9, 12, 15, 18]])):
        found = load(name)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), rows - rows.mean(0), rtol=1e-5, atol=1e-6)
    for stride in ("", "0", "-1", "x", "1.5"):
        with pytest.raises(ValueError, match=f"stride '{stride}', expected a positive integer"):
            load(f"{file}::{stride}")


@pytest.mark.parametrize(
    "module", [separation, front, steepest], ids=["separation", "front", "steepest"]
)
def test_a_momentum_that_cannot_be_read_is_refused_before_any_work(module, tmp_path):
    app = typer.Typer()
    app.command()(module.main)
    results = tmp_path / "results.csv"
    for name, said in ((str(tmp_path / "none.npy"), "does not exist"), ("x.npy::0", "stride")):
        outcome = CliRunner().invoke(app, ["shipped", name, "--results", str(results)])
        assert outcome.exit_code == 2
        assert said in " ".join(outcome.stderr.replace("│", " ").split())
    assert not results.exists()
