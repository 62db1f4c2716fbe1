"""Cross-entropy of a linear head and its gradient, a few rows of logits at a time.

    loss = mean_t (logsumexp(U h_t) - <u_{y_t}, h_t>),   grad = (softmax(H U^T) - onehot(y))^T H / n

Each token's logits over the whole vocabulary are needed once, so blocks are of tokens: beside the
head and its gradient, both V x d, memory is that of one block of logits.
"""

import torch
from torch import Tensor

BLOCK_BYTES = 64 * 2**20
"""Of a block of logits, at most, unless one token's have more."""


def token_losses(hidden: Tensor, targets: Tensor, head: Tensor) -> Tensor:
    """Return the cross-entropy of every token, nats, shape (n,).

    Args:
        hidden: shape (n, d), of any floating dtype; computed in that of the head.
        targets: int64, shape (n,).
        head: U, shape (V, d), float32 or float64.
    """
    losses = []
    for rows, wanted in _blocks(hidden, targets, head):
        logits = rows.to(head.dtype) @ head.T
        losses.append(logits.logsumexp(dim=1) - logits.gather(1, wanted[:, None])[:, 0])
    return torch.cat(losses)


def loss_and_gradient(hidden: Tensor, targets: Tensor, head: Tensor) -> tuple[float, Tensor]:
    """Return the mean cross-entropy, nats, and its gradient in the head, shape (V, d).

    Args:
        hidden: shape (n, d), of any floating dtype; computed in that of the head.
        targets: int64, shape (n,).
        head: U, shape (V, d), float32 or float64.
    """
    total, count = 0.0, len(targets)
    gradient = torch.zeros_like(head)
    for rows, wanted in _blocks(hidden, targets, head):
        rows = rows.to(head.dtype)
        logits = rows @ head.T
        top = logits.amax(dim=1, keepdim=True)
        chosen = logits.gather(1, wanted[:, None])
        weights = logits.sub_(top).exp_()  # in place: the block is the peak of memory
        sums = weights.sum(dim=1, keepdim=True)
        total += float((sums.log() + top - chosen).sum())
        weights.div_(sums)
        weights[torch.arange(len(wanted)), wanted] -= 1
        gradient.addmm_(weights.T, rows, alpha=1 / count)
    return total / count, gradient


def _blocks(hidden: Tensor, targets: Tensor, head: Tensor) -> list[tuple[Tensor, Tensor]]:
    size = max(1, BLOCK_BYTES // (head.element_size() * len(head)))
    return list(zip(hidden.split(size), targets.split(size), strict=True))
