"""Where the tests' randomness comes from: a seed for each test, fixed unless `--fuzz` is given.

The seed is a hash of the test's name and parameters: tests differ from one another, and each is
the same on every run, in any order and in any process. `--fuzz SEED` hashes SEED along with them
and runs only the tests that draw at random (`python -m tests.fuzz` does so in rounds). Seeds that
once made a test fail are kept in `EXAMPLES` and are run along with its own from then on.

Hypothesis turns its example database off wherever the seed is fixed, so its tests are kept as
seeds too.
"""

import hashlib
import json
import random
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parent / "examples.json"
"""Function, as `function_of` names it -> seeds on which it failed."""

hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")


def function_of(nodeid: str) -> str:
    """File and function without the folders, which may move, and without parameters."""
    return nodeid.partition("[")[0].rpartition("/")[2]


def seed_of(nodeid: str, fuzz: int | None) -> int:
    """32 bits that depend on file, function, parameters and the seed of a fuzz round."""
    name = function_of(nodeid) + nodeid.partition("[")[2]
    text = name if fuzz is None else f"{name} {fuzz}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


def examples() -> dict[str, list[int]]:
    """The seeds kept, empty at first."""
    return json.loads(EXAMPLES.read_text()) if EXAMPLES.exists() else {}


def draws(item: pytest.Item) -> bool:
    """Whether a test draws from `generator` or from Hypothesis."""
    return "generator" in item.fixturenames or hypothesis.is_hypothesis_test(item.obj)


def pytest_addoption(parser):
    parser.addoption("--fuzz", metavar="SEED", type=int, help="run random tests on other seeds")


def pytest_generate_tests(metafunc):
    kept = examples().get(function_of(metafunc.definition.nodeid))
    if kept and metafunc.config.option.fuzz is None:
        ids = [pytest.HIDDEN_PARAM, *(f"seed {seed}" for seed in kept)]
        metafunc.parametrize("case_seed", [None, *kept], ids=ids, indirect=True)


def pytest_collection_modifyitems(config, items):
    if config.option.fuzz is not None:
        config.hook.pytest_deselected(items=[item for item in items if not draws(item)])
        items[:] = [item for item in items if draws(item)]


@pytest.fixture(autouse=True)
def case_seed(request) -> int:
    """The seed of this test: what it draws from global generators or Hypothesis follows it."""
    seed = getattr(request, "param", None)
    if seed is None:
        seed = seed_of(request.node.nodeid, request.config.option.fuzz)
    request.node.user_properties.append(("seed", seed))
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack for CUDA
    if hypothesis.is_hypothesis_test(request.function):
        hypothesis.seed(seed)(request.function)
    return seed


@pytest.fixture
def generator(case_seed) -> torch.Generator:
    """A generator of the test's own."""
    return torch.Generator().manual_seed(case_seed)
