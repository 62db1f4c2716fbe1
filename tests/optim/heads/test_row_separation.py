"""RowSeparation: the meaning of lr, the report of a step, warm starts and its options."""

import math
from copy import deepcopy

import pytest
import torch
from torch.nn import Parameter

from rowsep.optim import RowSeparation, StepReport
from rowsep.packing import cloud
from rowsep.packing.hilbert import hilbert_distance
from tests.optim.optimisers import stepped
from tests.packing.clouds import gaussian, with_twins


def stepping(generator, shape=(50, 8), count=2, **options):
    """A parameter, its optimiser and the weight before the last step."""
    weight = gaussian(*shape, generator)
    grads = [gaussian(*shape, generator) for _ in range(count)]
    p, optimiser = stepped(RowSeparation, weight, grads[:-1], **options)
    before = p.detach().clone()
    p.grad = grads[-1]
    optimiser.step()
    return p, optimiser, before


def test_a_step_moves_no_log_odds_by_more_than_lr_times_the_norm(generator):
    """The bound of the class, attained at the worst hidden state."""
    lr = 0.05
    p, optimiser, before = stepping(generator, lr=lr)
    step = (p.detach() - before).double()
    for _ in range(50):
        h = gaussian(8, 1, generator, torch.float64)[:, 0]
        logits = before.double() @ h
        moved = hilbert_distance((logits + step @ h).softmax(0), logits.softmax(0))
        assert moved <= lr * float(h.norm()) * (1 + 1e-5)
    worst = cloud.worst_hidden_state(step, 3.0)
    assert worst.distance == pytest.approx(3 * lr, rel=1e-5)


def test_the_report_is_what_the_step_did(generator):
    lr, radius = 0.1, 4.0
    p, optimiser, before = stepping(generator, lr=lr, radius=radius, momentum=0.0)
    (report,) = optimiser.last_step.values()
    step = (before - p.detach()).double()
    found = cloud.ratio(step)
    assert report.diameter * lr == pytest.approx(found.diameter, rel=1e-5)
    assert report.delta * lr == pytest.approx(found.delta, rel=1e-4)
    assert report.rho == pytest.approx(found.value, rel=1e-4)
    assert report.alignment == pytest.approx(cloud.alignment(p.grad.double(), step), rel=1e-4)
    assert report.cosine == pytest.approx(cloud.cosine(p.grad.double(), step), rel=1e-4)
    assert report.met and report.passes >= 6
    assert report.log_odds == pytest.approx(lr * radius, rel=1e-5)
    assert all(isinstance(v, (float, int, bool)) for v in report._asdict().values())


def test_reports_are_named_and_leave_with_the_state(generator):
    weights = [Parameter(gaussian(6, 3, generator)) for _ in range(2)]
    optimiser = RowSeparation([{"params": [("a", weights[0])]}, {"params": [("b", weights[1])]}])
    assert optimiser.last_step == {}
    weights[1].grad = gaussian(6, 3, generator)
    optimiser.step()
    assert list(optimiser.last_step) == ["b"]
    assert optimiser.last_step["b"].log_odds is None
    assert deepcopy(optimiser).last_step == {}
    unnamed = RowSeparation([weights[1]])
    unnamed.step()
    assert list(unnamed.last_step) == ["0.0"]
    unnamed.load_state_dict(unnamed.state_dict())
    assert unnamed.last_step == {}


def test_the_agreement_reported_is_that_with_the_momentum(generator):
    options = {"precondition": "right_polar", "momentum": 0.0, "lr": 1.0}
    p, optimiser, before = stepping(generator, **options)
    (report,) = optimiser.last_step.values()
    step = (before - p.detach()).double()
    assert report.alignment == pytest.approx(cloud.alignment(p.grad.double(), step), rel=1e-4)
    assert report.cosine == pytest.approx(cloud.cosine(p.grad.double(), step), rel=1e-4)


def test_a_zero_update_is_reported_as_such(generator):
    p, optimiser = stepped(RowSeparation, gaussian(5, 3, generator), [torch.zeros(5, 3)])
    (report,) = optimiser.last_step.values()
    assert report == StepReport(0.0, 0.0, 0.0, 0.0, 0.0, False, 0, None)


@pytest.mark.parametrize("alignment", [0.3, 0.65, 0.7])
def test_the_floor_is_met(generator, alignment):
    _, optimiser, _ = stepping(generator, alignment=alignment)
    (report,) = optimiser.last_step.values()
    assert report.met and report.alignment >= alignment


