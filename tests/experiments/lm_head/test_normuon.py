"""NorMuon is its formula."""

import pytest
import torch

from experiments.lm_head import normuon


def test_normuon_is_its_formula():
    """Three steps against the singular value decomposition, in float64."""
    torch.seed()
    p = torch.nn.Parameter(torch.zeros(30, 6, dtype=torch.float64))
    opt = normuon.NorMuon([p], lr=0.5, momentum=0.7, beta2=0.6, num_steps=16)
    buffer, squares = torch.zeros(30, 6).double(), torch.zeros(30, 1).double()
    for _ in range(3):
        before = p.detach().clone()
        p.grad = torch.randn(30, 6, dtype=torch.float64)
        opt.step()
        buffer = 0.7 * buffer + 0.3 * p.grad
        left, _, right = torch.linalg.svd(0.7 * buffer + 0.3 * p.grad, full_matrices=False)
        squares = 0.6 * squares + 0.4 * (left @ right).square().mean(dim=1, keepdim=True)
        rows = left @ right / squares.sqrt()
        expected = 0.5 * 0.2 * (30 * 6) ** 0.5 * rows / rows.norm()
        torch.testing.assert_close(before - p.detach(), expected, rtol=0, atol=1e-5)


def test_normuon_leaves_weights_alone_without_a_gradient_and_refuses_a_bad_decay():
    p = torch.nn.Parameter(torch.ones(5, 3))
    p.grad = torch.zeros(5, 3)
    normuon.NorMuon([p], lr=0.5).step()
    assert torch.equal(p.detach(), torch.ones(5, 3))
    with pytest.raises(ValueError, match="beta2 is 1, expected less than 1"):
        normuon.NorMuon([p], lr=0.5, beta2=1)
