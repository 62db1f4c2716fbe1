"""What is measured of a step is what its definition says."""

import math

import pytest
import torch

from experiments.lm_head import diagnostics, heads
from experiments.lm_head.train import Session, train
from rowsep.packing import cloud
from tests.experiments.lm_head.tiny import tiny


def test_a_step_is_measured_as_the_definitions_say(corpus):
    session = Session(tiny(), corpus)
    before = session.head.detach().double().clone()
    session.advance()
    change = session.head.detach().double() - before
    found = session.history["measures"][0]
    distances = torch.pdist(change)
    assert found["diameter"] == pytest.approx(distances.max().item(), rel=1e-9)
    assert found["delta"] == pytest.approx(distances.min().item(), rel=1e-6)
    gradient = session.head.grad.double()
    gradient = gradient - gradient.mean(dim=0)
    inner = -(gradient * change).sum().item()
    radius = math.sqrt(16 / 34)
    norms = gradient.norm(dim=1).sum().item()
    assert found["alignment"] == pytest.approx(inner / (found["diameter"] * radius * norms), 1e-5)
    assert found["log_odds"] <= found["log_odds_bound"]


def test_direction_looks_ahead_as_the_optimiser_does():
    """With the update the direction itself, the step is `-lr` times it."""

    class Plain(heads.optim.HeadOptimizer):
        def _update(self, momentum, group, state):
            return momentum

    for nesterov in (False, True):
        p = torch.nn.Parameter(torch.zeros(4, 3))
        defaults = dict(lr=1.0, momentum=0.9, nesterov=nesterov, weight_decay=0.0, vocab_dim=0)
        optimizer = Plain([p], defaults | {"num_real_rows": None})
        for seed in range(2):
            p.grad = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
            before = p.detach().clone()
            optimizer.step()
            torch.testing.assert_close(before - p.detach(), heads.direction(optimizer, p))


def test_the_worst_hidden_state_reaches_the_bound_and_a_larger_one_is_an_error():
    change = torch.randn(30, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    worst = cloud.worst_hidden_state(change, radius=2.0)
    figures = {
        "promised": cloud.diameter(change).value,
        "radius": 2.0,
        "largest_row": 0.0,
    }
    found = diagnostics.log_odds_figures(change, worst.hidden[None], **figures)
    assert found["log_odds"] == pytest.approx(found["log_odds_bound"], rel=1e-12)
    with pytest.raises(diagnostics.BoundViolatedError, match="more than"):
        diagnostics.log_odds_figures(change, 1.001 * worst.hidden[None], **figures)
    with pytest.raises(diagnostics.BoundViolatedError):
        diagnostics.log_odds_figures(change * math.nan, worst.hidden[None], **figures)


def test_a_broken_promise_stops_a_run(corpus, monkeypatch):
    """A separation whose report claims half the diameter that it has must not go unnoticed."""
    honest = heads.optim.RowSeparation.last_step.fget

    def understated(self):
        return {k: r._replace(diameter=r.diameter / 20) for k, r in honest(self).items()}

    monkeypatch.setattr(heads.optim.RowSeparation, "last_step", property(understated))
    with pytest.raises(diagnostics.BoundViolatedError):
        train(tiny("separation_65"), corpus)


def test_effective_rank_counts_equal_singular_values():
    assert diagnostics.effective_rank(torch.tensor([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3.0)
    assert diagnostics.effective_rank(torch.zeros(3)) == 0.0
    spectrum = diagnostics.spectrum_figures(torch.diag(torch.tensor([4.0, 1.0, 3.0, 2.0])))
    assert spectrum["singular_values"] == pytest.approx([4.0, 3.0, 1.0])


def test_a_square_head_lets_the_whole_gradient_through():
    generator = torch.Generator().manual_seed(2)
    logits, targets = torch.randn(7, 6, generator=generator), torch.arange(6).repeat(2)[:7]
    square = diagnostics.backward_figures(logits, targets, torch.eye(6))
    narrow = diagnostics.backward_figures(logits, targets, torch.ones(6, 1))
    assert square["through"] == pytest.approx(1.0)
    assert narrow["through"] == pytest.approx(0.0, abs=1e-12)  # softmax gradients sum to zero


def test_bands_partition_the_vocabulary_by_frequency():
    counts = torch.arange(200).flip(0)[torch.randperm(200)]
    bands = diagnostics.frequency_bands(counts)
    assert torch.bincount(bands).tolist() == [2, 18, 80, 100]
    assert counts[bands == 0].min() > counts[bands == 1].max()
    losses = torch.rand(50)
    targets = torch.randint(200, (50,))
    sums, numbers = diagnostics.band_losses(losses, targets, bands)
    assert sum(numbers) == 50 and sum(sums) == pytest.approx(losses.double().sum().item())


def test_logits_shifted_by_a_constant_change_the_raw_rms_only():
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    one, two = diagnostics.logit_figures(logits), diagnostics.logit_figures(logits + 100)
    assert two["logit_rms"] > 90
    assert two["logit_rms_centred"] == pytest.approx(one["logit_rms_centred"], rel=1e-5)
    assert two["entropy"] == pytest.approx(one["entropy"], rel=1e-5)
    assert two["log_sum_exp"] == pytest.approx(one["log_sum_exp"] + 100, rel=1e-6)
