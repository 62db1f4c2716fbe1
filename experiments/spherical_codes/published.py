"""Largest cosines of spherical codes that others published, with their sources.

`published.csv` has them to 12 decimals, with the status "proved" (no code of this size does better)
or "best known". The searches read their sizes; the values only tell when to stop.
"""

import csv
from pathlib import Path
from typing import NamedTuple

REACHED = 1e-9
"""A largest cosine this little above the published one reaches it."""


class Published(NamedTuple):
    """A value that others published."""

    dim: int
    points: int
    max_cosine: float
    status: str
    source: str


def published() -> list[Published]:
    """Return the table, by dimension and number of points."""
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [Published(int(d), int(n), float(c), status, s) for d, n, c, status, s in rows]
