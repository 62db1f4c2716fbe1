"""SteepestDescent: a warm start comes nearer to the optimum from step to step, and resumes."""

import copy

import pytest
import torch

from rowsep import optim
from rowsep.packing import cloud, steepest_step

V, D = 310, 16  # beyond 300 rows, where the step is solved by passes


def gradients(seed, count):
    """Rows of unequal norm in a few strong directions, and fresh noise in each."""
    generator = torch.Generator().manual_seed(seed)
    steady = torch.randn(V, D, generator=generator) * torch.logspace(0, -1, D)
    steady *= torch.rand(V, 1, generator=generator) ** 3
    return [steady + 0.05 * torch.randn(V, D, generator=generator) for _ in range(count)]


def alignments(seed, best, **options):
    """Of each step with its momentum, as a share of that of `best`, which is nearly the optimum."""
    p = torch.nn.Parameter(torch.zeros(V, D))
    optimizer = optim.SteepestDescent([p], lr=1.0, nesterov=False, passes=2, **options)
    found = []
    for grad in gradients(seed, 6):
        p.grad, before = grad, p.detach().clone()
        optimizer.step()
        momentum = optimizer.state[p]["momentum_buffer"]
        (report,) = optimizer.last_step.values()
        own = cloud.alignment(momentum, before - p.detach())
        assert report.alignment == pytest.approx(own, rel=1e-4) and report.diameter <= 1 + 1e-6
        upper = best(momentum)
        assert own <= upper.alignment / (1 - upper.gap)
        assert upper.alignment <= own / (1 - report.gap) * (1 + 1e-4)
        found.append(own / upper.alignment)
    return found


def test_a_warm_start_comes_nearer_from_step_to_step(generator):
    seed, known = generator.initial_seed(), []

    def best(momentum):
        """The momentum does not depend on the steps, so that each is solved once."""
        for other, step in known:
            if torch.equal(other, momentum):
                return step
        step = steepest_step(momentum, solver="first_order", passes=16)
        known.append((momentum.clone(), step))
        return step

    cold, warm = alignments(seed, best), alignments(seed, best, warm_start=True)
    assert len(known) == 6
    assert warm[0] == cold[0]
    assert sum(1 - x for x in warm[3:]) < 0.7 * sum(1 - x for x in cold[3:])
    assert max(warm) <= 1.01


@pytest.mark.parametrize("vocab_dim", [0, 1])
def test_the_flow_keeps_its_size_and_resumes_bit_for_bit(vocab_dim):
    grads = [g if vocab_dim == 0 else g.T.contiguous() for g in gradients(0, 4)]
    p = torch.nn.Parameter(torch.zeros_like(grads[0]))
    options = dict(lr=0.1, passes=2, warm_start=True, vocab_dim=vocab_dim, num_real_rows=305)
    optimizer = optim.SteepestDescent([p], **options)
    shapes = {k: v.shape for k, v in optimizer.state[p].items()}
    for k, grad in enumerate(grads):
        if k == 2:
            q = torch.nn.Parameter(p.detach().clone())
            resumed = optim.SteepestDescent([q], **options)
            resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        p.grad = grad
        optimizer.step()
        assert {k: v.shape for k, v in optimizer.state[p].items()} == shapes
        if k >= 2:
            q.grad = grad
            resumed.step()
    assert torch.equal(p, q)
    pairs, weights = optimizer.state[p]["flow_pairs"], optimizer.state[p]["flow_weights"]
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-5)
    assert pairs[weights > 0].max() < 305


def test_a_warm_start_is_a_flag():
    with pytest.raises(TypeError, match="warm_start is 1"):
        optim.SteepestDescent([torch.nn.Parameter(torch.zeros(4, 2))], warm_start=1)
