"""Unit rows with a scale per token: the same logits at first, and steps with the stated effect."""

import pytest
import torch
from torch import nn
from torch.optim import SGD

from rowsep.optim.normalized_head import NormalizedHead


def linear(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(6, 11, bias=False, dtype=torch.float64)


def hidden(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 5, 6, generator=generator, dtype=torch.float64)


def test_starts_with_the_logits_of_the_head() -> None:
    head = linear()
    normalized = NormalizedHead(head)
    torch.testing.assert_close(normalized(hidden()), head(hidden()))
    torch.testing.assert_close(normalized.weight.norm(dim=1), torch.ones(11, dtype=torch.float64))


def test_steps_keep_rows_at_length_one() -> None:
    normalized = NormalizedHead(linear())
    optimizer = SGD(normalized.parameters(), lr=0.5)
    handle = normalized.attach(optimizer)
    for seed in range(3):
        optimizer.zero_grad()
        normalized(hidden(seed)).square().sum().backward()
        optimizer.step()
        torch.testing.assert_close(
            normalized.weight.norm(dim=1), torch.ones(11, dtype=torch.float64)
        )
    handle.remove()
    normalized(hidden()).square().sum().backward()
    optimizer.step()
    assert (normalized.weight.norm(dim=1) - 1).abs().max() > 1e-3


@pytest.mark.parametrize("precondition", [False, True])
def test_gradient_moves_logits_as_a_plain_head_would(precondition: bool) -> None:
    """Per unit of lr: s_i^2 times as far without preconditioning, exactly as far with it."""
    head = linear()
    normalized = NormalizedHead(head, precondition=precondition)
    targets = torch.arange(15) % 11

    def movement(module: nn.Module, weight: nn.Parameter) -> torch.Tensor:
        logits = module(hidden())
        nn.functional.cross_entropy(logits.flatten(0, 1), targets).backward()
        with torch.no_grad():
            weight.sub_(weight.grad)
            return module(hidden()) - logits

    plain = movement(head, head.weight)
    factor = 1.0 if precondition else normalized.scale.detach().square()
    torch.testing.assert_close(movement(normalized, normalized.weight), plain * factor)


def test_preconditioning_leaves_the_other_gradients_exact() -> None:
    gradients = []
    for precondition in (False, True):
        normalized = NormalizedHead(linear(), precondition=precondition)
        h = hidden().requires_grad_()
        normalized(h).square().sum().backward()
        gradients.append((h.grad, normalized.scale.grad))
    for plain, preconditioned in zip(*gradients, strict=True):
        assert torch.equal(plain, preconditioned)


def test_refuses_heads_without_directions() -> None:
    with pytest.raises(ValueError, match="bias"):
        NormalizedHead(nn.Linear(3, 4))
    head = linear()
    with torch.no_grad():
        head.weight[2:4] = 0
    with pytest.raises(ValueError, match="2 rows of the head are zero"):
        NormalizedHead(head)
