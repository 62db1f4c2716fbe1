"""NorMuon: its formula against the singular value decomposition, padding, refusals."""

import pytest
import torch
from torch.nn import Parameter

from rowsep.optim import NorMuon, updates
from tests.optim.optimisers import stepped
from tests.packing.clouds import gaussian

EXACT = {"num_steps": 16, "center": False}


def test_it_is_the_published_formula(generator):
    p = Parameter(torch.zeros(30, 6, dtype=torch.float64))
    optimiser = NorMuon([p], lr=0.5, momentum=0.7, beta2=0.6, **EXACT)
    buffer, squares = torch.zeros(30, 6).double(), torch.zeros(30, 1).double()
    for _ in range(3):
        before = p.detach().clone()
        p.grad = gaussian(30, 6, generator, torch.float64)
        optimiser.step()
        buffer = 0.7 * buffer + 0.3 * p.grad
        left, _, right = torch.linalg.svd(0.7 * buffer + 0.3 * p.grad, full_matrices=False)
        squares = 0.6 * squares + 0.4 * (left @ right).square().mean(dim=1, keepdim=True)
        rows = left @ right / squares.sqrt()
        expected = 0.5 * 0.2 * (30 * 6) ** 0.5 * rows / rows.norm()
        torch.testing.assert_close(before - p.detach(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("center", [True, False])
def test_the_root_mean_square_of_an_update_is_a_fifth(generator, center):
    momentum, squares = gaussian(40, 7, generator), gaussian(40, 1, generator)[:, 0].square()
    mask = torch.arange(40) < 33
    update = updates.normuon(momentum, squares, center=center, mask=mask)
    assert not update[33:].any()
    assert float(update[:33].square().mean().sqrt()) == pytest.approx(0.2, rel=1e-5)
    assert bool((update[:33].mean(dim=0).abs() < 1e-6).all()) == center


def test_a_row_that_moved_little_so_far_moves_as_far_as_the_others(generator):
    """What the second moment is for: rows of one length, whatever their share of the factor."""
    weight = torch.zeros(50, 6)
    grads = [gaussian(50, 6, generator) for _ in range(40)]
    for grad in grads:
        grad[:25] *= 1e-2
    p, _ = stepped(NorMuon, weight, grads, momentum=0.0, nesterov=False, beta2=0.9, center=False)
    lengths = p.detach().norm(dim=1)
    assert 0.5 < float(lengths[:25].mean() / lengths[25:].mean()) < 2


def test_squares_of_another_length_are_refused(generator):
    with pytest.raises(ValueError, match=r"row_squares has shape \(8,\), expected \(9,\)"):
        updates.normuon(gaussian(9, 4, generator), torch.ones(8))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"beta2": 1}, "beta2 is 1, expected less than 1"),
        ({"num_steps": 0}, "num_steps is 0"),
        ({"beta2": -0.1}, "beta2 is -0.1"),
    ],
)
def test_options_out_of_range_are_refused(options, says):
    p = Parameter(torch.ones(5, 3))
    with pytest.raises(ValueError, match=says):
        NorMuon([p], **options)
    with pytest.raises(ValueError, match=says):
        NorMuon([{"params": [p], **options}])


def test_a_gradient_of_nan_changes_nothing(generator):
    p, optimiser = stepped(NorMuon, gaussian(8, 3, generator), [gaussian(8, 3, generator)])
    before, squares = p.detach().clone(), optimiser.state[p]["row_squares"].clone()
    p.grad = torch.full((8, 3), torch.nan)
    with pytest.raises(ValueError, match="NaN"):
        optimiser.step()
    assert torch.equal(p.detach(), before)
    assert torch.equal(optimiser.state[p]["row_squares"], squares)
