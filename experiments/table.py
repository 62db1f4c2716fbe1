"""A committed CSV file of results: a row for each key, appended whole, kept when a run goes on."""

import csv
import datetime
import io
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from rowsep.packing.cli.report import rowsep_version

Case = TypeVar("Case", bound=tuple)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by their column names, none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def provenance() -> dict[str, str]:
    """Return the versions that figures depend on and the date of today."""
    return {
        "rowsep": rowsep_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


class Table:
    """Results in a CSV file.

    Rows in the file are never changed: a run asks which cases are `left` and appends those, so
    one that was killed goes on where it was. Remove rows to measure them afresh.
    """

    def __init__(self, path: Path, key: Sequence[str], fields: Sequence[str]):
        """Open the results at `path`, which need not exist.

        A last line without an end is a row that was being written when the run was killed; it is
        cut off.

        Args:
            path: the file.
            key: columns that tell rows apart.
            fields: all columns in their order; those named as in `provenance` fill themselves.

        Raises:
            ValueError: the file has other columns.
        """
        self.path, self.key, self.fields = path, tuple(key), tuple(fields)
        if path.exists():
            written = path.read_bytes()
            whole = written[: written.rfind(b"\n") + 1]
            if whole != written:
                path.write_bytes(whole)
            with path.open(newline="") as file:
                found = tuple(next(csv.reader(file), ()))
            if found not in ((), self.fields):
                raise ValueError(
                    f"{path} has the columns {', '.join(found)}, expected "
                    f"{', '.join(self.fields)}: name another file for these results"
                )
        self._done = {self._key_of(row) for row in read(path)}

    def left(self, cases: Iterable[Case]) -> list[Case]:
        """Return the cases without a row, each once, in order.

        A case holds a value for each column of the key.
        """
        return [case for case in dict.fromkeys(cases) if tuple(map(str, case)) not in self._done]

    def append(self, *rows: Mapping[str, object]) -> None:
        """Write rows at the end in one piece, with the header before the first of the file.

        Columns that a row does not have stay empty.

        Raises:
            ValueError: a row has a column that the file does not, or its key is in the file.
        """
        filled = {name: text for name, text in provenance().items() if name in self.fields}
        full = [dict.fromkeys(self.fields, "") | filled | dict(row) for row in rows]
        keys = [self._key_of(row) for row in full]
        for at, key in enumerate(keys):
            if key in self._done or key in keys[:at]:
                named = ", ".join(map("=".join, zip(self.key, key, strict=True)))
                raise ValueError(f"{self.path} has a row for {named} already; remove it first")
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.fields, lineterminator="\n")
        if not self.path.exists() or self.path.stat().st_size == 0:
            writer.writeheader()
        writer.writerows(full)
        with self.path.open("a", newline="") as file:
            file.write(text.getvalue())
        self._done.update(keys)

    def _key_of(self, row: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)
