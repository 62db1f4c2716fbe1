"""The command line: what it writes on success; a refusal is one line and writes nothing."""

import dataclasses
import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rowsep.packing import cli, io
from rowsep.packing.cli import solve as command
from rowsep.packing.solve import solve

V, D = 40, 6


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def matrix():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(V, D, generator=generator)


@pytest.fixture
def momentum(matrix):
    """The name of a file with the matrix in it."""
    np.save("momentum.npy", matrix.numpy())
    return "momentum.npy"


@pytest.fixture
def rowsep(capsys):
    """Run a command line and return its exit code and what it printed."""

    def run(*arguments):
        capsys.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def refused(rowsep, folder):
    """Run a command line that must be refused, and return the line it says."""

    def run(*arguments):
        before = tree(folder)
        code, out, err = rowsep(*arguments)
        assert code == 2, err
        assert out == ""
        assert err.startswith("rowsep: ")
        assert err.count("\n") == 1 and err.endswith("\n"), err
        assert "Traceback" not in err
        assert tree(folder) == before
        return err

    return run


def tree(folder):
    """Return every path under `folder` with the bytes of the files."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def strict(text):
    """Return the JSON of `text`, in which NaN and Infinity are not allowed."""

    def fail(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=fail)


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


class TestRefusals:
    def test_missing_file(self, refused):
        assert "none.npy does not exist" in refused("solve", "none.npy")

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.ones(5), "a matrix"),
            (np.ones((2, 2, 2)), "a matrix"),
            (np.ones((1, 1)), "two"),
            (np.ones((0, 3)), "empty"),
            (np.ones((5, 3), dtype=np.int32), "int32"),
            (np.array([[1.0, math.nan], [math.inf, 1.0], [0.0, 1.0]]), "1 NaN and 1 infinite"),
        ],
        ids=["vector", "cube", "one row", "empty", "integers", "not finite"],
    )
    def test_not_a_momentum(self, refused, array, words):
        np.save("bad.npy", array)
        assert words in refused("solve", "bad.npy")

    def test_several_matrices(self, refused, matrix):
        save_file({"a": matrix, "b": matrix.clone()}, "two.safetensors")
        assert "a (40 x 6 float32), b (40 x 6 float32)" in refused("solve", "two.safetensors")
        assert "'c'" in refused("solve", "two.safetensors", "--key", "c")
        assert "--key" in refused("solve", "--key", "c")

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("--diameter", "0"),
            ("--diameter", "-1"),
            ("--diameter", "nan"),
            ("--diameter", "inf"),
            ("--diameter", "wide"),
            ("--alignment", "1.5"),
            ("--alignment", "nan"),
            ("--measure", "angle"),
            ("--solver", "magic"),
            ("--orientation", "sideways"),
            ("--passes", "0"),
            ("--passes", "2.5"),
            ("--tolerance", "-1"),
            ("--tolerance", "nan"),
            ("--time-limit", "-1"),
            ("--time-limit", "nan"),
            ("--seed", "-1"),
            ("--real-rows", "1"),
            ("--real-rows", "41"),
        ],
    )
    def test_option_value(self, refused, momentum, option, value):
        message = refused("solve", momentum, f"{option}={value}")
        assert option.lstrip("-").replace("-", "_") in message.replace("-", "_")

    def test_unknown_option_and_command(self, refused, momentum):
        assert "--nope" in refused("solve", momentum, "--nope")
        assert "solvee" in refused("solvee", momentum)

    @pytest.mark.parametrize("name", ["update.npy", "summary.json", "figure.png"])
    def test_existing_output(self, refused, momentum, folder, name):
        (folder / "rowsep-out").mkdir()
        (folder / "rowsep-out" / name).write_text("precious")
        message = refused("solve", momentum)
        assert name in message and "--force" in message

    def test_outputs_that_cannot_be(self, refused, momentum, folder):
        (folder / "file").write_text("")
        (folder / "folder.npy").mkdir()
        (folder / "taken" / "update.npy").mkdir(parents=True)
        assert "'.csv'" in refused("solve", momentum, "--out", "u.csv")
        assert "'.gif'" in refused("solve", momentum, "--figure", "f.gif")
        assert "not a folder" in refused("solve", momentum, "--out", "file/u.npy")
        assert "is a folder" in refused("solve", momentum, "--out", "taken", "--force")
        assert "is the input" in refused("solve", momentum, "--out", momentum, "--force")
        assert "one file" in refused("solve", momentum, "--out", "u.npy", "--summary", "u.npy")
        assert "exclude" in refused("solve", momentum, "--figure", "f.png", "--no-figure")

    def test_folder_without_permission(self, refused, momentum, folder, monkeypatch):
        (folder / "locked").mkdir()
        monkeypatch.setattr(command.os, "access", lambda path, mode: path != folder / "locked")
        assert "permission" in refused("solve", momentum, "--out", "locked/new")

    def test_bfloat16_into_numpy(self, refused, matrix):
        torch.save(matrix.bfloat16(), "m.pt")
        assert "bfloat16" in refused("solve", "m.pt", "--out", "u.npy")

    def test_alignment_above_the_bound_is_refused_before_the_work(
        self, refused, momentum, monkeypatch
    ):
        monkeypatch.setattr(command, "separate", None)
        monkeypatch.setattr(command.bounds, "alignment_upper_bound", lambda A: 0.9)
        message = refused("solve", momentum, "--alignment", 0.95)
        assert "0.95" in message and "0.9000" in message

    def test_alignment_that_no_update_of_a_line_can_have(self, refused, monkeypatch):
        monkeypatch.setattr(command, "separate", None)
        heavy = torch.zeros(50, 20, dtype=torch.float64)
        heavy[:, 0] = torch.linspace(-1, 1, 50)  # in one dimension the share is sqrt(d+1)/sqrt(2d)
        torch.save(heavy, "line.pt")
        assert "cannot be reached" in refused("solve", "line.pt", "--alignment", 0.99)

    def test_alignment_not_met(self, refused, momentum, monkeypatch):
        def missing(M, **options):
            return dataclasses.replace(
                solve(M, **options | {"alignment": 0.0}), met=False, stop="give it more passes"
            )

        monkeypatch.setattr(command, "separate", missing)
        message = refused("solve", momentum, "--alignment", 0.75)
        assert "0.75 was not met" in message and "give it more passes" in message


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


@pytest.fixture
def full_disk():
    """No file may grow beyond 2000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("suffix", io.SUFFIXES)
def test_a_full_disk_is_one_line_and_leaves_what_was_there(rowsep, matrix, suffix, request):
    """Also where the update fits and the figure does not."""
    io.save_matrix(f"m{suffix}", matrix)
    small = io.matrix_bytes(Path(f"m{suffix}"), matrix[:6, :4])
    Path(f"s{suffix}").write_bytes(small)
    Path("out").mkdir()
    (Path("out") / f"update{suffix}").write_text("before")
    request.getfixturevalue("full_disk")
    for name in "ms":
        code, out, err = rowsep(
            "solve", f"{name}{suffix}", "--passes", 2, "--out", "out", "--force"
        )
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "cannot be written: File too large" in err and "None" not in err
        assert [path.name for path in Path("out").iterdir()] == [f"update{suffix}"]
        assert (Path("out") / f"update{suffix}").read_text() == "before"
