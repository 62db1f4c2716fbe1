"""Options and refusals that the commands share."""

from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from ..io import InputError, MatrixInfo, Orientation, load_demo, load_matrix

Momentum = Annotated[
    Path | None, typer.Argument(help="File with the momentum; the shipped one if left out.")
]
Key = Annotated[str | None, typer.Option(help="The matrix to take from a file with several.")]
Side = Annotated[
    Orientation, typer.Option(help="Where the tokens are; auto takes the longer axis.")
]
RealRows = Annotated[
    int | None, typer.Option(help="Only the first N rows are tokens; the others are padding.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def complain(message: str) -> None:
    """Say on stderr, in one line, what went wrong."""
    typer.echo(f"rowsep: {' '.join(message.split())}", err=True)


def load(path: Path | None, key: str | None, orientation: Orientation) -> tuple[Tensor, MatrixInfo]:
    """Return the matrix in a file, the shipped momentum without one."""
    if path is not None:
        return load_matrix(path, key=key, orientation=orientation)
    if key is not None:
        raise InputError(f"--key {key} without a file: name the file that it is in")
    return load_demo()


def taking_part(real_rows: int | None, M: Tensor) -> int:
    """Return how many rows take part."""
    if real_rows is None:
        return len(M)
    if not 2 <= real_rows <= len(M):
        raise InputError(f"--real-rows is {real_rows}: it must be between 2 and {len(M)}")
    return real_rows
