"""`rowsep solve`: separate the rows of a momentum in a file."""

import dataclasses
import io
import math
import os
import shlex
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NamedTuple

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from .. import bounds, cloud
from ..baselines import BASELINES, Quality, quality
from ..extras import extra
from ..io import InputError, MatrixInfo, check_writable, matrix_bytes, replacing
from ..solution import Progress as Pass
from ..solution import Solution
from ..solve import solve as separate
from . import report
from .options import AsJson, Key, Momentum, RealRows, Side, complain, load, taking_part

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
FRONT_FLOORS = (0.7, 0.65, 0.6, 0.5, 0.4, 0.3)
FRONT_WORK = 6e10
"""`V^2 d` times passes up to which the front is drawn unasked: some seconds for each floor."""


class Outputs(NamedTuple):
    """The files that `rowsep solve` leaves."""

    update: Path
    summary: Path
    figure: Path | None


class Interrupts:
    """Remembers a Ctrl-C that somebody else may have caught, for as long as it is entered."""

    def __init__(self) -> None:
        """Start with none seen."""
        self.seen = False

    def __enter__(self) -> "Interrupts":
        """Take over the signal."""
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        """Give the signal back."""
        signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


def solve(
    context: typer.Context,
    momentum: Momentum = None,
    key: Key = None,
    orientation: Side = "auto",
    out: Annotated[
        str, typer.Option(help="Folder for the results, or the file of the update.")
    ] = "rowsep-out",
    summary: Annotated[Path | None, typer.Option(help="File of the JSON summary.")] = None,
    figure: Annotated[Path | None, typer.Option(help="File of the figure, PNG or SVG.")] = None,
    no_figure: Annotated[bool, typer.Option("--no-figure", help="Draw no figure.")] = False,
    diameter: Annotated[float, typer.Option(help="Largest distance of two rows.")] = 1.0,
    alignment: Annotated[float, typer.Option(help="Floor on what --measure says.")] = 0.5,
    measure: Annotated[
        Literal["decrease", "cosine"],
        typer.Option(help="decrease: share of the largest loss decrease; cosine: the plain one."),
    ] = "decrease",
    solver: Annotated[
        Literal["projected_gradient", "smoothed", "guttman", "exact"],
        typer.Option(help="The algorithm; exact is for small matrices."),
    ] = "projected_gradient",
    passes: Annotated[
        int, typer.Option(min=1, help="Most passes of the solver; those that certify come on top.")
    ] = 24,
    starts: Annotated[
        int, typer.Option(min=1, help="Starts of the exact solver, rounded up to batches of 64.")
    ] = 256,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Stop when rho gains less than this part of itself in 8 passes."),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is random.")] = 0,
    real_rows: RealRows = None,
    front: Annotated[
        bool | None,
        typer.Option(
            "--front/--no-front",
            help="Solve for other floors too and draw the trade-off; by default if it is cheap.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Find an update of bounded row diameter and large row separation that keeps an alignment."""
    M, info = load(momentum, key, orientation)
    rows = taking_part(real_rows, M)
    outputs = _outputs(out, summary, figure, no_figure=no_figure, momentum=momentum)
    _check_outputs(outputs, M.dtype, momentum, force)
    A = cloud.centre(M[:rows].double())
    _check_reachable(A, alignment, measure)
    if outputs.figure:
        with extra("cli"):  # refused before the work
            from . import plot  # noqa: F401
    err = Console(stderr=True, soft_wrap=True)
    if info.note and not quiet:
        err.print(f"note: {info.note}", highlight=False)

    options: dict[str, Any] = {
        "diameter": diameter,
        "alignment": alignment,
        "measure": measure,
        "solver": solver,
        "passes": passes,
        "starts": starts,
        "tolerance": tolerance,
        "time_limit": time_limit,
    }
    mask = None if rows == len(M) else torch.arange(len(M)) < rows
    with Interrupts() as interrupts:
        began = time.perf_counter()
        try:
            solution = _watched(M, err, quiet=quiet, mask=mask, seed=seed, **options)
        except KeyboardInterrupt:
            complain("interrupted before there was an update: wrote nothing")
            raise typer.Exit(130) from None
        seconds = time.perf_counter() - began
        if not (solution.met or interrupts.seen):
            raise InputError(f"--alignment {alignment:g} was not met: {solution.stop}")
        real = dataclasses.replace(solution, update=solution.update[:rows])
        baselines: dict[str, Quality] = {}
        others: list[tuple[float, Solution]] = []
        try:
            if not interrupts.seen:
                baselines |= {name: quality(A, one(A)) for name, one in BASELINES.items()}
            cheap = rows**2 * A.shape[1] * passes <= FRONT_WORK
            wanted = cheap if front is None else front
            if outputs.figure and wanted and not interrupts.seen:
                others.append((alignment, real))
                for floor in FRONT_FLOORS:
                    if interrupts.seen:
                        break
                    if any(_spare(floor, *other, measure) for other in others):
                        continue
                    one = _solve(M[:rows], seed=seed, **options | {"alignment": floor})
                    if one.met and not interrupts.seen:
                        others.append((floor, one))
        except KeyboardInterrupt:
            pass  # the update is there; the comparisons are what is left out
        try:
            drawn = _drawn(outputs.figure, A, real, baselines, others, measure)
        except KeyboardInterrupt:
            drawn, outputs = None, outputs._replace(figure=None)

    outcome = report.summary(
        command=shlex.join(["rowsep", *context.obj]),
        info=info,
        rows=rows,
        options=options,
        seed=seed,
        seconds=seconds,
        interrupted=interrupts.seen,
        solution=solution,
        baselines=baselines,
        front=others,
        outputs={name: str(path) if path else None for name, path in outputs._asdict().items()},
    )
    _write(outputs, solution.update, info, outcome, drawn)
    if json:
        typer.echo(report.strict_json(outcome))
    elif not quiet:
        console = Console(soft_wrap=True, highlight=False)
        console.print(report.summary_table(info, rows, solution, seconds, baselines))
    written = ", ".join(str(path) for path in outputs if path)
    if interrupts.seen:
        missed = "" if solution.met else ", which misses the alignment floor"
        complain(f"interrupted: wrote the best update so far{missed}: {written}")
        raise typer.Exit(130)
    if not quiet:
        err.print(f"wrote {written}", highlight=False)


def _outputs(
    out: str,
    summary: Path | None,
    figure: Path | None,
    *,
    no_figure: bool,
    momentum: Path | None,
) -> Outputs:
    """Return the files to write: in a folder, or beside the file that is named for the update."""
    if no_figure and figure:
        raise InputError("--figure and --no-figure exclude each other: give one of them")
    path = Path(out)
    if out.endswith(("/", os.sep)) or path.is_dir() or not path.suffix:
        update = path / f"update{momentum.suffix if momentum else '.safetensors'}"
        beside = path / "summary.json", path / "figure.png"
    else:
        update = path
        beside = path.with_suffix(".json"), path.with_suffix(".png")
    return Outputs(update, summary or beside[0], None if no_figure else figure or beside[1])


def _check_outputs(
    outputs: Outputs, dtype: torch.dtype, momentum: Path | None, force: bool
) -> None:
    """Refuse what could not be written after the work, or would replace what is there."""
    check_writable(outputs.update, dtype)
    if outputs.figure and outputs.figure.suffix not in FIGURE_SUFFIXES:
        raise InputError(
            f"{outputs.figure} has the suffix {outputs.figure.suffix!r}: use one of "
            f"{', '.join(FIGURE_SUFFIXES)}"
        )
    paths = [path for path in outputs if path]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"two outputs are one file: {', '.join(map(str, paths))}")
    for path in paths:
        if momentum and path.resolve() == momentum.resolve():
            raise InputError(f"{path} is the input: write elsewhere")
        if path.is_dir():
            raise InputError(f"{path} is a folder: name a file")
        if path.exists() and not force:
            raise InputError(f"{path} exists: replace it with --force, or write elsewhere by --out")
        folder = next(one for one in path.absolute().parents if one.exists())
        if not folder.is_dir():
            raise InputError(f"{path} cannot be written: {folder} is not a folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{path} cannot be written: no permission in {folder}")


def _check_reachable(A: Tensor, floor: float, measure: str) -> None:
    """Refuse a floor above what is certified to be reachable.

    Row normalisation always reaches `sqrt((d+1)/(2d))`, so lower floors need no bound.
    """
    dim = A.shape[1]
    if measure != "decrease" or not floor > math.sqrt((dim + 1) / (2 * dim)) or not A.any():
        return
    upper = bounds.alignment_upper_bound(A)
    if floor > upper:
        raise InputError(
            f"--alignment {floor:g} cannot be reached: no update of this momentum has more than "
            f"{upper:.4f}; lower it"
        )


def _solve(M: Tensor, **options: Any) -> Solution:
    """Solve, and let a refusal of the solver's front door be one line."""
    try:
        return separate(M, **options)
    except ValueError as error:
        raise InputError(str(error)) from error


def _watched(M: Tensor, err: Console, *, quiet: bool, passes: int, **options: Any) -> Solution:
    """Solve with a progress bar, from the first pass on, if `err` is a terminal."""
    if quiet or not err.is_terminal:
        return _solve(M, passes=passes, **options)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("rho {task.fields[rho]:.3f}  alignment {task.fields[alignment]:.3f}"),
        TimeElapsedColumn(),
        console=err,
    )
    task = bar.add_task("passes", total=passes, rho=0.0, alignment=0.0)

    def on_pass(seen: Pass) -> None:
        bar.start()
        bar.update(task, completed=seen.passes, rho=seen.rho, alignment=seen.alignment)

    try:
        return _solve(M, passes=passes, on_pass=on_pass, **options)
    finally:
        bar.stop()


