"""The data of a run: hidden states and targets of the tokens that its head knows."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from experiments.frozen_head.config import BANDS, Training
from experiments.frozen_head.hidden import States, pretrained_head, states
from experiments.frozen_head.models import MODELS


@dataclass(frozen=True)
class Part:
    """Positions of a text whose target the head knows.

    Args:
        hidden: of the whole text, bfloat16, shape (n, d).
        positions: those that count, int64, shape (m,).
        targets: of these, rows of the head, int64, shape (m,).
    """

    hidden: Tensor
    positions: Tensor
    targets: Tensor

    def batch(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden states and targets of some of the positions, by index."""
        return self.hidden[self.positions[chosen]], self.targets[chosen]


@dataclass(frozen=True)
class Data:
    """What a run reads.

    Args:
        train: to train on.
        validation: held out.
        head: at the start, shape (V, d), float32.
        bands: which of `BANDS` each row belongs to, `len(BANDS)` for the rest, int64, shape (V,).
        digest: hexadecimal digits of all of it.
    """

    train: Part
    validation: Part
    head: Tensor
    bands: Tensor
    digest: str


def load(training: Training, cache: Path) -> Data:
    """Return the data of a run; what is not in the cache yet is computed, which takes long.

    Raises:
        ValueError: a field of `training` is none of those that there are.
        UnavailableError, TextUnavailableError: the model or the text cannot be had.
    """
    if training.start not in ("zero", "pretrained"):
        raise ValueError(f"start is {training.start!r}, expected 'zero' or 'pretrained'")
    train = states(training.model, training.text, "train", training.windows, cache)
    held_out = states(training.model, training.text, "validation", training.held_out, cache)
    own = pretrained_head(training.model, cache) if training.start == "pretrained" else None
    return restricted(train, held_out, training, own, MODELS[training.model].vocab)


def restricted(
    train: States, validation: States, training: Training, own: Tensor | None, vocab: int
) -> Data:
    """Return the data of a head of the most frequent tokens, rows by falling frequency.

    Args:
        train: to train on; its targets are what is counted, ties go by token id.
        validation: held out.
        training: `vocab` and `d` are read.
        own: the head to start from, a row a token of the model; None for zero.
        vocab: tokens of the model.

    Raises:
        ValueError: the model has fewer tokens, or another width.
    """
    if training.vocab > vocab:
        raise ValueError(f"vocab is {training.vocab}, {training.model} has {vocab} tokens")
    if training.d != train.hidden.shape[1]:
        raise ValueError(f"d is {training.d}, {training.model} has {train.hidden.shape[1]}")
    counts = torch.bincount(train.targets, minlength=vocab)
    tokens = counts.argsort(descending=True, stable=True)[: training.vocab]
    rows = torch.full((vocab,), -1)
    rows[tokens] = torch.arange(training.vocab)
    digest = hashlib.sha256(f"{train.digest} {validation.digest}".encode()).hexdigest()[:16]
    return Data(
        train=_known(train, rows),
        validation=_known(validation, rows),
        head=torch.zeros(training.vocab, training.d) if own is None else own[tokens].float(),
        bands=torch.bucketize(torch.arange(training.vocab), torch.tensor(BANDS), right=True),
        digest=digest,
    )


def _known(found: States, rows: Tensor) -> Part:
    targets = rows[found.targets]
    positions = (targets >= 0).nonzero()[:, 0]
    return Part(found.hidden, positions, targets[positions])


def batch_order(count: int, training: Training, seed: int) -> Tensor:
    """Return the positions of a whole run in order: all of them once an epoch, shuffled anew.

    Returns:
        Indices below `count`, int64, shape (steps * batch,).
    """
    needed = training.steps * training.batch
    generator = torch.Generator().manual_seed(seed)
    epochs = [torch.randperm(count, generator=generator) for _ in range(-(-needed // count))]
    return torch.cat(epochs)[:needed]
