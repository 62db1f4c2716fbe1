"""Run what the plan says on several processes, one thread each, until it is done or time is up."""

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from experiments.lm_head.config import Run
from experiments.lm_head.corpus import load_corpus
from experiments.lm_head.plan import cells, pending
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record
from experiments.lm_head.results import Results
from experiments.lm_head.train import train

POLL_SECONDS = 0.2


class Tick(NamedTuple):
    """A sign of life: a run has done so many steps."""

    key: str
    steps: int


def execute(
    preset: Preset,
    results: Results,
    *,
    load: Callable[[Any, Path], Any] = load_corpus,
    work: Callable[..., dict[str, Any] | None] = train,
    cache: Path,
    processes: int,
    command: str,
    time_limit: float | None = None,
    only: tuple[str, ...] = (),
    on_start: Callable[[Run], None],
    on_tick: Callable[[Tick], None],
    on_finish: Callable[[Run, dict[str, Any]], None],
) -> bool:
    """Run what is pending, and what becomes so, and write it to the results.

    A run in progress when time is up, or on Ctrl-C, leaves a checkpoint from which it goes on the
    next time.

    Args:
        preset: what to run.
        results: where finished runs are; written by this process alone.
        load: called with a training and the cache; returns its data, which has a `digest`, and
            leaves in the cache what is slow to make.
        work: called as `train.train` is, with a run and its data.
        cache: folder for text and tokens.
        processes: runs at a time.
        command: stored with every run.
        time_limit: seconds; None for no limit.
        only: names of methods; empty for all.
        on_start: called with a run when it is given to a process.
        on_tick: called now and then with the progress of a run.
        on_finish: called with a run and its outcome when it is written.

    Returns:
        Whether everything of the preset is finished.

    Raises:
        KeyboardInterrupt: after the runs in progress have written their checkpoints.
        Exception: of a run; what is finished is written.
    """
    for training in dict.fromkeys(cell.training for cell in cells(preset, only)):
        load(training, cache)  # once, before the processes ask for it
    deadline = None if time_limit is None else time.time() + time_limit
    losses = results.losses()
    context = multiprocessing.get_context("spawn")
    ticks, stopping = context.Queue(), context.Event()
    running: dict[Future, Run] = {}
    with ProcessPoolExecutor(
        processes, context, initializer=_start, initargs=(ticks, stopping, os.getpid())
    ) as pool:
        try:
            while True:
                if len(running) < processes and (deadline is None or time.time() < deadline):
                    busy = {run.key for run in running.values()}
                    ready = [run for run in pending(preset, losses, only) if run.key not in busy]
                    for run in ready[: processes - len(running)]:
                        checkpoint = results.checkpoint(run)
                        running[
                            pool.submit(_work, load, work, run, cache, checkpoint, deadline)
                        ] = run
                        on_start(run)
                if not running:
                    return not pending(preset, losses, only)
                done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for tick in _drained(ticks):
                    on_tick(tick)
                for future in done:
                    run = running.pop(future)
                    found = future.result()
                    if found is not None:
                        outcome, digest = found
                        results.add(Record.of(run, outcome, corpus=digest, command=command))
                        losses[run.key] = outcome["val_loss"]
                        on_finish(run, outcome)
        except BaseException:
            stopping.set()
            raise


_shared: dict[str, Any] = {}


def _start(ticks: Any, stopping: Any, parent: int) -> None:
    """Prepare a process: one thread, deaf to Ctrl-C, which is for the parent to pass on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    _shared.update(ticks=ticks, stopping=stopping, parent=parent, busy=False)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End once the parent is gone and the checkpoint written: a pool left alone waits for ever."""
    while os.getppid() == _shared["parent"] or _shared["busy"]:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def _work(
    load: Callable[[Any, Path], Any],
    work: Callable[..., dict[str, Any] | None],
    run: Run,
    cache: Path,
    checkpoint: Path,
    deadline: float | None,
) -> tuple[dict[str, Any], str] | None:
    """Train; the outcome and the digest of the data, or None if there was no time to finish."""
    data = _data(load, run.training, cache)

    def stop() -> bool:
        late = deadline is not None and time.time() > deadline
        return late or _shared["stopping"].is_set() or os.getppid() != _shared["parent"]

    def on_step(steps: int) -> None:
        _shared["ticks"].put(Tick(run.key, steps))

    _shared["busy"] = True
    try:
        outcome = work(run, data, checkpoint=checkpoint, on_step=on_step, stop=stop)
    finally:
        _shared["busy"] = False
    return None if outcome is None else (outcome, data.digest)


@lru_cache(maxsize=2)
def _data(load: Callable[[Any, Path], Any], training: Any, cache: Path) -> Any:
    return load(training, cache)


def _drained(ticks: Any) -> list[Tick]:
    found = []
    while True:
        try:
            found.append(ticks.get_nowait())
        except queue.Empty:
            return found
