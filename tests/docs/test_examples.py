"""The examples of the docs run as they stand, page by page, and so do the commands."""

import io
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy
import pytest
import torch
from sybil import Sybil
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

from rowsep.packing.cli import main as rowsep
from rowsep.packing.io import save_matrix

pytestmark = pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning:runpy")
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^ {4}((?:make|rowsep|python|pip) .*)$", re.MULTILINE)
NOT_RUN = {
    r"make ": "sets up .venv; its target is looked up",
    r"pip install ": "changes the environment; .ci/run installs",
    r"python -m examples\.": "seconds each; run by tests/optim/test_examples.py",
    r"python -m experiments\.device_check": "run by tests/experiments/test_device_check.py",
    r"python -m experiments\.lm_head ": "minutes; run small by tests/experiments/lm_head",
    r"python -m experiments\.report": "run on a fixture by tests/experiments/report",
    r"python -m experiments\.\w+\.run": "minutes to hours, into the committed results",
    r"python -m experiments\.spherical_codes\.families": "minutes, into the committed results",
    r"python -m experiments\.codes\.(front|table)": "minutes, into the committed results",
    r"python -m benchmarks\.(pairs|large|optimizers)": "minutes",
    r"python -m benchmarks\.update_scale": "needs seconds for one solve of the shipped momentum",
}
"""Commands whose options alone are checked, and why."""
SMALLER = {"--real-rows 50257": "--real-rows 101"}
"""What stands for the size of a real head in the files of the test."""


def commands():
    """Every command in the order of the pages: lines of shell blocks and indented ones."""
    found = []
    for page in PAGES:
        text = page.read_text()
        lines = [line for block in SHELL.findall(text) for line in block.splitlines()]
        found += [line.split("  #")[0].strip() for line in lines + INDENTED.findall(text)]
    return list(dict.fromkeys(filter(None, found)))


def reason(command):
    """Why a command is not run, None if it is."""
    return next((why for what, why in NOT_RUN.items() if re.match(what, command)), None)


def test_there_are_pages_and_commands():
    assert len(PAGES) > 30 and len(commands()) > 25
    for what in NOT_RUN:
        assert any(re.match(what, one) for one in commands()), what


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::UserWarning:torch.utils.data")
def test_python_runs(page, tmp_path, monkeypatch):
    """All blocks of a page, one after the other, in one namespace."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    document = Document.parse(str(page), *Sybil([PythonCodeBlockParser()]).parsers)
    with redirect_stdout(io.StringIO()):
        for example in document.examples():
            example.evaluate()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of the commands, with the files that they read."""
    monkeypatch.chdir(tmp_path)
    momentum = torch.randn(128, 16, generator=torch.Generator().manual_seed(0))
    torch.save({"state": {0: {"momentum_buffer": momentum}}}, "optimizer.pt")
    numpy.save("head.npy", momentum.numpy())
    save_matrix("head.safetensors", momentum)
    return tmp_path


def run(command):
    """Run a command in this process; return its exit code and what it printed."""
    command, _, target = command.partition(" > ")
    name, *arguments = shlex.split(command)
    printed = io.StringIO()
    with redirect_stdout(printed):
        if name == "rowsep":
            code = rowsep(arguments)
        else:
            code = module(arguments)
    if target:
        Path(target).write_text(printed.getvalue())
    return code, printed.getvalue()


def module(arguments):
    """Run `python -m NAME ...`."""
    assert arguments[0] == "-m"
    before = sys.argv
    sys.argv = [arguments[1], *arguments[2:]]
    try:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except SystemExit as left:
        return left.code or 0
    finally:
        sys.argv = before
    return 0


def test_commands_run(folder):
    """In the order of the pages, as some read what others wrote; what is there is replaced."""
    for command in commands():
        if reason(command) is None:
            for real, small in SMALLER.items():
                command = command.replace(real, small)
            if command.startswith("rowsep solve"):
                command += " --force --no-front"
            code, printed = run(command)
            assert code == 0, (command, printed)


@pytest.mark.parametrize("command", sorted(filter(reason, commands())))
def test_commands_that_are_not_run_have_their_options(command):
    words = shlex.split(command)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    if words[0] == "python":
        code, said = run(shlex.join([*words[:3], "--help"]))
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert code == 0 and all(option in said for option in options), said


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[0].read_text())
    assert len(links) > 5 and all((ROOT / link).exists() for link in links)
