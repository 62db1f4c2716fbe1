"""Run the experiment, or go on with it: `python -m experiments.frozen_head --preset look`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from experiments.frozen_head.config import Training
from experiments.frozen_head.data import load
from experiments.frozen_head.hidden import CACHE
from experiments.frozen_head.presets import PRESETS
from experiments.frozen_head.train import train
from experiments.lm_head.command import fail, go_on
from experiments.lm_head.results import Results

HERE = Path(__file__).parent


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "look",
    time_limit: Annotated[float | None, typer.Option(help="minutes; unfinished runs go on")] = None,
    processes: Annotated[int, typer.Option(min=1, help="runs at a time, one thread each")] = 1,
    only: Annotated[list[str], typer.Option(help="key of a method to run; may be repeated")] = [],  # noqa: B006
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = HERE / "results",
    cache: Annotated[Path, typer.Option(help="folder for model and hidden states")] = CACHE,
) -> None:
    """Tune every head optimiser of a preset, compare them on paired seeds, and print the table.

    Hidden states that are not in the cache are computed first: `experiments.frozen_head.hidden`
    does it with a progress bar.
    """
    if preset not in PRESETS:
        fail(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    go_on(
        PRESETS[preset],
        Results(results, Training),
        command=f"python -m experiments.frozen_head --preset {preset}",
        cache=cache,
        processes=processes,
        time_limit=time_limit,
        only=tuple(only),
        load=load,
        work=train,
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill is like a Ctrl-C
    typer.run(main)
