"""What is finished of the comparison, as a table for the terminal or for the docs.

python -m experiments.lm_head.summary [--preset cpu] [--results FOLDER] [--markdown]
python -m experiments.lm_head.summary --against KEY [--preset cpu] [--results FOLDER]
python -m experiments.lm_head.summary --keys [--preset cpu]
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from experiments.lm_head.comparison import (
    Difference,
    Interval,
    Line,
    differences,
    progress,
    summarise,
)
from experiments.lm_head.config import Method
from experiments.lm_head.plan import cells
from experiments.lm_head.presets import METHODS, PRESETS, Preset
from experiments.lm_head.record import Record
from experiments.lm_head.results import SUFFIX, Results, ResultsError
from experiments.lm_head.statements import answer, statements
from experiments.markdown import markdown_table

MINUS_ADAMW = "minus the best AdamW's"
MINUS_ROW_NORM = "minus row normalisation's"


def markdown(lines: Sequence[Line], table: Mapping[str, Method] = METHODS) -> str:
    """Return the comparison as a Markdown table, one row a method of `table`, with a line end."""
    head = ("V", "method", "learning rate", "seeds", "loss", "bits per byte")
    head += (f"loss {MINUS_ADAMW}", "verdict", f"loss {MINUS_ROW_NORM}", "verdict")
    head += ("time in the head",)
    rows = []
    for line in lines:
        cells_of_line = (
            *_front(line, table),
            *_cell(line.to_adamw),
            *_cell(line.to_row_norm),
            share(*line.head_share),
        )
        rows.append(cells_of_line)
    return markdown_table(head, rows)


def markdown_differences(lines: Sequence[Difference], reference: str) -> str:
    """Return paired differences to the method of a key as a Markdown table, with a line end."""
    less = f"loss minus that of {METHODS[reference].title}"
    head = ("V", "method", "pairs", "loss", less, "verdict")
    rows = []
    for one in lines:
        title, pairs = METHODS[one.name].title, str(one.interval.pairs)
        rows.append((str(one.vocab), title, pairs, number(one.loss, ".4f"), *_cell(one.interval)))
    return markdown_table(head, rows)


def markdown_keys(preset: Preset) -> str:
    """Return the methods of a preset with the keys that commands take, as a Markdown table."""
    names = dict.fromkeys(cell.name for cell in cells(preset))
    return markdown_table(("method", "key"), [(METHODS[name].title, name) for name in names])


def show(lines: Sequence[Line], console: Console, methods: Mapping[str, Method] = METHODS) -> None:
    """Print the comparison, a table for each vocabulary, within 80 columns; long names fold."""
    for vocab in dict.fromkeys(line.vocab for line in lines):
        table = Table(title=f"V = {vocab}", padding=(0, 0, 0, 1), box=box.SIMPLE_HEAD)
        table.add_column("method", overflow="fold")
        less = (MINUS_ADAMW.replace("the ", "the\n"), MINUS_ROW_NORM.replace("row ", "row\n"))
        for header in ("learning\nrate", "seeds", "loss", *(f"loss {text}" for text in less)):
            table.add_column(header, no_wrap=True)
        for line in lines:
            if line.vocab == vocab:
                _, name, lr, seeds, loss, _ = _front(line, methods)
                against = ("\n".join(_cell(one)) for one in (line.to_adamw, line.to_row_norm))
                table.add_row(name, lr.replace(" (", "\n("), seeds, loss, *against)
        console.print(table)


def share(least: float, most: float) -> str:
    """Return a share in per cent as text, or its range where that is wide; "" for NaN."""
    if most > 1.5 * least + 0.01:
        return f"{least:.0%} to {most:.0%}"
    return number((least + most) / 2, ".0%")


def main(
    preset: Annotated[str, typer.Option(help=", ".join(PRESETS))] = "cpu",
    results: Annotated[Path, typer.Option(help="folder of the finished runs")] = Path(
        __file__
    ).parent
    / "results",
    as_markdown: Annotated[bool, typer.Option("--markdown", help="a table for the docs")] = False,
    against: Annotated[
        str | None, typer.Option(help="a method's key: print the paired differences to it alone")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="print the keys of the methods")] = False,
) -> None:
    """Print the comparison of what is finished."""
    chosen, records = preset_with_runs(preset, results)
    if keys:
        print(markdown_keys(chosen), end="")
        return
    if against is not None:
        try:
            print(markdown_differences(differences(chosen, records, against), against), end="")
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        return
    lines = summarise(chosen, records)
    if not any(one.lrs or one.seeds for one in progress(chosen, records)):
        raise typer.BadParameter(
            f"none of the {len(records)} runs in {results} is of preset {preset}: give the preset "
            f"that they are of, or run `python -m experiments.lm_head --preset {preset}`"
        )
    if as_markdown:
        print(markdown(lines))
    else:
        show(lines, Console())
    print(answer(chosen, records))
    for one in statements(chosen, records):
        print(f"- V = {one.vocab}: {one.text}")


def preset_with_runs(name: str, results: Path) -> tuple[Preset, list[Record]]:
    """Return a preset by its name and the finished runs of a folder.

    Raises:
        typer.BadParameter: there is no such preset, or no file of runs that can be read.
    """
    if name not in PRESETS:
        raise typer.BadParameter(f"preset is {name!r}, expected one of {', '.join(PRESETS)}")
    store = Results(results)
    if not store.files():
        raise typer.BadParameter(f"no *{SUFFIX} in {results}: give the folder of --results")
    try:
        return PRESETS[name], store.records()
    except ResultsError as error:
        raise typer.BadParameter(str(error)) from None


def _front(line: Line, table: Mapping[str, Method]) -> tuple[str, ...]:
    """What stands in front of the comparisons."""
    lr = "" if line.lr is None else f"{line.lr:g}{' (edge)' if line.edge else ''}"
    loss, bits = number(line.loss, ".4f"), number(line.bits_per_byte, ".4f")
    return str(line.vocab), table[line.name].title, lr, str(line.seeds), loss, bits


def number(value: float, form: str) -> str:
    """Return the value in a format, "" for NaN."""
    return "" if math.isnan(value) else f"{value:{form}}"


def _cell(interval: Interval) -> tuple[str, str]:
    """Mean with half the interval's length, and the verdict."""
    if interval.pairs == 0:
        return "", ""
    if interval.low == interval.high:
        return "0", ""
    if interval.pairs == 1:
        return f"{interval.mean:+.4f}", interval.verdict
    return f"{interval.mean:+.4f} ± {interval.high - interval.mean:.4f}", interval.verdict


if __name__ == "__main__":
    typer.run(main)
