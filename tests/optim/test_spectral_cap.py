"""What is left of a step does not make the largest singular value grow, to first order."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import SGD

from rowsep.optim.spectral_cap import SpectralCap, top_singular_vectors, without_top_growth


def pair(seed: int, rows: int, columns: int, dtype=torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(2, rows, columns, generator=generator, dtype=dtype))


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30)
def test_derivative_of_the_largest_singular_value(seed: int, rows: int, columns: int) -> None:
    """d/dt sigma_1(W + t S) by autograd: min(0, that of the step given)."""
    W, S = pair(seed, rows, columns)

    def derivative(step: torch.Tensor) -> float:
        t = torch.zeros((), dtype=W.dtype, requires_grad=True)
        return torch.autograd.grad(torch.linalg.matrix_norm(W + t * step, 2), t)[0].item()

    singular = torch.linalg.svdvals(W)
    gap = 1.0 if min(W.shape) == 1 else (1 - singular[1] / singular[0]).item()
    if gap > 1e-3:
        capped = derivative(without_top_growth(S, W))
        assert capped == pytest.approx(min(0.0, derivative(S)), abs=1e-8 / gap)


def test_removes_one_direction_and_only_growth() -> None:
    W, S = pair(1, 12, 7)
    u, _, vh = torch.linalg.svd(W)
    growing = S if u[:, 0] @ S @ vh[0] > 0 else -S
    removed = growing - without_top_growth(growing, W)
    coefficient = u[:, 0] @ growing @ vh[0]
    torch.testing.assert_close(removed, coefficient * torch.outer(u[:, 0], vh[0]))
    torch.testing.assert_close(without_top_growth(-growing, W), -growing)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_vectors_agree_with_the_svd(dtype: torch.dtype, scale: float) -> None:
    W = torch.outer(torch.ones(9), torch.arange(1.0, 6.0)) + 0.1 * pair(3, 9, 5, torch.float32)[0]
    W = (W * scale).to(dtype)
    u, _, vh = torch.linalg.svd(W.double())
    left, right = top_singular_vectors(W)
    torch.testing.assert_close(
        torch.outer(left, right).double(), torch.outer(u[:, 0], vh[0]), rtol=0, atol=1e-5
    )


def test_zero_weights_cap_nothing() -> None:
    W, S = pair(4, 5, 3)
    assert torch.equal(without_top_growth(S, torch.zeros_like(W)), S)


def test_hook_caps_the_steps_of_an_optimiser() -> None:
    """Gradient ascent on sigma_1: without the cap it grows by lr per step, with it not at all."""
    weights = {}
    for capped in (False, True):
        p, other = nn.Parameter(pair(5, 8, 6)[0]), nn.Parameter(torch.zeros(2))
        optimizer = SGD([p, other], lr=0.1)
        cap = SpectralCap(optimizer, [p]) if capped else None
        for _ in range(3):
            optimizer.zero_grad()
            (-torch.linalg.matrix_norm(p, 2) - other.sum()).backward()
            optimizer.step()
        weights[capped] = torch.linalg.matrix_norm(p.detach(), 2)
        assert torch.allclose(other, torch.tensor(0.3))
        if cap is not None:
            before = p.detach().clone()
            cap.remove()
            optimizer.step()
            assert not torch.equal(p, before)
    start = torch.linalg.matrix_norm(pair(5, 8, 6)[0], 2)
    torch.testing.assert_close(weights[True], start)
    torch.testing.assert_close(weights[False], start + 0.3)


def test_refuses_strangers() -> None:
    p = nn.Parameter(torch.zeros(3, 2))
    optimizer = SGD([p], lr=0.1)
    for stranger in (nn.Parameter(torch.zeros(3, 2)), nn.Parameter(torch.zeros(3))):
        with pytest.raises(ValueError, match="not a matrix of this optimiser"):
            SpectralCap(optimizer, [stranger])
