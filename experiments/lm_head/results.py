"""The finished runs: one CSV row a run, and a JSON file each with its history.

    results/runs.csv, results/history/<key>.json, results/checkpoints/<key>.pt

A row is written after its history and before its checkpoint goes, whole or not at all, so a run is
either in the table or goes on from its checkpoint.
"""

import csv
import datetime
import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import cpu
from experiments.lm_head.config import Run, Training
from experiments.lm_head.diagnostics import BANDS
from rowsep.packing.cli.report import rowsep_version

OUTCOME = ("val_loss", "bits_per_byte", "diverged", "seconds", "head_share")
BAND_FIELDS = tuple(f"val_loss_top_{end:g}" for end in BANDS)
"""Validation loss on targets of each frequency band, by the upper end of its share of tokens."""
FIELDS = (
    "key",
    "name",
    "optimizer",
    "vocab",
    "lr",
    "seed",
    *OUTCOME,
    *BAND_FIELDS,
    "options",
    "schedule",
    *(f.name for f in fields(Training) if f.name != "vocab"),
    "corpus",
    "rowsep",
    "torch",
    "python",
    "machine",
    "commit",
    "date",
    "command",
)


class Results:
    """A folder of finished runs and of checkpoints."""

    def __init__(self, folder: Path):
        """Use a folder, which is made when something is written."""
        self.folder = folder
        self.table = folder / "runs.csv"

    def checkpoint(self, run: Run) -> Path:
        """Return the file for the state of a run in progress."""
        return self.folder / "checkpoints" / f"{run.key}.pt"

    def rows(self) -> list[dict[str, str]]:
        """Return the finished runs as the table has them, all values as text."""
        if not self.table.exists():
            return []
        with self.table.open(newline="") as file:
            return list(csv.DictReader(file))

    def add(self, run: Run, outcome: dict[str, Any], *, corpus: str, command: str) -> None:
        """Write the history and the row of a finished run, then remove its checkpoint.

        Args:
            run: what was run.
            outcome: from `train.train`.
            corpus: digest of its text.
            command: that repeats it.
        """
        history = {"key": run.key, **run.settings(), **outcome["history"]}
        _write(self.folder / "history" / f"{run.key}.json", json.dumps(_shortened(history)) + "\n")
        settings = run.settings()
        row = {
            **settings,
            "key": run.key,
            "options": json.dumps(settings["options"]),
            "schedule": json.dumps(settings["schedule"]),
            **{name: _shortened(outcome[name]) for name in OUTCOME},
            **dict(zip(BAND_FIELDS, _shortened(outcome["band_losses"]), strict=False)),
            "corpus": corpus,
            **provenance(),
            "command": command,
        }
        _write_table(self.table, [*self.rows(), row])
        self.checkpoint(run).unlink(missing_ok=True)

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


def provenance() -> dict[str, str]:
    """Return versions, machine, commit (with "+" if files differ from it) and date."""
    here = Path(__file__).parent
    git = ["git", "-C", str(here)]
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True)
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no", "--", ":/*.py"],
        capture_output=True,
    )
    known = commit.returncode == 0
    mark = "+" if changed.stdout.strip() else ""
    return {
        "rowsep": rowsep_version(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": cpu(),
        "commit": commit.stdout.decode().strip() + mark if known else "unknown",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, path)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(content)
    os.replace(partial, path)


def _shortened(value: Any) -> Any:
    """The same with floats rounded to seven digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(v) for v in value]
    return value
