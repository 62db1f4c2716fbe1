"""A look is one run of a method with options of its own."""

from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from experiments.lm_head import look
from experiments.lm_head.config import Run
from experiments.lm_head.presets import METHODS
from experiments.lm_head.train import train
from tests.experiments.lm_head.tiny import TINY, tiny


def test_a_look_is_the_run_of_the_method_with_its_options_replaced(tmp_path, corpus):
    found = look.look("row_norm", 0.08, {"momentum": 0.5}, TINY, 3, tmp_path)
    method = replace(METHODS["row_norm"], options={"momentum": 0.5})
    run = Run.of(TINY, "row_norm", method, 0.08, 3)
    outcome = train(run, corpus)
    changes = [measure["log_odds"] for measure in outcome["history"]["measures"]]
    assert len(changes) > 1 and min(changes) <= found.log_odds <= max(changes)
    assert 0 < found.head_share < 1
    assert found.loss == outcome["val_loss"] != train(tiny(seed=3, lr=0.08), corpus)["val_loss"]


@pytest.mark.parametrize(
    ("name", "option", "said"),
    [
        ("none", "momentum=0.9", "'none', expected one of adamw_95"),
        ("row_norm", "momentum=x y", "expected NAME=LITERAL"),
        ("row_norm", "momentum=2", "momentum is 2"),
        ("row_norm", "speed=2", "speed"),
    ],
)
def test_a_look_refuses_what_it_cannot_run(name, option, said, tmp_path, monkeypatch):
    monkeypatch.setattr(look, "SMALL", TINY)
    command = typer.Typer()
    command.command()(look.main)
    arguments = [name, "--lr", "0.1", "--option", option, "--cache", str(tmp_path)]
    result = CliRunner().invoke(command, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2 and said in result.output
