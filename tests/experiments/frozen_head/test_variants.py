"""The whitened rules are the formulas they state."""

import pytest
import torch

from experiments.frozen_head import variants
from rowsep.packing import cloud


def spread(seed=0):
    torch.manual_seed(seed)
    return torch.randn(30, 6) * torch.logspace(0, -4, 30)[:, None] * torch.linspace(2, 0.1, 6)


def test_the_first_step_of_the_averaged_gram_is_the_polar_factor_of_the_scaled_rows():
    head, gradient = torch.nn.Parameter(torch.zeros(30, 6)), spread()
    optimizer = variants.AveragedGram([head], lr=0.5, damping=1e-7)
    head.grad = gradient
    optimizer.step()
    centred = gradient - gradient.mean(dim=0)
    rows = torch.nn.functional.normalize(centred, dim=1)
    values = torch.linalg.svdvals(rows @ torch.linalg.inv(torch.linalg.cholesky(rows.T @ rows)).T)
    torch.testing.assert_close(values, torch.ones(6))
    left, _, right = torch.linalg.svd(rows, full_matrices=False)
    polar = left @ right
    expected = polar - polar.mean(dim=0)
    expected *= -0.5 / cloud.diameter(expected).value
    torch.testing.assert_close(head.detach(), expected, rtol=1e-3, atol=1e-4)


def test_the_hidden_metric_is_the_covariance_of_what_was_observed():
    head = torch.nn.Parameter(torch.zeros(30, 6))
    optimizer = variants.HiddenCovariance([head], lr=0.5, damping=1e-7)
    hidden, head.grad = spread(1), spread()
    optimizer.observe(head, hidden)
    optimizer.step()
    centred = head.grad - head.grad.mean(dim=0)
    rows = torch.nn.functional.normalize(centred, dim=1)
    values, vectors = torch.linalg.eigh(hidden.T @ hidden)
    expected = rows @ (vectors * values.rsqrt()) @ vectors.T
    expected = expected - expected.mean(dim=0)
    expected *= -0.5 / cloud.diameter(expected).value
    torch.testing.assert_close(head.detach(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rule", [variants.AveragedGram, variants.HiddenCovariance])
def test_the_scale_of_the_gradients_does_not_matter(rule):
    moved = []
    for scale in (1.0, 1e-15):
        head = torch.nn.Parameter(torch.zeros(30, 6))
        optimizer = rule([head], lr=0.5)
        for seed in range(3):
            head.grad = spread(seed) * scale
            if isinstance(optimizer, variants.HiddenCovariance):
                optimizer.observe(head, spread(seed + 5))
            optimizer.step()
        moved.append(head.detach())
    torch.testing.assert_close(*moved, rtol=1e-3, atol=1e-5)


def test_the_root_undoes_the_matrix():
    average = spread().T @ spread()
    root = variants.inverse_root(average, 1e-7).double()
    scale = average.double().diagonal().mean()
    torch.testing.assert_close(
        root @ average.double() @ root / scale, torch.eye(6).double(), rtol=0, atol=1e-3
    )
    assert torch.equal(variants.inverse_root(torch.zeros(4, 4), 1e-3), torch.eye(4))
