"""The finished runs: compressed JSON Lines, a file for each text, vocabulary size and width.

    results/<text>-<V>x<d>.jsonl.gz, results/checkpoints/<key>.pt

A line is a `Record`. Each is a gzip member of its own, put behind those before it, so that a file
grows at its end only, `zcat` shows it, and git keeps the new lines alone. A file is replaced whole
and before the run's checkpoint goes: a run is either in it or goes on from its checkpoint.
"""

import fcntl
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.lm_head.config import Run, Training
from experiments.lm_head.record import Record

SUFFIX = ".jsonl.gz"


class ResultsError(ValueError):
    """A file of results cannot be read or added to; the message says what to do."""


class Results:
    """A folder of finished runs and of checkpoints."""

    def __init__(self, folder: Path, training: type[Any] = Training):
        """Use a folder, which is made when something is written.

        Args:
            folder: where files are.
            training: class of the runs' `training`.
        """
        self.folder, self.training = folder, training

    def checkpoint(self, run: Run) -> Path:
        """Return the file for the state of a run in progress."""
        return self.folder / "checkpoints" / f"{run.key}.pt"

    def files(self) -> list[Path]:
        """Return the files of finished runs, by name."""
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def records(self) -> list[Record]:
        """Return the finished runs, file by file, in the order in which they were finished.

        Raises:
            ResultsError: a file is cut short or damaged, holds what is no record or one of a
                version that is not known, or a run is there twice.
        """
        found: dict[str, Record] = {}
        places: dict[str, Path] = {}
        for path in self.files():
            for number, line in enumerate(_lines(path), 1):
                try:
                    record = Record.read(line, self.training)
                except ValueError as error:
                    raise ResultsError(f"{path}, line {number}: {error}") from None
                if record.key in found:
                    raise ResultsError(
                        f"{path}, line {number}: run {record.key} is in {places[record.key]} "
                        "already; delete one of the two (gunzip, delete the line, gzip)"
                    )
                found[record.key], places[record.key] = record, path
        return list(found.values())

    def losses(self) -> dict[str, float]:
        """Return the final loss of every finished run, nats a token, by key."""
        return {record.key: record.val_loss for record in self.records()}

    def add(self, record: Record) -> None:
        """Write a finished run, then remove its checkpoint; to be called under `locked`.

        Raises:
            ResultsError: the run is there already, or a file cannot be read; nothing is changed.
        """
        if record.key in self.losses():
            raise ResultsError(f"run {record.key} ({record.run.name}) is in {self.folder} already")
        training = record.run.training
        path = self.folder / f"{training.text}-{training.vocab}x{training.d}{SUFFIX}"
        before = path.read_bytes() if path.exists() else b""
        _replace(path, before + gzip.compress(record.line().encode() + b"\n", mtime=0))
        self.checkpoint(record.run).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here.

        Raises:
            RuntimeError: one is at it already.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RuntimeError(
                    f"another process is writing to {self.folder}: wait for it, or give another "
                    "--results"
                ) from error
            yield


def _lines(path: Path) -> list[str]:
    try:
        text = gzip.decompress(path.read_bytes()).decode()
        if not text.endswith("\n"):
            raise EOFError("the last line has no end")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ResultsError(
            f"{path} is cut short or damaged ({error}): restore it, for instance with "
            f"`git checkout -- {path}`"
        ) from None
    return text.split("\n")[:-1]


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a kill, or a loss of power, leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # before the checkpoint goes
    finally:
        os.close(folder)
