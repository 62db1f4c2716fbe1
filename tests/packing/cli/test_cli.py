"""The command line: what it writes on success; a refusal is one line and writes nothing."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from rowsep.packing import io
from rowsep.packing.cli import solve as command
from rowsep.packing.solve import solve
from tests.packing.cli.conftest import D, V, strict


def summary_at(path="rowsep-out/summary.json"):
    with open(path) as file:
        return strict(file.read())


def test_solve_writes_update_summary_and_figure(rowsep, momentum, matrix):
    code, out, err = rowsep("solve", momentum, "--diameter", 2, "--passes", 6, "--front")
    assert code == 0, err
    assert sorted(os.listdir("rowsep-out")) == ["figure.png", "summary.json", "update.npy"]
    update, _ = io.load_matrix("rowsep-out/update.npy")
    distances = torch.pdist(update.double())
    assert update.dtype == matrix.dtype
    assert distances.max() <= 2.0
    found = summary_at()
    results = found["results"]
    assert results["diameter"] == pytest.approx(distances.max().item(), rel=1e-12)
    assert results["delta"] == pytest.approx(distances.min().item(), rel=1e-12)
    assert results["rho"] == pytest.approx((distances.min() / distances.max()).item(), rel=1e-12)
    assert results["alignment"] >= 0.5
    assert results["met"] is True
    assert found["history"]
    assert found["front"]
    assert all(point["alignment"] >= point["floor"] for point in found["front"])
    assert set(found["baselines"]) == {"row norm", "polar", "polar then row"}
    assert found["outputs"]["figure"] == "rowsep-out/figure.png"
    assert found["interrupted"] is False
    for words in ("40 rows in 6 dimensions", "row norm", "polar then row", "rho / bound"):
        assert words in out
    assert "wrote rowsep-out/update.npy" in err


def test_summary_says_where_all_came_from(rowsep, momentum):
    rowsep("solve", momentum, "--passes", 3, "--seed", 7, "--no-figure")
    found = summary_at()
    assert list(found) == [
        "versions",
        "date",
        "command",
        "input",
        "options",
        "seed",
        "interrupted",
        "results",
        "baselines",
        "front",
        "history",
        "outputs",
    ]
    assert set(found["versions"]) == {"rowsep", "python", "torch"}
    assert found["date"].endswith("+00:00")
    assert found["command"] == "rowsep solve momentum.npy --passes 3 --seed 7 --no-figure"
    assert found["input"]["path"] == "momentum.npy"
    assert len(found["input"]["sha256"]) == 64
    assert found["input"]["shape"] == [V, D]
    assert found["input"]["dtype"] == "float32"
    assert found["options"]["passes"] == 3
    assert found["seed"] == 7
    assert found["front"] == []
    assert found["outputs"]["figure"] is None


@pytest.mark.parametrize("suffix", io.SUFFIXES)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_update_is_stored_like_the_momentum(rowsep, matrix, suffix, transposed):
    half = matrix.half() if suffix in (".npy", ".npz") else matrix.bfloat16()
    orientation = "columns" if transposed else "rows"
    io.save_matrix(f"m{suffix}", half, orientation=orientation)
    code, _, err = rowsep("solve", f"m{suffix}", "--passes", 3, "--no-figure")
    assert code == 0, err
    assert ("note: took the longer axis" in err) == transposed
    update, info = io.load_matrix(f"rowsep-out/update{suffix}", orientation=orientation)
    assert update.dtype == half.dtype
    assert info.shape == ((D, V) if transposed else (V, D))
    assert torch.pdist(update.double()).max() <= 1.0


def test_same_seed_same_update(rowsep, momentum):
    for name in ("a", "b"):
        code, _, err = rowsep(
            "solve", momentum, "--out", f"{name}.npy", "--no-figure", "--passes", 3
        )
        assert code == 0, err
    assert torch.equal(io.load_matrix("a.npy")[0], io.load_matrix("b.npy")[0])


def test_out_may_name_the_file_and_the_others_lie_beside(rowsep, momentum):
    code, _, err = rowsep("solve", momentum, "--out", "new/u.safetensors", "--passes", 3)
    assert code == 0, err
    assert sorted(os.listdir("new")) == ["u.json", "u.png", "u.safetensors"]


def test_summary_and_figure_may_lie_elsewhere(rowsep, momentum):
    code, _, err = rowsep(
        "solve", momentum, "--summary", "a/s.json", "--figure", "b/f.svg", "--passes", 3
    )
    assert code == 0, err
    assert os.listdir("rowsep-out") == ["update.npy"]
    assert summary_at("a/s.json")["outputs"]["figure"] == "b/f.svg"
    with open("b/f.svg") as file:
        assert "<svg" in file.read()


def test_force_replaces(rowsep, momentum):
    rowsep("solve", momentum, "--passes", 3, "--no-figure")
    code, _, err = rowsep("solve", momentum, "--passes", 4, "--no-figure", "--force")
    assert code == 0, err
    assert summary_at()["options"]["passes"] == 4


def test_json_prints_the_summary_and_nothing_else(rowsep, momentum):
    code, out, _ = rowsep("solve", momentum, "--json", "--no-figure", "--passes", 3)
    assert code == 0
    assert strict(out) == summary_at()


def test_quiet_prints_nothing(rowsep, momentum):
    assert rowsep("solve", momentum, "--quiet", "--no-figure", "--passes", 3) == (0, "", "")
    assert summary_at()["results"]["met"]


def test_rows_beyond_the_real_ones_do_not_count(rowsep, matrix):
    padded = torch.cat([matrix, torch.zeros(8, D)])
    np.save("padded.npy", padded.numpy())
    code, _, err = rowsep("solve", "padded.npy", "--real-rows", V, "--passes", 6, "--no-front")
    assert code == 0, err
    update, _ = io.load_matrix("rowsep-out/update.npy")
    results = summary_at()["results"]
    assert len(update) == V + 8
    assert results["delta"] == pytest.approx(torch.pdist(update[:V].double()).min().item())
    assert results["rho"] > 0.05
    assert summary_at()["input"]["rows"] == V


def test_zero_momentum_is_no_crash(rowsep):
    np.save("zero.npy", np.zeros((5, 3)))
    code, _, err = rowsep("solve", "zero.npy", "--alignment", 0, "--passes", 3)
    assert code == 0, err
    assert not io.load_matrix("rowsep-out/update.npy")[0].any()


class TestInterrupt:
    """Ctrl-C during the work: the best so far is written and the exit code is 130."""

    @staticmethod
    def pressed_at(number, monkeypatch):
        def pressing(M, *, on_pass=None, **options):
            def seen(progress):
                if progress.passes == number:
                    signal.raise_signal(signal.SIGINT)

            return solve(M, on_pass=seen, **options)

        monkeypatch.setattr(command, "separate", pressing)

    def test_best_so_far_is_written(self, rowsep, momentum, monkeypatch):
        self.pressed_at(3, monkeypatch)
        before = signal.getsignal(signal.SIGINT)
        code, _, err = rowsep("solve", momentum, "--passes", 50, "--front")
        assert code == 130
        assert "interrupted: wrote the best update so far" in err
        assert signal.getsignal(signal.SIGINT) is before
        update, _ = io.load_matrix("rowsep-out/update.npy")
        assert torch.pdist(update.double()).max() <= 1.0
        found = summary_at()
        assert found["interrupted"] is True
        assert found["results"]["passes"] < 50
        assert found["baselines"] == {}
        assert found["front"] == []
        assert os.path.exists("rowsep-out/figure.png")

    def test_during_the_baselines_the_update_is_whole(self, rowsep, momentum, monkeypatch):
        def quality(*_):
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(command, "quality", quality)
        code, _, _ = rowsep("solve", momentum, "--passes", 5, "--front")
        assert code == 130
        found = summary_at()
        assert found["results"]["met"]
        assert found["front"] == []


class TestMeasure:
    def test_figures_are_those_of_the_definition(self, rowsep, momentum, matrix):
        code, out, _ = rowsep("measure", momentum, "--json")
        assert code == 0
        found = strict(out)
        exact = matrix.double()
        distances = torch.pdist(exact)
        assert found["diameter"] == pytest.approx(distances.max().item(), rel=1e-12)
        assert found["delta"] == pytest.approx(distances.min().item(), rel=1e-12)
        i, j = found["closest"]
        assert (exact[i] - exact[j]).norm().item() == pytest.approx(found["delta"], rel=1e-12)
        i, j = found["farthest"]
        assert (exact[i] - exact[j]).norm().item() == pytest.approx(found["diameter"], rel=1e-12)
        assert found["rho"] == pytest.approx(found["delta"] / found["diameter"])
        assert found["rho"] < found["bound"] < 1
        sigma = torch.linalg.svdvals(exact - exact.mean(dim=0))
        assert found["singular_values"]["1"] == 1.0
        assert found["singular_values"]["3"] == pytest.approx((sigma[2] / sigma[0]).item())
        assert found["stable_rank"] == pytest.approx(((sigma / sigma[0]) ** 2).sum().item())
        norms = (exact - exact.mean(dim=0)).norm(dim=1)
        assert found["row_norms"]["0.5"] == pytest.approx(norms.quantile(0.5).item())
        assert found["equal_rows"] == 0

    def test_effective_rank_of_equal_singular_values_is_their_number(self, rowsep):
        rows = torch.cat([torch.eye(4), -torch.eye(4)])
        torch.save(rows, "cross.pt")
        _, out, _ = rowsep("measure", "cross.pt", "--json")
        assert strict(out)["effective_rank"] == pytest.approx(4)

    def test_equal_rows_and_padding(self, rowsep, matrix):
        matrix[9] = matrix[2]
        matrix[4] = 0.0
        matrix[5] = -0.0
        np.save("twins.npy", torch.cat([matrix, torch.zeros(5, D)]).numpy())
        _, out, _ = rowsep("measure", "twins.npy", "--real-rows", V, "--json")
        found = strict(out)
        assert found["equal_rows"] == 4
        assert found["delta"] == 0.0
        _, out, _ = rowsep("measure", "twins.npy", "--json")
        assert strict(out)["equal_rows"] == 9

    def test_table(self, rowsep, momentum):
        code, out, err = rowsep("measure", momentum)
        assert (code, err) == (0, "")
        for words in ("40 rows in 6 dimensions", "bound on rho", "stable rank"):
            assert words in out

    def test_numbers_that_are_not_finite_are_null(self, rowsep):
        np.save("zero.npy", np.zeros((5, 3)))
        code, out, _ = rowsep("measure", "zero.npy", "--json")
        assert code == 0
        assert strict(out)["stable_rank"] is None

    def test_refusals(self, refused, momentum):
        assert "does not exist" in refused("measure", "none.npy")
        assert "between 2 and 40" in refused("measure", momentum, "--real-rows", 41)


def test_version_and_help(rowsep):
    code, out, _ = rowsep("--version")
    assert (code, out.split()[0]) == (0, "rowsep")
    assert "measure" in rowsep()[1]
    assert "--alignment" in rowsep("solve", "--help")[1]


def test_the_shipped_momentum_is_the_default(rowsep):
    code, out, _ = rowsep("measure", "--json")
    assert code == 0
    assert strict(out)["input"]["shape"] == [4096, 128]


def test_interrupt_while_torch_is_imported_is_quiet():
    program = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from rowsep.__main__ import main
sys.exit(main())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_entry_point_gives_the_signal_back(monkeypatch):
    from rowsep import __main__ as entry

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "argv", ["rowsep", "--version"])
    assert entry.main() == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_drawing_keeps_the_update(rowsep, momentum, monkeypatch):
    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("rowsep.packing.cli.plot.figure", interrupted)
    code, out, err = rowsep("solve", momentum, "--passes", 3)
    assert code == 130 and "wrote the best update so far" in err
    assert sorted(os.listdir("rowsep-out")) == ["summary.json", "update.npy"]
    assert summary_at()["outputs"]["figure"] is None
