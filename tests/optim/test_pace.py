"""The pull against its formula, written out for one scalar at a time, in float64."""

import copy
import io
import math

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Muon

from rowsep.optim.model.combined import Combined
from rowsep.optim.pace import Pace


def gradient(step: int) -> torch.Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(step), dtype=torch.float64)


def train(p: nn.Parameter, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        p.grad = gradient(step).to(p.dtype)
        optimizer.step()


def test_adamw_with_pace_is_the_published_update() -> None:
    lr, b1, b2, eps, wd = 0.05, 0.9, 0.99, 1e-8, 0.1
    c, kappa, gamma, rho = 0.5, 0.3, 2.0, 1.0
    p = nn.Parameter(gradient(99))
    start = p.detach().clone()
    optimizer = AdamW([p], lr=lr, betas=(b1, b2), eps=eps, weight_decay=wd)
    pace = Pace(optimizer, strength=c, kappa=kappa, gamma=gamma, rho=rho)
    train(p, optimizer, range(5))
    for i in range(4):
        for j in range(3):
            theta = average = start[i, j].item()
            m = v = 0.0
            for t in range(1, 6):
                g = gradient(t - 1)[i, j].item()
                m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
                root = math.sqrt(v / (1 - b2**t)) + eps
                stepped = theta * (1 - lr * wd) - lr * m / (1 - b1**t) / root
                decay = max((1 + gamma * max(0.0, t - rho)) ** -kappa, 1e-4)
                pull = min(1.0, lr * c * decay / root)
                theta = stepped + pull * (average - theta)
                average = (1 - decay) * average + decay * theta
            assert p[i, j].item() == pytest.approx(theta, rel=1e-12)
            assert pace.average[p][i, j].item() == pytest.approx(average, rel=1e-12)


def test_without_second_moment_the_pull_is_that_of_gradient_descent() -> None:
    p = nn.Parameter(gradient(99))
    optimizer = SGD([p], lr=0.5)
    pace = Pace(optimizer, strength=1.0)
    theta, average = gradient(99), gradient(99)
    for t in range(1, 4):
        train(p, optimizer, range(t, t + 1))
        decay = (1 + t) ** -0.2
        theta = theta - 0.5 * gradient(t) + 0.5 * decay * (average - theta)
        average = (1 - decay) * average + decay * theta
    torch.testing.assert_close(p.detach(), theta)
    torch.testing.assert_close(pace.average[p], average)


def test_eval_swaps_the_average_in_and_train_back() -> None:
    p = nn.Parameter(gradient(99).to(torch.bfloat16))
    optimizer = SGD([p], lr=0.1)
    pace = Pace(optimizer)
    assert pace.average[p].dtype == torch.float32
    train(p, optimizer, range(3))
    live = p.detach().clone()
    pace.train()
    assert torch.equal(p, live)
    for _ in range(2):
        pace.eval()
        assert torch.equal(p, pace.average[p].bfloat16()) and not torch.equal(p, live)
    with pytest.raises(RuntimeError, match="call train"):
        optimizer.step()
    pace.train()
    assert torch.equal(p, live)


def make(p: nn.Parameter, q: nn.Parameter) -> tuple[Combined, Pace]:
    optimizer = Combined({"muon": Muon([("p", p)]), "adamw": AdamW([("q", q)])})
    return optimizer, Pace(optimizer)


def test_resumes_bit_for_bit_with_the_optimisers_state() -> None:
    def advance(optimizer: Combined, steps: range) -> None:
        for step in steps:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = gradient(step).to(p.dtype)
            optimizer.step()

    p, q = (nn.Parameter(gradient(i).to(torch.bfloat16)) for i in (98, 99))
    optimizer, pace = make(p, q)
    advance(optimizer, range(3))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    p2, q2 = copy.deepcopy((p, q))
    again, pace2 = make(p2, q2)
    again.load_state_dict(torch.load(file, weights_only=True))
    for o in (optimizer, again):
        advance(o, range(3, 6))
    assert pace2.steps == pace.steps == 6
    assert torch.equal(p, p2) and torch.equal(q, q2)
    for x, y in ((p, p2), (q, q2)):
        assert torch.equal(pace.average[x], pace2.average[y])


def test_refuses_a_state_without_it_and_negative_options() -> None:
    p = nn.Parameter(gradient(0))
    state = SGD([p], lr=0.1).state_dict()
    optimizer = SGD([p], lr=0.1)
    pace = Pace(optimizer)
    with pytest.raises(ValueError, match="saved without Pace"):
        optimizer.load_state_dict(state)
    pace.remove()
    optimizer.load_state_dict(state)
    with pytest.raises(ValueError, match="strength is -1"):
        Pace(optimizer, strength=-1.0)


def test_parameters_without_gradient_are_left_alone() -> None:
    p, q = nn.Parameter(gradient(0)), nn.Parameter(gradient(1))
    optimizer = SGD([p, q], lr=0.1)
    pace = Pace(optimizer, strength=1.0)
    train(p, optimizer, range(3))
    assert torch.equal(q, gradient(1)) and torch.equal(pace.average[q], gradient(1))
