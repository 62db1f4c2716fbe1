"""Every method learns, a run repeats to the last bit, and one that was stopped goes on so too."""

import math
from dataclasses import replace

import pytest
import torch

from experiments.frozen_head.presets import METHODS, PRESETS
from experiments.frozen_head.train import train
from experiments.lm_head.plan import cells
from tests.experiments.frozen_head.tiny import TINY, D, V, tiny, tiny_data

DATA = tiny_data()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_lowers_the_loss_and_repeats(name):
    run = tiny(name)
    found, again = (train(run, DATA) for _ in range(2))
    assert found is not None and again is not None
    assert found["val_loss"] < math.log(TINY.vocab) and not found["diverged"]
    assert found["val_loss"] == again["val_loss"]
    assert [one["step"] for one in found["history"]["evaluations"]] == [4, 8]


@pytest.mark.parametrize("name", ["averaged_gram", "hidden_covariance", "adamw_look_ahead"])
def test_a_stopped_run_ends_as_the_whole_one_does(name, tmp_path):
    run, path, steps = tiny(name), tmp_path / "c.pt", []
    whole = train(run, DATA)
    stopped = train(run, DATA, checkpoint=path, on_step=steps.append, stop=lambda: steps[-1] == 5)
    resumed = train(run, DATA, checkpoint=path)
    assert stopped is None and whole is not None and resumed is not None
    assert resumed["val_loss"] == whole["val_loss"]
    assert resumed["history"]["train"] == whole["history"]["train"]
    with pytest.raises(ValueError, match="another run"):
        train(tiny(name, seed=1), DATA, checkpoint=path)


def test_the_pretrained_head_is_where_a_run_starts():
    own = torch.randn(V, D, generator=torch.Generator().manual_seed(5))
    training = replace(TINY, start="pretrained")
    data = tiny_data(training, own)
    still = train(tiny("adamw_99", lr=1e-12, training=training), data)
    part = data.validation
    logits = part.hidden[part.positions].float() @ data.head.T
    expected = torch.nn.functional.cross_entropy(logits, part.targets).item()
    assert still is not None and still["val_loss"] == pytest.approx(expected, rel=1e-4)


def test_a_loss_that_is_not_finite_is_told():
    found = train(tiny("adamw_99", lr=3e37), DATA)
    assert found is not None and found["diverged"] and found["val_loss"] == math.inf


def test_every_method_is_in_a_preset_with_three_learning_rates():
    for preset in PRESETS.values():
        assert all(len(cell.method.lrs) == preset.lrs for cell in cells(preset))
    assert {cell.name for preset in PRESETS.values() for cell in cells(preset)} == set(METHODS)
