"""What `rowsep` and its subcommands say with `--help`."""

import typer
from typer.testing import CliRunner

from rowsep.packing.cli import app


def options() -> str:
    """Return the help of the command and a section with that of each subcommand."""
    names = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    made = [_help()]
    for name in names:
        made += [f"## rowsep {name}", "", _help(name)]
    return "\n".join(made)


def _help(*arguments: str) -> str:
    terminal = {"TERMINAL_WIDTH": "80", "COLUMNS": "80", "NO_COLOR": "1"}
    shown = CliRunner().invoke(app, [*arguments, "--help"], env=terminal, prog_name="rowsep")
    return f"```text\n{shown.output.strip()}\n```\n"
