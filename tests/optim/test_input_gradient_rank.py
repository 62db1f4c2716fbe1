"""Only what the head sends back is truncated, to the best approximation of the rank."""

import pytest
import torch
from torch import nn

from rowsep.optim.input_gradient_rank import limit_input_gradient_rank, truncated


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (7, 7), (1, 5)])
@pytest.mark.parametrize("rank", [0, 1, 3, 100])
def test_truncation_is_that_of_the_svd(shape: tuple[int, int], rank: int) -> None:
    A = torch.randn(shape, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)
    u, s, vh = torch.linalg.svd(A, full_matrices=False)
    s[rank:] = 0
    torch.testing.assert_close(truncated(A, rank), u @ torch.diag(s) @ vh, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keeps_the_dtype(dtype: torch.dtype) -> None:
    assert truncated(torch.ones(4, 3, dtype=dtype), 1).dtype == dtype


def backward(rank: int | None) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 9)).double()
    handle = None if rank is None else limit_input_gradient_rank(model[1], rank)
    x = torch.randn(2, 8, 5, dtype=torch.float64, requires_grad=True)
    logits = model(x)
    nn.functional.cross_entropy(logits.flatten(0, 1), torch.arange(16) % 9).backward()
    if handle is not None:
        handle.remove()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return {"logits": logits.detach(), "x": x.grad, **grads}


def test_logits_and_head_gradient_are_exact() -> None:
    exact, limited = backward(None), backward(2)
    for name in ("logits", "1.weight", "1.bias"):
        assert torch.equal(exact[name], limited[name])
    assert torch.linalg.matrix_rank(exact["x"].flatten(0, 1)) == 5
    assert torch.linalg.matrix_rank(limited["x"].flatten(0, 1)) == 2
    for name, full in backward(6).items():
        torch.testing.assert_close(full, exact[name])


def test_rank_zero_cuts_the_model_off() -> None:
    assert not backward(0)["x"].any() and not backward(0)["0.weight"].any()


def test_refuses_ranks_that_are_none() -> None:
    with pytest.raises(ValueError, match="rank is -1"):
        limit_input_gradient_rank(nn.Linear(2, 2), -1)