def _spare(floor: float, solved: float, solution: Solution, measure: str) -> bool:
    """Tell whether a solution never came near its floor, so that a lower one gives it again."""
    seen = [one.alignment if measure == "decrease" else one.cosine for one in solution.history]
    return floor <= solved < min(seen, default=math.inf)


def _drawn(path: Path | None, *drawing: Any) -> bytes | None:
    """Return the figure's file."""
    if path is None:
        return None
    from .plot import figure  # matplotlib takes a second to import

    A, solution, baselines, front, measure = drawing
    buffer = io.BytesIO()
    made = figure(A, solution, baselines, front, measure=measure)
    made.savefig(buffer, format=path.suffix[1:], dpi=120)
    return buffer.getvalue()


def _write(
    outputs: Outputs,
    update: Tensor,
    info: MatrixInfo,
    outcome: dict[str, Any],
    drawn: bytes | None,
) -> None:
    metadata = {
        "rowsep": outcome["versions"]["rowsep"],
        "date": outcome["date"],
        "command": outcome["command"],
        "input_sha256": info.sha256,
    }
    contents = {} if outputs.figure is None or drawn is None else {outputs.figure: drawn}
    contents[outputs.summary] = report.strict_json(outcome).encode() + b"\n"
    contents[outputs.update] = matrix_bytes(  # last in, so the first to take its place
        outputs.update, update, metadata, orientation=info.orientation
    )
    path = outputs.update
    try:
        with ExitStack() as together:  # all are on disk before the first takes its place
            for path, content in contents.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                file = together.enter_context(replacing(path))
                file.write(content)
                file.flush()
    except OSError as error:
        raise InputError(f"{error.filename or path} cannot be written: {error.strerror}") from error
