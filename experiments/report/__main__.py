"""Write the page: `python -m experiments.report [--output rowsep-report/report.html]`."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from experiments.lm_head.presets import PRESETS
from experiments.lm_head.results import ResultsError
from experiments.report.head import MissingResultsError
from experiments.report.page import write

RESULTS = Path(__file__).parents[1] / "lm_head" / "results"


def main(
    output: Annotated[Path, typer.Option(help="HTML file to write")] = Path(
        "rowsep-report/report.html"
    ),
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "cpu",
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = RESULTS,
) -> None:
    """Write one HTML page of all results, which needs nothing but a browser."""
    if preset not in PRESETS:
        _fail(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    try:
        write(output, PRESETS[preset], preset, results)
    except (MissingResultsError, ResultsError, OSError) as error:
        _fail(str(error))
    typer.echo(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB): open it in a browser")


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    typer.run(main)
