"""A frozen body without a model: hidden states of a Markov chain, and a training of a few steps."""

import torch

from experiments.frozen_head.config import Training
from experiments.frozen_head.data import Data, restricted
from experiments.frozen_head.hidden import States
from experiments.frozen_head.presets import METHODS
from experiments.lm_head.config import Run

V, D = 40, 12
TINY = Training(vocab=32, d=D, batch=32, steps=12, evaluate_every=4)


def some_states(count, seed):
    """Hidden states with unequal directions, and targets drawn from a softmax of them."""
    generator = torch.Generator().manual_seed(7)
    head = 2 * torch.randn(V, D, generator=generator)
    head[:, 0] -= torch.arange(V) / 8  # a few frequent tokens, many rare ones
    generator.manual_seed(seed)
    hidden = torch.randn(count, D, generator=generator) * torch.linspace(2, 0.2, D)
    hidden[:, 0] += 1
    hidden = hidden.to(torch.bfloat16)
    weights = (hidden.float() @ head.T).softmax(dim=1)
    targets = torch.multinomial(weights, 1, generator=generator)[:, 0]
    return States(hidden, targets, f"seed {seed}")


def tiny_data(training=TINY, own=None) -> Data:
    return restricted(some_states(600, 1), some_states(200, 2), training, own, V)


def tiny(name="rowwise_adam", *, lr=None, seed=0, training=TINY):
    method = METHODS[name]
    return Run.of(training, name, method, lr or method.lrs[1], seed)
