"""Run the experiment, or go on with it: `python -m experiments.lm_head --preset cpu`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from experiments.lm_head.command import fail, go_on
from experiments.lm_head.presets import PRESETS
from experiments.lm_head.results import Results

HERE = Path(__file__).parent
CACHE = Path(__file__).parents[2] / ".cache" / "lm_head"


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "cpu",
    time_limit: Annotated[float | None, typer.Option(help="minutes; unfinished runs go on")] = None,
    processes: Annotated[int, typer.Option(min=1, help="runs at a time, one thread each")] = 1,
    only: Annotated[list[str], typer.Option(help="key of a method to run; may be repeated")] = [],  # noqa: B006
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = HERE / "results",
    cache: Annotated[Path, typer.Option(help="folder for text and tokens")] = CACHE,
) -> None:
    """Tune every head optimiser of a preset, compare them on paired seeds, and print the table."""
    if preset not in PRESETS:
        fail(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    go_on(
        PRESETS[preset],
        Results(results),
        command=f"python -m experiments.lm_head --preset {preset}",
        cache=cache,
        processes=processes,
        time_limit=time_limit,
        only=tuple(only),
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill is like a Ctrl-C
    typer.run(main)
