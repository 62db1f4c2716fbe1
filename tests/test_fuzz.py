"""Tests draw the same on every run; fuzzing draws anew, keeps what fails and repeats it."""

import itertools
import json
import re
from types import SimpleNamespace

import pytest

from tests import fuzz, seeds

pytest_plugins = ["pytester"]

DRAWING = """
import random, numpy, pytest, torch
from hypothesis import given, strategies

def note(*drawn):
    with open("drawn", "a") as out:
        print(*drawn, file=out)

@pytest.mark.parametrize("x", [1, 2])
def test_of_a_generator(x, generator):
    note("generator", x, float(torch.rand((), generator=generator)))

def test_of_global_generators():
    note("global", float(torch.rand(())), random.random(), numpy.random.rand())

@given(strategies.integers(0, 10**9))
def test_of_hypothesis(x):
    note("hypothesis", x)
"""
FAILING = """
import pytest, torch
from hypothesis import given, strategies

@pytest.mark.parametrize("x", [1, 2])
def test_sometimes(x, generator):
    assert torch.rand((), generator=generator) < 0.7

@given(strategies.integers(0, 10**9))
def test_rarely(x):
    assert x < 100 or x % 11

def test_never(generator):
    pass

def test_that_draws_nothing():
    raise AssertionError
"""


@pytest.fixture(autouse=True)
def own_examples(monkeypatch, tmp_path):
    """Examples of these runs alone."""
    monkeypatch.setattr(seeds, "EXAMPLES", tmp_path / "examples.json")


@pytest.fixture
def ran(pytester):
    """Run pytest in this process and return the outcome of each test."""

    def run(*options):
        reports = pytester.inline_run("-p", "tests.seeds", *options).getreports(
            "pytest_runtest_logreport"
        )
        return {r.nodeid.partition("::")[2]: r.outcome for r in reports if r.when == "call"}

    return run


@pytest.fixture
def fuzzed(pytester, capsys, monkeypatch):
    """Fuzz in this process and return the exit status and what `fuzz` itself said."""

    def run(seed, minutes=0.0, *options):
        clock = SimpleNamespace(monotonic=itertools.count(0, 60).__next__)
        monkeypatch.setattr(fuzz, "time", clock)
        status = fuzz.fuzz(seed, minutes, ["-p", "tests.seeds", *options])
        return status, re.findall("^fuzz: .*", capsys.readouterr().out, flags=re.MULTILINE)

    return run


def test_a_test_draws_the_same_alone_and_in_any_order(pytester, ran):
    file = pytester.makepyfile(DRAWING).name

    def drawn(*tests):
        ran(*(f"{file}::{test}" for test in tests) if tests else [file])
        lines = (pytester.path / "drawn").read_text().splitlines()
        (pytester.path / "drawn").unlink()
        return lines

    whole = drawn()
    assert len({line.split()[-1] for line in whole[:3]}) == 3, "tests differ from one another"
    names = "hypothesis", "global_generators", "a_generator"
    assert drawn(*(f"test_of_{name}" for name in names)) == whole[3:] + whole[2:3] + whole[:2]
    assert drawn("test_of_a_generator[2]") == whole[1:2]


def test_seeds_do_not_depend_on_the_folder():
    one, other = "tests/a/test_x.py::test_y[a/b]", "tests/b/c/test_x.py::test_y[a/b]"
    assert seeds.seed_of(one, None) == seeds.seed_of(other, None)
    assert seeds.seed_of(one, None) != seeds.seed_of(one, 3)
    assert seeds.seed_of(one, None) != seeds.seed_of(one.replace("a/b", "c/b"), None)


def test_what_fails_is_kept_and_run_from_then_on(pytester, ran, fuzzed):
    pytester.makepyfile(FAILING)
    before = ran()
    status, said = fuzzed(5, 4.0)  # rounds of a minute
    assert status == 1
    rounds = re.findall(r"fuzz: seed (\d+);", "\n".join(said))
    assert rounds == ["5", "6", "7", "8"]
    kept = json.loads(seeds.EXAMPLES.read_text())
    name = "test_what_fails_is_kept_and_run_from_then_on.py"
    assert set(kept) == {f"{name}::test_sometimes", f"{name}::test_rarely"}
    assert len(said) == len(rounds) + 3, "a test that has failed is run no more"
    after = ran()
    assert {test: outcome for test, outcome in after.items() if test in before} == before
    seed = kept[f"{name}::test_rarely"][0]
    assert after[f"test_rarely[seed {seed}]"] == "failed"
    for seed in kept[f"{name}::test_sometimes"]:
        assert [after[f"test_sometimes[seed {seed}-{x}]"] for x in (1, 2)] == ["failed"] * 2


def test_a_seed_repeats_its_round(pytester, fuzzed):
    pytester.makepyfile(FAILING)
    seed, said = 0, []
    while not any("fails" in line for line in said):
        seed += 1
        status, said = fuzzed(seed)
    assert status == 1 and fuzzed(seed) == (1, said)
    assert all(len(set(kept)) == len(kept) for kept in seeds.examples().values())


def test_only_tests_that_draw_are_fuzzed(pytester, fuzzed, ran):
    pytester.makepyfile(FAILING.replace("< 0.7", "< 1").replace("or x % 11", "or True"))
    assert ran("--fuzz=1").keys() == {
        "test_sometimes[1]",
        "test_sometimes[2]",
        "test_rarely",
        "test_never",
    }
    status, said = fuzzed(1)
    assert (status, said[1:]) == (0, ["fuzz: no test failed"])
    assert not seeds.EXAMPLES.exists()


def test_interrupted_it_tells_what_it_found(pytester, fuzzed):
    pytester.makepyfile(
        """
        def test_a(generator):
            raise AssertionError

        def test_b(generator):
            raise KeyboardInterrupt
        """
    )
    status, said = fuzzed(1, 10.0)
    assert status == 1 and len(said) == 2 and said[1].endswith("::test_a")
    assert len(seeds.examples()) == 1
    status, said = fuzzed(1, 10.0, "-k", "test_b")
    assert status == pytest.ExitCode.INTERRUPTED and said[1:] == ["fuzz: no test failed"]


def test_other_troubles_of_pytest_end_it(pytester, fuzzed):
    assert fuzzed(1, 10.0, "--no-such-option")[0] == pytest.ExitCode.USAGE_ERROR
    assert fuzzed(1, 10.0)[0] == pytest.ExitCode.NO_TESTS_COLLECTED
