"""Put the tables that a command prints where those of the same header stand in a page.

    python -m experiments.packing_quality.show | python -m experiments.paste docs/packing_quality.md
    ... | python -m experiments.paste docs/results.md --section cpu

A table of the page is replaced by the printed one with the same header line, the first by the first
and so on; with `--section` only behind that heading. Nothing is written if a printed table has no
place.
"""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def pasted(page: str, printed: str, section: str = "") -> str:
    """Return the page with its tables replaced.

    Args:
        page: Markdown; a table is a run of lines that begin with `|`.
        printed: text with the new tables, anything else in it is ignored.
        section: text of a heading; the tables from there to the next heading of any level are
            meant. Empty for the whole page.

    Raises:
        ValueError: there is no such section, no table is printed, or one has no place.
    """
    begin, end = 0, len(page)
    if section:
        heading = re.search(rf"^#+ {re.escape(section)}\n", page, re.MULTILINE)
        if heading is None:
            raise ValueError(f"the page has no section {section!r}")
        begin = heading.end()
        following = re.search(r"^#+ ", page[begin:], re.MULTILINE)
        end = begin + following.start() if following else len(page)
    tables = [found.group() for found in TABLE.finditer(printed.rstrip("\n") + "\n")]
    if not tables:
        raise ValueError("no table was printed")

    def replace(old: re.Match[str]) -> str:
        same = (table for table in tables if _header(table) == _header(old.group()))
        new = next(same, old.group())
        if new in tables:
            tables.remove(new)
        return new

    middle = TABLE.sub(replace, page[begin:end])
    if tables:
        raise ValueError(f"no table of the page has the header {_header(tables[0])!r}")
    return page[:begin] + middle + page[end:]


def _header(table: str) -> str:
    return table.split("\n", 1)[0]


def main(page: Path, section: Annotated[str, typer.Option(help="of the page")] = "") -> None:
    """Read what a command printed and put its tables into the page."""
    try:
        new = pasted(page.read_text(), sys.stdin.read(), section)
    except (OSError, ValueError) as error:
        typer.echo(f"{page}: {error}", err=True)
        raise typer.Exit(2) from None
    page.write_text(new)


if __name__ == "__main__":
    typer.run(main)
