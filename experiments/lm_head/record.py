"""A finished run as it is kept: its settings, what came out, its course, and where it comes from.

One line of JSON, whose `version` says how to read it. Numbers that are not finite stand as
`Infinity` and `NaN`, which JSON proper does not have.
"""

import datetime
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import cpu
from experiments.lm_head.config import Run, Training
from rowsep.packing.cli.report import rowsep_version

VERSION = 1
NUMBERS = ("val_loss", "bits_per_byte", "seconds", "head_share")
SETTINGS = ("name", "optimizer", "options", "schedule", "lr", "seed")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One finished run.

    Args:
        run: its settings; options that have come up since it was run have their defaults.
        val_loss: after the last step, nats a token; infinite if it diverged.
        bits_per_byte: the same by the byte of text.
        band_losses: the same on the targets of each of `diagnostics.BANDS`; empty if it diverged.
        diverged: whether loss or head became NaN or infinite.
        seconds: of the steps.
        head_share: of them, in the head's optimiser.
        history: "train", "evaluations" and "measures", each a list of entries with their "step".
        corpus: digest of the text.
        rowsep: version.
        torch: version.
        python: version.
        machine: processor.
        commit: of this repository, with "+" if files differed from it.
        date: ISO 8601, UTC.
        command: that repeats it.
    """

    run: Run
    val_loss: float
    bits_per_byte: float
    band_losses: tuple[float, ...]
    diverged: bool
    seconds: float
    head_share: float
    history: Mapping[str, list[dict[str, Any]]]
    corpus: str
    rowsep: str
    torch: str
    python: str
    machine: str
    commit: str
    date: str
    command: str

    @property
    def key(self) -> str:
        """That of the run, see `Run.key`."""
        return self.run.key

    @classmethod
    def of(cls, run: Run, outcome: Mapping[str, Any], *, corpus: str, command: str) -> "Record":
        """Return the record of a run that is finished now.

        Args:
            run: what was run.
            outcome: from `train.train`; its numbers are rounded to seven digits.
            corpus: digest of its text.
            command: that repeats it.
        """
        found = _rounded(outcome)
        found["band_losses"] = tuple(found["band_losses"])
        place: dict[str, Any] = {"corpus": corpus, "command": command, **provenance()}
        return cls(run=run, **found, **place)

    def line(self) -> str:
        """Return it as a line of JSON without its end."""
        content = asdict(self)
        settings = content.pop("run")
        training = settings.pop("training")
        head = {"version": VERSION, "key": self.key, **settings, "training": training}
        return json.dumps(head | content, separators=(",", ":"))

    @classmethod
    def read(cls, line: str, training: type[Any] = Training) -> "Record":
        """Return what a line holds.

        Args:
            line: as `Record.line` returns it.
            training: class of the run's `training`.

        Raises:
            ValueError: it is no record, or one of a version that is not known here.
        """
        try:
            content = json.loads(line)
            version = content.pop("version")
        except (ValueError, AttributeError, KeyError, TypeError):
            raise ValueError(f"{line[:40]!r} is no record of a run") from None
        if version != VERSION:
            raise ValueError(
                f"version is {version!r}, expected {VERSION}: take a later commit of this "
                "repository, which knows it"
            )
        try:
            key = content.pop("key")  # for those who search the file; the settings say it too
            shared = training(**content.pop("training"))
            run = Run(training=shared, **{name: content.pop(name) for name in SETTINGS})
            content["band_losses"] = tuple(content["band_losses"])
            record = cls(run=run, **content)
            for name in NUMBERS:
                if type(getattr(record, name)) not in (int, float):
                    raise TypeError(f"{name} is {content[name]!r}, expected a number")
            if type(record.diverged) is not bool or not isinstance(record.history, dict):
                raise TypeError("diverged must be true or false, and history an object")
            if key != record.key:
                raise TypeError(f"key is {key!r}, but its settings are those of {record.key!r}")
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a whole record of version {VERSION}: {error}") from None
        return record


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


def _rounded(value: Any) -> Any:
    """The same with floats rounded to seven digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return value
