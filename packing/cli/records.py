"""`rowsep table`, `rowsep configuration` and `rowsep certify`: points of least diameter."""

import csv
import dataclasses
import io
import os
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..bounds.certificate import CertificateError, check_certificate
from ..checks import LARGEST
from ..io import InputError, replacing
from ..point_sets import records
from ..point_sets.configuration import DENOMINATOR, Configuration
from . import report
from .options import AsJson

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
DIGITS = 30
TITLES = ("points", "dim", "squared ratio", "bound", "status", "credit", "starts that agree")
LEFT = ("squared ratio", "status", "credit")
WIDTH = 104
"""Columns that the table needs; a narrower terminal wraps its lines."""


def table(
    dim: Annotated[int | None, typer.Option(min=1, help="Only this dimension.")] = None,
    json: AsJson = False,
) -> None:
    """List the least known squared ratios of largest to smallest distance of n points."""
    found = records.records(dim)
    if not found:
        dims = [one.dim for one in records.records()]
        raise InputError(
            f"--dim {dim}: the table has no entry in this dimension, only in {min(dims)} to "
            f"{max(dims)}"
        )
    if json:
        typer.echo(report.strict_json([dataclasses.asdict(one) for one in found]))
        return
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in TITLES:
        shown.add_column(title, justify="left" if title in LEFT else "right")
    for one in found:
        starts = f"{one.agreeing} of {one.starts}" if one.starts else ""
        shown.add_row(
            str(one.n),
            str(one.dim),
            one.ratio_squared[:16],
            f"{one.bound:.4f}",
            one.status,
            one.credit,
            starts,
        )
    console = Console(highlight=False, width=max(Console().width, WIDTH))
    console.print(shown)
    console.print("Squared ratios are cut off after the digits shown; --json has all of them.")


def configuration(
    num_points: Annotated[int, typer.Argument(metavar="POINTS", help="How many points.")],
    dim: Annotated[int, typer.Argument(metavar="DIM", help="In which dimension.")],
    json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print coordinates, comma-separated.")] = (
        False
    ),
    figure: Annotated[
        Path | None, typer.Option(help="Draw it: a PNG, SVG or PDF file, in R^2 or R^3.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Show the best configuration stored for a number of points, and its gap to the bound."""
    if json and as_csv:
        raise InputError("--json and --csv exclude each other: give one of them")
    if figure is not None:
        _check_figure(figure, dim, force)
    try:
        best = records.best_configuration(num_points, dim)
    except KeyError as error:
        raise InputError(f"{error.args[0]}; {_remedy(num_points, dim)} finds one") from error
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
    if figure is not None:
        _draw(best, figure)
    if json:
        typer.echo(report.strict_json(_figures(best) | best.certificate()))
    elif as_csv:
        rows = csv.writer(buffer := io.StringIO(), lineterminator="\n")
        rows.writerow([f"x{axis + 1}" for axis in range(dim)])
        rows.writerows([[decimal(c) for c in point] for point in best.coordinates])
        typer.echo(buffer.getvalue(), nl=False)
    else:
        _print(best)
    if figure is not None:
        Console(stderr=True, soft_wrap=True).print(f"wrote {figure}", highlight=False)


def certify(
    file: Annotated[Path, typer.Argument(help="The certificate, JSON.")],
) -> None:
    """Check in integer arithmetic that points have the squared ratio that is claimed."""
    try:
        certificate = loads(file.read_text())
        proved = check_certificate(certificate)
    except CertificateError as error:
        raise InputError(f"{file} proves nothing: {error}") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error}") from error
    typer.echo(
        f"proved: {proved.num_points} points in R^{proved.dim} with squared ratio of largest to "
        f"smallest distance at most {certificate['ratio_squared']}"
    )


def _remedy(num_points: int, dim: int) -> str:
    """The call that makes a configuration of this size."""
    exact = num_points * dim <= LARGEST
    function = "rowsep.packing.minimal_diameter" if exact else "rowsep.packing.codes.best_code"
    return f"{function}({num_points}, {dim})"


def decimal(coordinate: int) -> str:
    """Return a coordinate over 10^30 as a decimal number, exactly."""
    whole, part = divmod(abs(coordinate), DENOMINATOR)
    return f"{'-' if coordinate < 0 else ''}{whole}.{part:0{DIGITS}d}"


def _check_figure(figure: Path, dim: int, force: bool) -> None:
    if dim not in (2, 3):
        raise InputError(f"--figure: points in R^{dim} cannot be drawn, only those in R^2 and R^3")
    if figure.suffix not in FIGURE_SUFFIXES:
        raise InputError(
            f"{figure} has the suffix {figure.suffix!r}: use one of {', '.join(FIGURE_SUFFIXES)}"
        )
    if figure.exists() and not force:
        raise InputError(f"{figure} exists: replace it with --force, or name another")
    if not figure.absolute().parent.is_dir():
        raise InputError(f"{figure} cannot be written: there is no such folder")
    if not os.access(figure.absolute().parent, os.W_OK | os.X_OK):
        raise InputError(f"{figure} cannot be written: no permission in its folder")


def _draw(best: Configuration, path: Path) -> None:
    from .picture import configuration_figure  # matplotlib takes a second to import

    drawn = configuration_figure(best)
    try:
        with replacing(path) as file:
            drawn.savefig(file, format=path.suffix[1:], dpi=150)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _figures(best: Configuration) -> dict[str, Any]:
    return {
        "rho": best.rho,
        "bound": best.bound,
        "gap": 1.0 - best.rho / best.bound,
        "optimal": best.optimal,
    }


def _print(best: Configuration) -> None:
    gap = f"{100 * (1 - best.rho / best.bound):.4g} % below the bound {best.bound:.12g}"
    lines = [
        ("points", f"{best.num_points} in R^{best.dim}"),
        ("squared ratio", f"{best.claim}, certified from above"),
        ("rho", f"{best.rho:.16g}"),
        ("gap", "none: the bound is met, so this is optimal" if best.optimal else gap),
        ("starts", f"{best.agreeing} of {best.starts} agree"),
    ]
    told = best.optimality
    if told is not None:
        state = "isolated local optimum" if told.isolated else "local optimum, not isolated"
        lines += [
            ("active pairs", f"{len(told.near)} nearest, {len(told.far)} farthest"),
            ("optimality", state if told.solved else "conditions not met"),
            ("residual", f"{told.residual:.1e}"),
            ("loose points", ", ".join(map(str, told.rattlers)) or "none"),
        ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    for title, text in lines:
        grid.add_row(title, text)
    console = Console(soft_wrap=True, highlight=False)
    console.print(grid)
    console.print()
    for point in best.coordinates:
        console.print("  ".join(f"{decimal(c):>33}" for c in point))
