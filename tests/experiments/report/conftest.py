"""A results folder to make pages and tables of."""

import pytest

from experiments.lm_head import plan
from experiments.lm_head.record import Record
from experiments.lm_head.results import Results
from tests.experiments.report.runs import NAMES, PRESET, outcome


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """A folder with all runs of three methods, and of Muon one run of the sweep at SMALL."""
    folder = tmp_path_factory.mktemp("results")
    store, losses = Results(folder), {}
    while runs := plan.pending(PRESET, losses, NAMES[:3]):
        for run in runs:
            found = outcome(run)
            store.add(Record.of(run, found, corpus="none", command="python -m <fixture>"))
            losses[run.key] = found["val_loss"]
    muon = plan.pending(PRESET, losses, ("muon",))[0]
    store.add(Record.of(muon, outcome(muon), corpus="none", command="python -m <fixture>"))
    return folder
