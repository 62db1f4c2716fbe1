"""Blocks of logits give the loss and the gradient of torch's cross-entropy."""

import pytest
import torch

from experiments.frozen_head import cross_entropy


@pytest.mark.parametrize("tokens", [1, 7, 50])
def test_as_torch_has_it_whatever_the_blocks(tokens, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(cross_entropy, "BLOCK_BYTES", 8 * 30 * tokens)
    head = torch.randn(30, 5, dtype=torch.float64, requires_grad=True)
    hidden, targets = 20 * torch.randn(50, 5, dtype=torch.float64), torch.randint(30, (50,))
    losses = torch.nn.functional.cross_entropy(hidden @ head.T, targets, reduction="none")
    losses.mean().backward()
    loss, gradient = cross_entropy.loss_and_gradient(hidden, targets, head.detach())
    assert loss == pytest.approx(losses.mean().item(), rel=1e-12)
    torch.testing.assert_close(gradient, head.grad, rtol=1e-10, atol=1e-14)
    found = cross_entropy.token_losses(hidden, targets, head.detach())
    torch.testing.assert_close(found, losses.detach(), rtol=1e-12, atol=1e-12)


def test_a_block_holds_no_more_logits_than_it_may(monkeypatch):
    monkeypatch.setattr(cross_entropy, "BLOCK_BYTES", 4 * 300)
    head, hidden = torch.zeros(100, 4), torch.zeros(10, 4)
    sizes = [len(rows) for rows, _ in cross_entropy._blocks(hidden, torch.zeros(10), head)]
    assert sizes == [3, 3, 3, 1]
