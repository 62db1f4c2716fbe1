"""The tables have a row a method with its figures, fit a terminal, and name what is missing."""

import io
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from rich.console import Console

from experiments.lm_head import comparison, statements, summary
from experiments.lm_head.presets import METHODS, PRESETS
from experiments.lm_head.results import Results
from tests.experiments.lm_head.tiny import PLANNED, TINY, level, records


def test_markdown_has_a_row_a_method_with_its_figures():
    lines = comparison.summarise(PLANNED, records(PLANNED, level))
    table = summary.markdown(lines).splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    assert {len(row) for row in cells} == {11} and set(cells[1]) == {"---"}
    first, second = (dict(zip(cells[0], row, strict=True)) for row in cells[2:])
    assert first["method"] == "AdamW, beta2 0.95" and second["method"] == "Row normalisation"
    assert cells[2][6:10] == ["0", "", "-0.5150 ± 0.0635", "better"]  # t(1, 0.975) = 12.7062
    assert cells[3][6:10] == ["+0.5150 ± 0.0635", "worse", "0", ""]
    assert (second["V"], second["seeds"], second["loss"]) == (str(TINY.vocab), "2", "0.5150")
    assert (second["bits per byte"], second["time in the head"]) == ("1.5000", "25%")


def test_the_terminal_table_shows_every_figure_in_80_columns():
    lines = comparison.summarise(PLANNED, records(PLANNED, level))
    console = Console(width=80, file=io.StringIO())
    summary.show(lines, console)
    printed = console.file.getvalue()
    assert "…" not in printed and max(map(len, printed.splitlines())) <= 80
    words = printed.split()
    for line in lines:
        assert all(word in words for word in METHODS[line.name].title.split())
        assert f"{line.loss:.4f}" in words


def test_long_names_fold_instead_of_cutting_figures(monkeypatch):
    line = comparison.summarise(PLANNED, records(PLANNED, level))[1]
    title = "Row-then-polar-with-look-ahead-and-more"
    monkeypatch.setitem(METHODS, line.name, replace(METHODS[line.name], title=title))
    console = Console(width=80, file=io.StringIO())
    summary.show([line], console)
    printed = console.file.getvalue()
    assert "…" not in printed and f"{line.loss:.4f}" in printed and "+0.5150 ± 0.0635" in printed
    pieces = [row[2:].split(" ")[0] for row in printed.splitlines()]
    assert title in "".join(pieces)


def test_the_tables_need_no_more_than_the_package():
    """They read files of text; the experiments' own dependencies are for running them."""
    hidden = "import sys; sys.modules.update(tokenizers=None, plotly=None);"
    code = f"{hidden} import experiments.lm_head.summary, experiments.report.details"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_seed_has_a_difference_and_no_interval():
    lines = comparison.summarise(PLANNED, records(PLANNED, level))
    one = lines[1]._replace(to_adamw=comparison.paired_interval([0.25]))
    assert "| +0.2500 | too few seeds |" in summary.markdown([one])


def test_the_time_of_different_processors_is_a_range():
    lines = comparison.summarise(PLANNED, records(PLANNED, level))
    one = lines[0]._replace(head_share=(0.03, 0.48))
    assert summary.markdown([one]).rstrip().endswith("| 3% to 48% |")


@pytest.mark.parametrize(
    ("preset", "folder", "said"),
    [
        ("bogus", "results", "'bogus', expected one of smoke, cpu"),
        ("cpu", "none", r"no \*.jsonl.gz in .*none"),
        ("cpu", "results", "none of the 1 runs"),
    ],
)
def test_summary_refuses_what_is_not_there(preset, folder, said, tmp_path):
    Results(tmp_path / "results").add(records(PLANNED, level)[0])
    with pytest.raises(typer.BadParameter, match=said):
        summary.main(preset, tmp_path / folder)


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """A results folder with the runs of a preset "planned"."""
    monkeypatch.setitem(PRESETS, "planned", PLANNED)
    store = Results(tmp_path)
    for one in records(PLANNED, level):
        store.add(one)
    return store.folder


def test_the_command_prints_markdown_the_answer_and_what_it_supports(planned, capsys):
    summary.main("planned", planned, as_markdown=True)
    printed = capsys.readouterr().out
    assert printed.startswith("| V | method |")
    assert statements.answer(PLANNED, records(PLANNED, level)) in printed.splitlines()
    said = "Higher loss than the best AdamW (AdamW, beta2 0.95): Row normalisation."
    assert f"- V = {TINY.vocab}: {said}" in printed.splitlines()


def test_the_keys_that_commands_take_can_be_found(planned, capsys):
    summary.main("planned", planned, keys=True)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == ["| AdamW, beta2 0.95 | adamw_95 |", "| Row normalisation | row_norm |"]
    for row in rows:
        summary.main("planned", planned, against=row.split()[-2])


def test_titles_are_for_readers_and_tell_methods_apart():
    titles = [method.title for method in METHODS.values()]
    assert len(set(titles)) == len(titles)
    assert not any("_" in title or ";" in title for title in titles)
