"""Momenta by name: the shipped one, or a file's with every k-th row, `file.npy::k`."""

from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from rowsep.packing.cloud import centre
from rowsep.packing.io import demo_momentum, load_matrix


def load(name: str) -> Tensor:
    """Return a momentum, shape (V, d), float32, centred.

    Args:
        name: `shipped`, or the path of a file that `rowsep.packing.io.load_matrix` reads, with
            `::stride` behind it to take every row whose number is a multiple of the stride.

    Raises:
        ValueError: the stride is not a positive integer.
        InputError: there is no such file, or it holds no matrix.
    """
    if name == "shipped":
        return centre(demo_momentum().float())
    path, colons, stride = name.partition("::")
    if colons and not (stride.isdecimal() and int(stride) > 0):
        raise ValueError(f"{name!r} has the stride {stride!r}, expected a positive integer")
    matrix, _ = load_matrix(Path(path))
    return centre(matrix[:: int(stride or 1)].float())


def short(name: str) -> str:
    """Return what a momentum is called in results: the file's own name, with its stride."""
    return Path(name).name


def _readable(names: list[str] | None) -> list[str] | None:
    """Refuse what cannot be read on the command line, before any work is done."""
    for name in names or []:
        try:
            load(name)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return names


Names = Annotated[
    list[str] | None, typer.Argument(help="files, `::stride` allowed", callback=_readable)
]
"""The momenta that an experiment's command takes."""
