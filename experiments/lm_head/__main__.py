"""Run the experiment, or go on with it: `python -m experiments.lm_head --preset cpu`."""

import signal
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.lm_head import summary
from experiments.lm_head.comparison import summarise
from experiments.lm_head.config import Run
from experiments.lm_head.execute import Tick, execute
from experiments.lm_head.plan import forecast
from experiments.lm_head.presets import PRESETS
from experiments.lm_head.results import Results
from experiments.text import TextUnavailableError

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
        _fail(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    chosen, store, console = PRESETS[preset], Results(results), Console()
    command = f"python -m experiments.lm_head --preset {preset}"
    try:
        with store.locked(), _bars(console) as bars:
            finished = execute(
                chosen,
                store,
                cache=cache,
                processes=processes,
                command=command,
                time_limit=None if time_limit is None else 60 * time_limit,
                only=tuple(only),
                **_callbacks(bars, lambda: forecast(chosen, store.losses(), tuple(only))),
            )
    except (TextUnavailableError, ValueError, RuntimeError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        console.print("interrupted: the same command goes on from here")
        raise typer.Exit(130) from None
    summary.show(summarise(chosen, store.records()), console)
    if not finished:
        console.print(f"not finished: run `{command}` again to go on")


def _callbacks(bars: Progress, left: Any) -> dict[str, Any]:
    """Bars: one over all runs, one for each in progress."""
    total = bars.add_task("runs", total=left())
    tasks: dict[str, Any] = {}

    def on_start(run: Run) -> None:
        steps = run.training.steps
        title = f"{run.name}, V {run.training.vocab}, lr {run.lr:g}, seed {run.seed}"
        tasks[run.key] = bars.add_task(title, total=steps)

    def on_tick(tick: Tick) -> None:
        if tick.key in tasks:
            bars.update(tasks[tick.key], completed=tick.steps)

    def on_finish(run: Run, outcome: dict[str, Any]) -> None:
        bars.remove_task(tasks.pop(run.key))
        bars.console.print(
            f"{run.name}, V {run.training.vocab}, lr {run.lr:g}, seed {run.seed}: "
            f"{outcome['val_loss']:.4f} in {outcome['seconds']:.0f} s"
        )
        done = bars.tasks[0].completed + 1
        bars.update(total, completed=done, total=done + left())

    return {"on_start": on_start, "on_tick": on_tick, "on_finish": on_finish}


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill is like a Ctrl-C
    typer.run(main)
