"""A compiled step is an eager step."""

from copy import deepcopy

import pytest
import torch

from tests.optim.optimisers import CLASSES


@pytest.fixture(params=CLASSES)
def cls(request):
    return CLASSES[request.param][0]


@pytest.mark.filterwarnings("ignore")
def test_compiled_steps_are_eager_steps(cls):
    """As torch's parity test, whose last gradient has equal rows: rounding is no direction."""
    torch._dynamo.reset()
    x = torch.ones(10, 10)
    eager = torch.nn.Sequential(*[torch.nn.Linear(10, 10, bias=False) for _ in range(2)])
    eager(x).sum().backward()
    traced = deepcopy(eager)
    traced(x).sum().backward()
    last = eager[1].weight.detach().clone()
    optimisers = [cls(model.parameters(), lr=torch.tensor(1e-2)) for model in (eager, traced)]

    def loss(model):
        value = model(x).sum()
        value.backward()
        return value

    def step(k, model):
        return optimisers[k].step(lambda: loss(model))

    compiled = torch.compile(step, backend="aot_eager")
    for _ in range(2):
        step(0, eager)
        compiled(1, traced)
    torch.testing.assert_close(list(traced.parameters()), list(eager.parameters()))
    assert torch.equal(traced[1].weight, last) and not torch.equal(traced[0].weight, last)
