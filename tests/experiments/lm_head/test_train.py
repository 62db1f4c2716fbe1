"""Runs repeat and resume bit for bit, and pairs share weights and batches."""

import math
from dataclasses import replace

import pytest
import torch

from experiments.lm_head.config import Training
from experiments.lm_head.presets import METHODS
from experiments.lm_head.train import Session, body_optimizers, train
from experiments.model import GPT
from tests.experiments.lm_head.tiny import TINY, tiny

VARIANTS = {(m.optimizer, str(m.options), str(m.schedule)): name for name, m in METHODS.items()}


def untimed(outcome):
    return {k: v for k, v in outcome.items() if k not in ("seconds", "head_share")}


@pytest.mark.parametrize("name", VARIANTS.values())
def test_every_method_trains_repeats_and_resumes_bit_for_bit(name, corpus, tmp_path):
    run = tiny(name, training=replace(TINY, steps=4))
    whole = train(run, corpus)
    assert not whole["diverged"]
    assert whole["history"]["train"][-1]["loss"] < math.log(TINY.vocab) + 0.5
    checkpoint = tmp_path / "run.pt"
    steps = []
    stopped = train(
        run, corpus, checkpoint=checkpoint, on_step=steps.append, stop=lambda: len(steps) == 2
    )
    assert stopped is None and steps == [1, 2] and checkpoint.exists()
    resumed = train(run, corpus, checkpoint=checkpoint, on_step=steps.append)
    assert steps == [1, 2, 3, 4]
    assert untimed(resumed) == untimed(whole)


def test_a_checkpoint_survives_a_kill(corpus, tmp_path):
    run, checkpoint = tiny(), tmp_path / "run.pt"

    def kill(steps):
        if steps == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, corpus, checkpoint=checkpoint, checkpoint_seconds=0.0, on_step=kill)
    seen = []
    resumed = train(run, corpus, checkpoint=checkpoint, on_step=seen.append)
    assert seen == [4, 5, 6]
    assert untimed(resumed) == untimed(train(run, corpus))


def test_a_checkpoint_of_another_run_is_refused(corpus, tmp_path):
    train(tiny(), corpus, checkpoint=tmp_path / "run.pt", stop=lambda: True)
    with pytest.raises(ValueError, match="another run"):
        train(tiny(seed=1), corpus, checkpoint=tmp_path / "run.pt")


def test_equal_seeds_share_weights_and_batches_whatever_the_optimiser(corpus):
    one, two = (Session(tiny(name, seed=3), corpus) for name in ("adamw_95", "separation_65"))
    assert torch.equal(one.windows, two.windows)
    for p, q in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert torch.equal(p, q)
    other = Session(tiny(seed=4), corpus)
    assert not torch.equal(one.windows, other.windows)
    assert not torch.equal(one.head, other.head)


def test_training_leaves_the_global_random_state_alone(corpus):
    state = torch.get_rng_state()
    train(tiny("separation_code_start", training=replace(TINY, steps=1)), corpus)
    assert torch.equal(torch.get_rng_state(), state)


def test_measuring_does_not_change_a_run(corpus):
    assert (
        train(tiny(training=replace(TINY, measure_every=0)), corpus)["val_loss"]
        == train(tiny(), corpus)["val_loss"]
    )


@pytest.mark.parametrize("tied", [False, True])
def test_every_parameter_has_one_optimiser(tied):
    model = GPT(vocab=20, d=8, layers=2, heads=2, context=4, seed=0, tied=tied)
    optimizers = body_optimizers(model, Training())
    owned = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted([*owned, id(model.head.weight)]) == sorted(id(p) for p in model.parameters())
    muon = {id(p) for p in optimizers[0].param_groups[0]["params"]}
    assert muon == {id(p) for n, p in model.named_parameters() if "blocks" in n and p.ndim == 2}


def test_a_tied_run_trains(corpus):
    outcome = train(tiny(training=replace(TINY, tied=True)), corpus)
    assert math.isfinite(outcome["val_loss"])


def test_a_run_that_diverges_says_so(corpus):
    outcome = train(tiny("sign", lr=2e38), corpus)
    assert outcome["diverged"] and outcome["val_loss"] == math.inf


def test_the_schedule_rises_stays_and_falls():
    factors = [replace(TINY, steps=100).factor(step) for step in range(100)]
    assert factors[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert set(factors[5:61]) == {1.0}
    assert factors[61:] == pytest.approx([k / 40 for k in range(39, 0, -1)])


def test_scheduled_options_move_linearly(corpus):
    session = Session(tiny("separation_falling_floor"), corpus)
    floors = []
    for _ in range(TINY.steps):
        session.advance()
        floors.append(session.head_optimizer.param_groups[0]["alignment"])
    assert floors == pytest.approx([0.7, 0.66, 0.62, 0.58, 0.54, 0.5])
