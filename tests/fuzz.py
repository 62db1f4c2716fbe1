"""`make fuzz`: rounds of the random tests on fresh seeds, until the time is over.

    python -m tests.fuzz [--seed N] [--minutes M] [pytest's own options and paths]

Each round has a seed, printed at its start; `--seed` repeats it. A test that fails is run no more,
and its seed goes to `tests/examples.json` at once, so that `make test` runs it ever after. Exits
with 1 when a test failed.
"""

import argparse
import json
import secrets
import sys
import time

import pytest

from tests import seeds

IMPORTED = "-Wignore::pytest.PytestAssertRewriteWarning"
"""Plugins are imported here already and stay so from round to round."""


class Failures:
    """Keeps the seed of each test that fails."""

    def __init__(self) -> None:
        self.found: dict[str, int | None] = {}

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and report.nodeid not in self.found:
            # a process that crashed reports no properties
            seed = dict(report.user_properties).get("seed")
            self.found[report.nodeid] = seed
            if seed is not None:
                keep(report.nodeid, seed)


def keep(nodeid: str, seed: int) -> None:
    """Add a seed to the examples; an interruption leaves the file old or new."""
    kept = seeds.examples()
    of_test = kept.setdefault(seeds.function_of(nodeid), [])
    if seed not in of_test:
        of_test.append(seed)
    new = seeds.EXAMPLES.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    new.replace(seeds.EXAMPLES)


def fuzz(seed: int, minutes: float, options: list[str]) -> int:
    """Run rounds of seeds `seed`, `seed + 1`, ...: at least one, the last begun within the time."""
    failures, end = Failures(), time.monotonic() + 60 * minutes
    while True:
        print(f"fuzz: seed {seed}; make fuzz SEED={seed} repeats it", flush=True)
        without = [f"--deselect={nodeid}" for nodeid in failures.found]
        command = [f"--fuzz={seed}", IMPORTED, *without, *options]
        status = pytest.main(command, plugins=[failures])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            break
        if time.monotonic() >= end:
            status = pytest.ExitCode.OK
            break
        seed += 1
    for nodeid, case in failures.found.items():
        print(f"fuzz: seed {case}, now in {seeds.EXAMPLES.name}, fails {nodeid}")
    if not failures.found:
        print("fuzz: no test failed")
    return 1 if failures.found else int(status)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the first round")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin rounds for so long")
    arguments, options = parser.parse_known_args()
    sys.exit(fuzz(arguments.seed, arguments.minutes, options))
