"""What the commands of the experiments share: bars, refusals, the table at the end."""

from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.lm_head import summary
from experiments.lm_head.comparison import summarise
from experiments.lm_head.config import Run
from experiments.lm_head.execute import Tick, execute
from experiments.lm_head.plan import forecast
from experiments.lm_head.presets import Preset
from experiments.lm_head.results import Results


def go_on(
    preset: Preset,
    store: Results,
    *,
    command: str,
    cache: Path,
    processes: int,
    time_limit: float | None,
    only: tuple[str, ...],
    **experiment: Any,
) -> None:
    """Run what is left of a preset, then print its table.

    Args:
        preset: what to run.
        store: the finished runs.
        command: that goes on with it.
        cache: folder for text and tokens.
        processes: runs at a time.
        time_limit: minutes; None for no limit.
        only: keys of methods; empty for all.
        experiment: `load` and `work` of `execute`, if not those of this experiment.

    Raises:
        typer.Exit: with status 2 after an error that is said, 130 after an interruption.
    """
    console = Console()
    try:
        with store.locked(), _bars(console) as bars:
            finished = execute(
                preset,
                store,
                cache=cache,
                processes=processes,
                command=command,
                time_limit=None if time_limit is None else 60 * time_limit,
                only=only,
                **experiment,
                **_callbacks(bars, lambda: forecast(preset, store.losses(), only)),
            )
    except (ValueError, RuntimeError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        console.print("interrupted: the same command goes on from here")
        raise typer.Exit(130) from None
    summary.show(summarise(preset, store.records()), console, preset.table)
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


def fail(message: str) -> NoReturn:
    """Say what is wrong and end with status 2."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)
