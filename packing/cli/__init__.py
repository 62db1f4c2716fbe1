"""The command `rowsep`.

It separates the rows of a momentum in a file, measures a matrix, and shows and checks the record
table of point sets of least diameter.

Exit codes: 0 done; 2 an option, a file or a floor that cannot be met, said in one line on stderr
and with nothing written; 130 interrupted by Ctrl-C, with the best update so far written if there is
one.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..extras import MissingExtraError
from ..io import InputError
from . import measure, records, report, solve
from .options import complain

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
for command, summary in (
    (solve.solve, "Turn a momentum into an update with separated rows."),
    (measure.measure, "Print diameter, separation and spectrum of a matrix."),
    (records.table, "List the least known ratios of distances of n points."),
    (records.configuration, "Show the best stored configuration of n points."),
    (records.certify, "Check a configuration in integer arithmetic."),
):
    app.command(short_help=summary)(command)


@app.callback(invoke_without_command=True)
def rowsep(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Separate the rows of a head's momentum, measure a matrix, show points of least diameter."""
    if version:
        typer.echo(f"rowsep {report.rowsep_version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: those of the process if None.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return app(arguments, prog_name="rowsep", standalone_mode=False, obj=arguments) or 0
    except typer.TyperException as error:
        complain(error.format_message())
    except (InputError, MissingExtraError) as error:
        complain(str(error))
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 2
