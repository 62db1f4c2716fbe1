"""An optimiser on a stack is that optimiser on each matrix, to the last bit."""

import copy

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Muon

from rowsep.optim.heads.row_norm import RowNormM
from rowsep.optim.heads.row_separation import RowSeparation
from rowsep.optim.model.stacked import Stacked

KINDS = [
    (Muon, dict(lr=0.02)),
    (RowNormM, dict(lr=0.03, vocab_dim=1)),
    (AdamW, dict(lr=0.01)),
    (SGD, dict(lr=0.01, momentum=0.9)),
]


def gradient(step: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(step)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind, options", KINDS)
def test_equals_the_optimiser_on_each_matrix(kind, options, dtype) -> None:
    stack = nn.Parameter(gradient(99, dtype))
    matrices = [nn.Parameter(m.clone()) for m in stack.detach()]
    stacked, alone = Stacked([stack], kind, **options), kind(matrices, **options)
    for step in range(3):
        stack.grad = gradient(step, dtype)
        for matrix, grad in zip(matrices, stack.grad, strict=True):
            matrix.grad = grad.clone()
        stacked.step()
        alone.step()
        assert torch.equal(stack.grad, gradient(step, dtype))
        for group in (stacked.param_groups[0], alone.param_groups[0]):
            group["lr"] *= 0.5
    assert torch.equal(stack, torch.stack(matrices))


@pytest.mark.parametrize("kind, options", KINDS)
def test_resumes_bit_for_bit(kind, options) -> None:
    stack = nn.Parameter(gradient(99, torch.bfloat16))
    optimizer = Stacked([("experts", stack)], kind, **options)

    def train(p: nn.Parameter, optimizer: Stacked, steps: range) -> None:
        for step in steps:
            p.grad = gradient(step, torch.bfloat16)
            optimizer.step()

    train(stack, optimizer, range(2))
    resumed = nn.Parameter(stack.detach().clone())
    again = Stacked([("experts", resumed)], kind, **options)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    twin, twin_optimizer = copy.deepcopy((stack, optimizer))
    for p, o in ((stack, optimizer), (resumed, again), (twin, twin_optimizer)):
        train(p, o, range(2, 4))
    assert torch.equal(stack, resumed) and torch.equal(stack, twin)


def test_keeps_state_in_stacks_made_at_construction() -> None:
    stack = nn.Parameter(gradient(0))
    optimizer = Stacked([stack], RowNormM, lr=0.1)
    assert optimizer.state[stack]["momentum_buffer"].shape == stack.shape
    before = optimizer.state[stack]["momentum_buffer"].data_ptr()
    stack.grad = gradient(1)
    optimizer.step()
    assert optimizer.state[stack]["momentum_buffer"].data_ptr() == before


def test_parameter_without_gradient_stays_and_closure_runs_once() -> None:
    stack = nn.Parameter(gradient(0))
    optimizer = Stacked([stack], Muon)
    calls = []
    assert optimizer.step(lambda: calls.append(torch.is_grad_enabled()) or 2.0) == 2.0
    assert calls == [True] and torch.equal(stack, gradient(0))


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"3-D parameters, one has shape \(4, 3\); .* Muon"):
        Stacked([nn.Parameter(torch.zeros(4, 3))], Muon)
    with pytest.raises(ValueError, match="Learning rate"):
        Stacked([nn.Parameter(gradient(0))], Muon, lr=-1.0)
    with pytest.raises(TypeError, match="'step' of RowSeparation is a int, expected tensors"):
        Stacked([nn.Parameter(gradient(0))], RowSeparation, lr=0.1)


def test_a_state_of_another_shape_is_refused_untouched(generator):
    saved = Stacked([torch.nn.Parameter(torch.zeros(2, 6, 3))], RowNormM, lr=0.5).state_dict()
    stack = torch.nn.Parameter(torch.zeros(2, 5, 3))
    optimizer = Stacked([stack], RowNormM, lr=0.25)
    with pytest.raises(ValueError, match=r"\(2, 6, 3\) for parameter 0, of shape \(2, 5, 3\)"):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.25
    stack.grad = torch.randn(2, 5, 3, generator=generator)
    optimizer.step()
    assert stack.detach().any()
