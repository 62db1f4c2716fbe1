"""The details are of the finished seeds, and printed with how near the bound the steps came."""

import pytest
from typer.testing import CliRunner

from experiments.lm_head import plan
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, PRESETS
from experiments.lm_head.results import Results
from experiments.report import __main__ as command
from experiments.report import details
from experiments.report.head import Experiment
from tests.experiments.report.runs import PRESET, SMALL, outcome


def test_details_are_of_the_finished_seeds(results):
    lines = details.details(Experiment(PRESET, Results(results).records()))
    assert [(one.vocab, one.name) for one in lines] == [
        (vocab, name) for vocab in (320, 512) for name in ("separation_65", "adamw_95", "row_norm")
    ], "lowest loss first, Muon has no seed"
    best = lines[0]
    losses = [outcome(run)["val_loss"] for run in finished_runs("separation_65")]
    assert best.bands == pytest.approx([sum(losses) / 2 + band for band in BANDS])
    assert (best.rho, best.alignment) == (3 / 8, 0.7)
    assert best.rank == pytest.approx(4 + 1.5), "of the last logged step, over seeds 1 and 2"
    assert (best.logits, best.log_odds) == (2.0, pytest.approx(0.3))
    assert best.of_bound == pytest.approx(0.4 / 4.5)


def finished_runs(name):
    cell = plan.Cell(SMALL, name)
    return [cell.run(METHODS[name].lrs[1], seed) for seed in PRESET.seeds]


def test_details_are_printed_with_the_bound(results, monkeypatch):
    app = command.typer.Typer()
    app.command()(details.main)
    for arguments, named in (
        (["--preset", "bogus"], "bogus"),
        (["--preset", "gpu", "--results", str(results)], "no finished seed"),
    ):
        refused = CliRunner().invoke(app, arguments)
        said = " ".join(refused.output.replace("│", " ").split())  # within a frame
        assert refused.exit_code == 2 and named in said
    shown = details.markdown(
        details.details(Experiment(PRESET, Results(results).records()))
    ).splitlines()
    assert len({row.count("|") for row in shown}) == 1 and len(shown) == 2 + 6
    runs = 3 * 2 * (2 + 2) + 1
    said = details.bound_sentence(Experiment(PRESET, Results(results).records()))
    assert said.startswith(f"In {3 * runs} logged steps of {runs} runs")
    assert "more than 0.089 of the bound" in said  # 0.4 / 4.5, rounded up
    monkeypatch.setitem(PRESETS, "fixture", PRESET)
    printed = CliRunner().invoke(app, ["--preset", "fixture", "--results", str(results)]).output
    assert printed.splitlines() == [*shown, "", said]
