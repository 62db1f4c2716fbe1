"""A cap on the growth of the largest singular value, applied to each step.

    W' = W + S,   sigma_1 with vectors u, v of W,   S <- S - max(0, u^T S v) u v^T

To first order sigma_1(W + S) = sigma_1(W) + u^T S v, so what is left of a step does not make the
largest singular value grow. Unlike the caps of the weights themselves (as in the Lipschitz
transformers, arXiv 2507.13338) it changes the step only, and leaves everything else of it alone.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from .heads.sharding import is_sharded


def top_singular_vectors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors u, shape (m,), and v, shape (n,), of the largest singular value of `matrix`.

    From the Gram matrix of the shorter side: the cost of one product and an eigendecomposition of
    that size. Computed in float32, or float64 for a float64 matrix; zeros for a zero matrix. If the
    largest singular value is multiple, any one of its pairs.
    """
    A = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
    scale = A.abs().max()
    if scale == 0:
        return A.new_zeros(A.shape[0]), A.new_zeros(A.shape[1])
    A = A / scale
    wide = A.shape[0] < A.shape[1]
    A = A.T if wide else A
    right = torch.linalg.eigh(A.T @ A).eigenvectors[:, -1]
    left = A @ right
    left = left / left.norm()
    return (right, left) if wide else (left, right)


def without_top_growth(step: Tensor, weight: Tensor) -> Tensor:
    """`step` less its part that makes the largest singular value of `weight` grow.

    Args:
        step: what is to be added to `weight`, shape (m, n).
        weight: shape (m, n).

    Returns:
        `S - max(0, u^T S v) u v^T`, dtype of `step`; u and v from `top_singular_vectors`.
    """
    u, v = top_singular_vectors(weight)
    growth = (u @ step.to(u.dtype) @ v).clamp_min(0)
    return (step.to(u.dtype) - growth * torch.outer(u, v)).to(step.dtype)


class SpectralCap:
    """Applies `without_top_growth` to every step that an optimiser makes on given matrices.

    The step is what the optimiser did to the weights, learning rate and decay included. Only the
    growth to first order is removed: with several singular values near the largest, or a large
    step, sigma_1 still grows by the second-order terms. Needs a copy of the weights during a step,
    keeps no state.
    """

    def __init__(self, optimizer: Optimizer, parameters: Iterable[Tensor]) -> None:
        """Attach the cap to an optimiser.

        Args:
            optimizer: any torch optimiser; its step hooks are used.
            parameters: the matrices, all of them parameters of `optimizer`.

        Raises:
            ValueError: a parameter is not a matrix, or not the optimiser's.
            NotImplementedError: a DTensor.
        """
        self._parameters = list(parameters)
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for p in self._parameters:
            if is_sharded(p):
                raise NotImplementedError("SpectralCap does not support sharded parameters")
            if p.ndim != 2 or id(p) not in owned:
                raise ValueError(
                    f"a parameter of shape {tuple(p.shape)} is not a matrix of this optimiser; "
                    f"give matrices out of optimizer.param_groups"
                )
        self._before: list[Tensor] = []
        self._handles = [
            optimizer.register_step_pre_hook(self._remember),
            optimizer.register_step_post_hook(self._cap),
        ]

    def remove(self) -> None:
        """Leave the optimiser as it was."""
        for handle in self._handles:
            handle.remove()

    def _remember(self, *_: Any) -> None:
        self._before = [p.detach().clone() for p in self._parameters]

    @torch.no_grad()
    def _cap(self, *_: Any) -> None:
        for p, before in zip(self._parameters, self._before, strict=True):
            p.copy_(before + without_top_growth(p - before, before))
        self._before = []
