"""`rowsep measure`: what a matrix is like as a cloud of rows."""

import typer
from rich.console import Console

from . import report
from .options import AsJson, Key, Momentum, RealRows, Side, load, taking_part


def measure(
    matrix: Momentum = None,
    key: Key = None,
    orientation: Side = "auto",
    real_rows: RealRows = None,
    json: AsJson = False,
) -> None:
    """Print diameter, separation, row norms and spectrum of a matrix."""
    M, info = load(matrix, key, orientation)
    if info.note:
        Console(stderr=True, soft_wrap=True).print(f"note: {info.note}", highlight=False)
    figures = report.measured(M[: taking_part(real_rows, M)], info)
    if json:
        typer.echo(report.strict_json(figures))
    else:
        Console(soft_wrap=True, highlight=False).print(report.measured_table(figures))
