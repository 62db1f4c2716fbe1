"""`rowsep solve` refuses in one line and leaves every file as it was."""

import dataclasses
import math
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rowsep.packing import io
from rowsep.packing.cli import solve as command
from rowsep.packing.solve import solve


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
