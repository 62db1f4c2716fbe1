"""No call launches more, waits more or copies more than its ceiling, at either size."""

import pytest

from benchmarks.launch_budgets import BUDGETS, counted
from benchmarks.launches import CALLS
from benchmarks.simulated_cuda import KINDS


@pytest.mark.parametrize("name", CALLS)
def test_stays_within_its_ceilings(name):
    budget = BUDGETS[name]
    for k, found in enumerate(counted(name)):
        for kind in KINDS:
            ceiling = getattr(budget, kind)[k]
            assert getattr(found, kind) <= ceiling, (
                f"{getattr(found, kind)} {kind} instead of {ceiling}: {found.report()}"
            )
