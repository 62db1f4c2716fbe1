"""A matrix comes back from a file as it went in; what cannot be a momentum is refused."""

import json
import os
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from rowsep.packing import io

SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".bin")
NUMPY_SUFFIXES = (".npy", ".npz")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
STORED = [
    (suffix, dtype)
    for suffix in SUFFIXES
    for dtype in DTYPES
    if not (suffix in NUMPY_SUFFIXES and dtype == torch.bfloat16)
]
V, D = 11, 4


@pytest.fixture
def matrix():
    """A (V, D) matrix whose entries every dtype tells apart."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-100, 100, (V, D), generator=generator).double() / 8


def refused(path, *words, **options):
    """Return the message with which `path` is refused: one line that has all of `words`."""
    with pytest.raises(io.InputError) as caught:
        io.load_matrix(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message, message
    return message


@pytest.mark.parametrize("orientation", ["rows", "columns"])
@pytest.mark.parametrize(("suffix", "dtype"), STORED, ids=str)
def test_round_trip(tmp_path, matrix, suffix, dtype, orientation):
    path = tmp_path / f"matrix{suffix}"
    matrix = matrix.to(dtype)
    io.save_matrix(path, matrix, {"made": "here"}, orientation=orientation)
    key = "update" if suffix == ".npz" else None  # its metadata are a second array
    loaded, info = io.load_matrix(path, key=key, orientation=orientation)
    assert loaded.dtype == dtype
    assert loaded.is_contiguous()
    assert torch.equal(loaded, matrix)
    assert info.shape == ((V, D) if orientation == "rows" else (D, V))
    assert info.dtype == str(dtype).removeprefix("torch.")
    assert info.orientation == orientation
    assert info.note is None
    assert info.key == (None if suffix == ".npy" else "update")
    assert os.listdir(tmp_path) == [path.name]


def test_npz_written_is_read_without_a_key(tmp_path, matrix):
    io.save_matrix(tmp_path / "a.npz", matrix, {"made": "here"})
    assert torch.equal(io.load_matrix(tmp_path / "a.npz")[0], matrix)


@pytest.mark.parametrize("suffix", NUMPY_SUFFIXES)
def test_bfloat16_is_not_written_to_numpy(tmp_path, matrix, suffix):
    with pytest.raises(io.InputError, match="bfloat16.*safetensors"):
        io.save_matrix(tmp_path / f"a{suffix}", matrix.bfloat16())
    assert not os.listdir(tmp_path)


def test_metadata_are_kept(tmp_path, matrix):
    metadata = {"made": "here"}
    for suffix in SUFFIXES:
        io.save_matrix(tmp_path / f"a{suffix}", matrix, metadata)
    with safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert file.metadata() == metadata
    assert torch.load(tmp_path / "a.pt", weights_only=True)["metadata"] == metadata
    with np.load(tmp_path / "a.npz") as file:
        assert json.loads(str(file["metadata"])) == metadata


def test_a_failed_write_leaves_what_was_there(tmp_path, matrix):
    path = tmp_path / "a.pt"
    io.save_matrix(path, matrix)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), io.replacing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_auto_takes_the_longer_axis_and_says_so(tmp_path, matrix):
    path = tmp_path / "a.npy"
    np.save(path, matrix.T.numpy())
    loaded, info = io.load_matrix(path, orientation="auto")
    assert torch.equal(loaded, matrix)
    assert info.orientation == "columns"
    assert info.note is not None and f"{D} x {V}" in info.note
    np.save(path, matrix.numpy())
    loaded, info = io.load_matrix(path, orientation="auto")
    assert torch.equal(loaded, matrix)
    assert (info.orientation, info.note) == ("rows", None)


def test_big_endian_and_fortran_order_are_read(tmp_path, matrix):
    path = tmp_path / "a.npy"
    np.save(path, np.asfortranarray(matrix.numpy().astype(">f4")))
    loaded, info = io.load_matrix(path)
    assert info.dtype == "float32"
    assert torch.equal(loaded, matrix.float())


def test_nested_names_are_dotted(tmp_path, matrix):
    path = tmp_path / "optimiser.pt"
    state = {0: {"momentum_buffer": torch.nn.Parameter(matrix)}, 1: {"momentum_buffer": matrix[:3]}}
    torch.save({"state": state, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}, path)
    loaded, info = io.load_matrix(path, key="state.0.momentum_buffer")
    assert torch.equal(loaded, matrix)
    assert not loaded.requires_grad
    assert info.key == "state.0.momentum_buffer"
    refused(path, "state.0.momentum_buffer (11 x 4 float64)", "state.1.momentum_buffer", "key")


def test_one_matrix_among_other_tensors_needs_no_key(tmp_path, matrix):
    path = tmp_path / "a.safetensors"
    save_file({"head": matrix, "bias": matrix[0].clone(), "ids": torch.ones(2, 2).long()}, path)
    assert torch.equal(io.load_matrix(path)[0], matrix)


def test_several_matrices_need_a_key(tmp_path, matrix):
    many = {f"m{i}": matrix.clone() for i in range(30)} | {"bias": matrix[0].clone()}
    save_file(many, tmp_path / "a.safetensors")
    message = refused(tmp_path / "a.safetensors", "30 matrices", "m0 (11 x 4 float64)", "18 more")
    assert "bias" not in message
    np.savez(tmp_path / "a.npz", a=matrix.numpy(), b=matrix.numpy())
    refused(tmp_path / "a.npz", "2 matrices", "a (11 x 4 float64), b (11 x 4 float64)")


def test_unknown_key_lists_what_there_is(tmp_path, matrix):
    save_file({"head": matrix}, tmp_path / "a.safetensors")
    refused(tmp_path / "a.safetensors", "'tail'", "head (11 x 4 float64)", key="tail")


def test_the_returned_matrix_does_not_live_in_the_file(tmp_path, matrix):
    path = tmp_path / "a.pt"
    torch.save(matrix, path)
    loaded, _ = io.load_matrix(path)
    path.write_bytes(b"")
    assert torch.equal(loaded, matrix)


def test_missing_file_unknown_suffix_and_folder(tmp_path):
    refused(tmp_path / "none.npy", "does not exist")
    refused(tmp_path / "none.csv", "'.csv'", ".safetensors")
    (tmp_path / "folder.npy").mkdir()
    refused(tmp_path / "folder.npy", "not a file")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"not a matrix at all", b"\x93NUMPY"], ids=repr)
def test_damaged_files(tmp_path, suffix, content):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    refused(path)


def test_no_one_is_told_to_load_objects(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object))
    (tmp_path / "b.npy").write_bytes(b"not a matrix at all")
    for name in ("a.npy", "b.npy"):
        refused(tmp_path / name, "damaged or holds Python objects")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_files(tmp_path, matrix, suffix):
    path = tmp_path / f"a{suffix}"
    io.save_matrix(path, matrix)
    path.write_bytes(path.read_bytes()[:-100])
    refused(path)


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (np.ones((4, 3), dtype=np.int64), "int64"),
        (np.ones((4, 3), dtype=np.complex64), "complex64"),
        (np.ones((4, 3), dtype=bool), "bool"),
        (np.ones((4, 3), dtype=[("a", "f4")]), "void"),
        (np.full((4, 3), "x"), "str"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_dtypes(tmp_path, array, name):
    np.save(tmp_path / "a.npy", array)
    refused(tmp_path / "a.npy", name, "float32")


def test_float8_and_sparse_tensors(tmp_path):
    torch.save(torch.ones(4, 3).to(torch.float8_e5m2), tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "float8_e5m2")
    torch.save(torch.eye(4).to_sparse(), tmp_path / "b.pt")
    refused(tmp_path / "b.pt", "sparse")


@pytest.mark.parametrize("suffix", NUMPY_SUFFIXES)
def test_object_arrays_are_not_unpickled(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    array = np.array([[Unpickled()], [Unpickled()]], dtype=object)
    (np.save if suffix == ".npy" else np.savez)(path, array)
    refused(path, "damaged or holds Python objects")
    assert not Unpickled.happened


def test_pickled_objects_are_not_unpickled(tmp_path):
    torch.save({"a": Unpickled()}, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "save the tensor alone")
    (tmp_path / "b.pt").write_bytes(pickle.dumps(Unpickled()))
    refused(tmp_path / "b.pt")
    assert not Unpickled.happened


class Unpickled:
    """Knows whether it was ever read back."""

    happened = False

    def __reduce__(self):
        return _read_back, ()


def _read_back():
    Unpickled.happened = True


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)], ids=str)
def test_other_ranks(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.ones(shape))
    refused(tmp_path / "a.npy", "shape", "matrix")


def test_nothing_that_could_be_a_matrix(tmp_path):
    save_file({"a": torch.ones(3), "b": torch.ones(2, 2).long()}, tmp_path / "a.safetensors")
    refused(tmp_path / "a.safetensors", "no floating-point matrix", "a (3 float32)", "b (2 x 2")
    torch.save({"lr": 0.1}, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "nothing")


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)], ids=str)
def test_empty(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.ones(shape))
    refused(tmp_path / "a.npy", "empty")


def test_one_token(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((1, 4)))
    refused(tmp_path / "a.npy", "1 x 4", "two")
    assert len(io.load_matrix(tmp_path / "a.npy", orientation="columns")[0]) == 4


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_entries_that_are_not_finite(tmp_path, matrix, dtype):
    matrix[3, 2] = float("nan")
    matrix[3, 3] = float("-inf")
    matrix[7, 0] = float("inf")
    torch.save(matrix.to(dtype), tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "1 NaN and 2 infinite", "44", "row 3, column 2")


def test_bad_orientation(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    with pytest.raises(io.InputError, match="'sideways'"):
        io.load_matrix(tmp_path / "a.npy", orientation="sideways")  # pyright: ignore


def test_demo_momentum():
    momentum = io.demo_momentum()
    assert momentum.shape == (4096, 128)
    assert momentum.dtype == torch.float16
