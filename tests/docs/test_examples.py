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
from rowsep.packing.cli import main as rowsep
from sybil import Sybil
from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser

pytestmark = pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning:runpy")
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = {
    r"make (demo|test|docs|report|bench|clean|fuzz)": "sets up .venv; its target is looked up",
    r"pip install ": "changes the environment; .ci/run installs",
    r"git clone ": "needs a network",
    r"python -m examples\.": "seconds each; run by tests/optim/test_examples.py",
    r"python -m experiments\.device_check": "run by tests/experiments/test_device_check.py",
    r"python -m experiments\.lm_head ": "minutes; run small by tests/experiments/test_lm_head.py",
    r"python -m experiments\.report": "run on a fixture by tests/experiments/test_report.py",
    r"python -m experiments\.\w+\.run": "minutes to hours, into the committed results",
    r"python -m experiments\.spherical_codes\.families": "minutes, into the committed results",
    r"python -m experiments\.codes\.(front|table)": "minutes, into the committed results",
    r"python -m benchmarks\.(pairs|large|optimizers)": "minutes",
    r"python -m benchmarks\.update_scale": "needs seconds for one solve of the shipped momentum",
}
"""Commands whose options alone are checked, and why."""


def commands():
    """Every line of a shell block with its page, each command once."""
    found = {}
    for page in PAGES:
        for block in SHELL.findall(page.read_text()):
            for line in block.splitlines():
                command = line.split("  #")[0].strip()
                if command:
                    found.setdefault(command, page)
    return sorted(found)


def reason(command):
    """Why a command is not run, None if it is."""
    return next((why for what, why in NOT_RUN.items() if re.match(what, command)), None)


def test_there_are_pages_and_commands():
    assert len(PAGES) > 30 and len(commands()) > 25
    for what in NOT_RUN:
        assert re.match(r"make|git|pip", what) or any(re.match(what, one) for one in commands())


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
    """In the order of the pages, as some read what others wrote."""
    for page in PAGES:
        for block in SHELL.findall(page.read_text()):
            for line in block.splitlines():
                command = line.split("  #")[0].strip()
                if command and reason(command) is None:
                    code, printed = run(command)
                    assert code == 0, (page, command, printed)


@pytest.mark.parametrize("command", [one for one in commands() if reason(one)])
def test_commands_that_are_not_run_have_their_options(command):
    words = shlex.split(command)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    if words[0] == "python":
        code, said = run(shlex.join([*words[:3], "--help"]))
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert code == 0 and all(option in said for option in options), said
