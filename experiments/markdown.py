"""Markdown tables of results."""

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a line end; cells are shown by `str`."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"
