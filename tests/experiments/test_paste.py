"""Tables go where those of the same header stand, or nowhere."""

import subprocess
import sys

import pytest

from experiments.paste import pasted

PAGE = """# Title

| a | b |
|---|---|
| 1 | 2 |

Text | with a bar.

## One

| a | b |
|---|---|
| 3 | 4 |
end

## Two

| c |
|---|
| 5 |
"""
AB = "noise\n| a | b |\n|---|---|\n| {} | 0 |\n| 8 | 9 |\n\n"
C = "| c |\n|---|\n| 7 |"


def test_tables_of_one_header_are_replaced_in_their_order():
    made = pasted(PAGE, AB.format("x") + AB.format("y") + C)
    assert made == PAGE.replace("| 1 | 2 |", "| x | 0 |\n| 8 | 9 |").replace(
        "| 3 | 4 |", "| y | 0 |\n| 8 | 9 |"
    ).replace("| 5 |", "| 7 |")
    assert pasted(made, AB.format("x")) == made


def test_a_section_ends_at_the_next_heading():
    made = pasted(PAGE, AB.format("z"), "One")
    assert made == PAGE.replace("| 3 | 4 |", "| z | 0 |\n| 8 | 9 |")
    with pytest.raises(ValueError, match=r"no table of the page has the header '\| c \|'"):
        pasted(PAGE, C, "One")


@pytest.mark.parametrize(
    ("printed", "section", "message"),
    [
        ("nothing", "", "no table was printed"),
        (C, "Three", "no section 'Three'"),
        ("| d |", "", "d"),
    ],
)
def test_what_has_no_place_is_an_error(printed, section, message):
    with pytest.raises(ValueError, match=message):
        pasted(PAGE, printed, section)


def test_the_command_leaves_the_page_as_it_is_on_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    command = [sys.executable, "-m", "experiments.paste", str(page)]
    failed = subprocess.run(command, input="| d |\n", capture_output=True, text=True)
    assert failed.returncode == 2 and "| d |" in failed.stderr and page.read_text() == PAGE
    subprocess.run(command, input=C, check=True, text=True)
    assert page.read_text() == PAGE.replace("| 5 |", "| 7 |")
