"""How much of a head's signal to the rest of the model passes through few dimensions: a diagnosis.

The gradient that a head sends back, dH = dZ U of shape (tokens, d), is replaced by its best
approximation of rank r; logits and the gradient of the head itself stay exact. Training with and
without shows whether the model learns from more than r directions per batch.
"""

from typing import Any

import torch
from torch import Tensor, nn

from rowsep.packing import checks


def truncated(matrix: Tensor, rank: int) -> Tensor:
    """The best approximation of `matrix` (n, d) of rank at most `rank` in the Frobenius norm.

    By the eigenvectors of the smaller Gram matrix in float64, so that directions down to 1e-8 of
    the largest are told apart; returned in the dtype of `matrix`.
    """
    A = matrix.double()
    if rank >= min(A.shape):
        return matrix
    if A.shape[0] < A.shape[1]:
        basis = torch.linalg.eigh(A @ A.T).eigenvectors[:, -rank:] if rank else A[:, :0]
        return (basis @ (basis.T @ A)).to(matrix.dtype)
    basis = torch.linalg.eigh(A.T @ A).eigenvectors[:, -rank:] if rank else A.T[:, :0]
    return (A @ basis @ basis.T).to(matrix.dtype)


def limit_input_gradient_rank(head: nn.Module, rank: int) -> Any:
    """Truncate the gradient that `head` sends to its input to `rank`, in the backward pass only.

    Args:
        head: a module with one tensor (..., d) as its input; all leading axes together count rows.
        rank: at least 0; 0 cuts the rest of the model off.

    Returns:
        A handle whose `remove()` ends it.

    Raises:
        TypeError, ValueError: `rank` is not such a number.
    """
    checks.check_count(rank, "rank", 0)

    def truncate(module: nn.Module, inputs: Any, outputs: Any) -> tuple[Tensor, ...] | None:
        del module, outputs
        if inputs[0] is None:
            return None
        flat = inputs[0].reshape(-1, inputs[0].shape[-1])
        return (truncated(flat, rank).reshape(inputs[0].shape), *inputs[1:])

    return head.register_full_backward_hook(truncate)