def test_a_warm_start_separates_farther_over_the_steps(generator):
    """On a momentum that changes little, as in training."""
    weight, grad = gaussian(120, 12, generator), gaussian(120, 12, generator)
    grads = [grad + 0.05 * gaussian(120, 12, generator) for _ in range(6)]
    made = {}
    for warm in (False, True):
        p, optimiser = stepped(RowSeparation, weight, grads, warm_start=warm, passes=2)
        made[warm] = next(iter(optimiser.last_step.values())).rho
        assert ("separated" in optimiser.state[p]) == warm
    assert made[True] > made[False]


def test_a_zero_gradient_keeps_the_rows_of_a_warm_start(generator):
    p, optimiser, _ = stepping(generator, warm_start=True, momentum=0.0)
    kept = optimiser.state[p]["separated"]
    p.grad = torch.zeros_like(p)
    optimiser.step()
    assert optimiser.state[p]["separated"] is kept


def test_equal_rows_are_parted_anew_in_each_step(generator):
    """Else rows without a signal would drift the same way for ever."""
    grad = gaussian(20, 6, generator)
    grad[10:] = 0
    p, optimiser = stepped(RowSeparation, torch.zeros(20, 6), [grad], momentum=0.0, lr=1.0)
    first = p.detach().clone()
    optimiser.step()
    second = p.detach() - first
    assert not torch.allclose(first[11:], second[11:], atol=1e-2)
    again, _ = stepped(RowSeparation, torch.zeros(20, 6), [grad, grad], momentum=0.0, lr=1.0)
    assert torch.equal(again, p)


def test_it_separates_where_row_normalisation_does_not(generator):
    grad = with_twins(80, 16, generator, gap=1e-3)
    _, optimiser = stepped(RowSeparation, torch.zeros(80, 16), [grad])
    (report,) = optimiser.last_step.values()
    unit = grad - grad.mean(dim=0)
    assert report.rho > 10 * cloud.ratio(unit / unit.norm(dim=1, keepdim=True)).value


def test_it_fits_a_head(generator):
    """A small classifier: the loss falls, and by no more than the bound in a step."""
    tokens, d, lr = 30, 8, 0.2
    hidden = gaussian(200, d, generator)
    hidden = hidden / hidden.norm(dim=1, keepdim=True)
    target = (hidden @ gaussian(d, tokens, generator)).argmax(dim=1)
    head = torch.nn.Linear(d, tokens, bias=False)
    optimiser = RowSeparation(head.parameters(), lr=lr, radius=1.0)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(head(hidden), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * math.log(tokens)
    assert max(abs(a - b) for a, b in zip(losses, losses[1:], strict=False)) <= lr * (1 + 1e-5)


def test_bad_options_are_refused():
    p = [Parameter(torch.zeros(4, 3))]
    for option, value, said in (
        ("alignment", 1.5, "alignment is 1.5"),
        ("measure", "angle", "'decrease', 'cosine'"),
        ("solver", "adam", "projected_gradient"),
        ("precondition", "muon", "right_polar"),
        ("passes", 0, "passes is 0"),
        ("radius", -1.0, "radius is -1"),
        ("seed", -1, "seed is -1"),
    ):
        with pytest.raises(ValueError, match=said):
            RowSeparation(p, **{option: value})
        with pytest.raises(ValueError, match=said):
            RowSeparation([{"params": p, option: value}])
    with pytest.raises(TypeError, match="warm_start"):
        RowSeparation(p, warm_start=1)
    for alignment in (True, "0.5", None):
        with pytest.raises(TypeError, match=f"alignment is {alignment!r}"):
            RowSeparation(p, alignment=alignment)


def test_an_interrupt_after_the_solve_leaves_the_parameter_as_it_was(generator, monkeypatch):
    """In the figures of `last_step`, the last work before weights and state change."""

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    p = Parameter(gaussian(9, 4, generator))
    optimiser = RowSeparation([p], warm_start=True)
    p.grad = gaussian(9, 4, generator)
    optimiser.step()
    weight, state = p.detach().clone(), deepcopy(optimiser.state[p])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("rowsep.optim.heads.row_separation._report", interrupted)
        optimiser.step()
    assert torch.equal(p, weight) and state["step"] == optimiser.state[p]["step"] == 1
    for key in ("momentum_buffer", "separated"):
        assert torch.equal(optimiser.state[p][key], state[key])
