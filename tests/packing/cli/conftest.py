"""The command run in an empty folder, on files made there."""

import json

import numpy as np
import pytest
import torch

from rowsep.packing import cli

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
