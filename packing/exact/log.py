"""Searches on disk: JSON lines, one for each problem, kept up to date batch by batch.

A line holds `num_points`, `dim`, `seed`, `given` (a digest of the clouds given, empty without),
`problem` ("cloud" or "sphere"; "cloud" where a line has none), `starts`, `failed`, `basins` (pairs
of squared ratio and starts, the least first), `kinds`, `points` (the best ones, float64 to the last
bit), `seconds`, `versions` and `date`.
"""

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..io import InputError, replacing
from .search import Basin, Found
from .starts import Cloud


class Key(NamedTuple):
    """What a search is told apart by."""

    num_points: int
    dim: int
    seed: int
    given: str = ""
    problem: str = "cloud"


def digest(given: Sequence[Cloud]) -> str:
    """Return what tells the clouds given to a search from others; empty if there are none."""
    if not given:
        return ""
    hashed = hashlib.sha256()
    for cloud in given:
        hashed.update(repr(cloud.shape).encode() + cloud.astype("<f8").tobytes())
    return hashed.hexdigest()[:16]


class SearchLog:
    """The searches in a file; one process at a time may write to it."""

    def __init__(self, path: Path | str):
        """Read the file if it exists.

        Raises:
            InputError: it is not such a log, or cannot be read.
        """
        self.path = Path(path)
        self.lines: dict[Key, dict[str, Any]] = {}
        try:
            text = self.path.read_text() if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} is no search log ({error}): name a file") from error
        for number, line in enumerate(text.splitlines(), 1):
            try:
                entry = json.loads(line)
                known = {"problem": "cloud"} | entry
                key = Key(*(known[name] for name in Key._fields))
                _found(key, entry)
                self.lines[key] = entry
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{self.path}, line {number}, is no entry of a search log ({error!r}): "
                    f"name another file, or remove the line"
                ) from error

    def found(self, key: Key) -> Found:
        """Return what is known of a search, nothing if it is not in the log."""
        entry = self.lines.get(key)
        return Found() if entry is None else _found(key, entry)

    def write(self, key: Key, found: Found, seconds: float) -> None:
        """Replace the entry of a search; `seconds` is added to what it has taken so far."""
        before = self.lines.get(key, {}).get("seconds", 0.0)
        self.lines[key] = {
            **key._asdict(),
            "starts": found.starts,
            "failed": found.failed,
            "basins": [[one.ratio_squared, one.starts] for one in found.basins],
            "kinds": found.kinds,
            "points": None if found.points is None else found.points.tolist(),
            "seconds": round(before + seconds, 1),
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "date": datetime.now(UTC).date().isoformat(),
        }
        os.makedirs(self.path.parent, exist_ok=True)
        with replacing(self.path) as file:
            for line in self.lines.values():
                file.write(json.dumps(line).encode() + b"\n")


def _found(key: Key, entry: dict[str, Any]) -> Found:
    """What an entry says of a search.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is not what `SearchLog.write` writes.
    """
    points = None
    if entry["points"] is not None:
        points = np.array(entry["points"], dtype=np.float64)
        if points.shape != (key.num_points, key.dim) or not np.isfinite(points).all():
            raise ValueError(f"points of shape {points.shape}, or not finite")
    basins = tuple(Basin(float(value), int(count)) for value, count in entry["basins"])
    starts, failed = entry["starts"], entry["failed"]
    if not 0 <= failed <= starts or bool(basins) != (points is not None):
        raise ValueError(f"{failed} of {starts} starts failed, {len(basins)} basins")
    return Found(starts, failed, basins, dict(entry["kinds"]), points)
