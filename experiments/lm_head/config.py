"""What a run depends on: the training, the head optimiser, the learning rate and the seed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Training:
    """All that is the same for every head optimiser.

    Learning rates rise linearly over the first `warmup` of the steps, stay, and fall linearly to
    zero over the last `cooldown` of them; the head's does the same.

    Args:
        text: "sotu" (State of the Union addresses) or "docs" (this project's documentation).
        tokenizer: "bpe", trained on the training part of the text, or "gpt2", as published.
        vocab: number of tokens V; 256 with "bpe" means bytes.
        d: width of the model.
        layers: number of blocks.
        heads: attention heads per block.
        context: tokens of a window.
        batch: windows of a step.
        steps: number of steps.
        warmup: share of the steps.
        cooldown: share of the steps.
        hidden_lr: of torch's Muon on the blocks' matrices, without decay.
        embed_lr: of AdamW on embeddings and gains, betas (0.9, 0.95), without decay.
        tied: whether head and token embedding are one matrix, stepped by the head optimiser.
        validation_tokens: predicted in the final evaluation, from addresses not trained on.
        evaluate_tokens: of them, predicted in each of the evaluations on the way.
        evaluate_every: steps between two of those.
        measure_every: steps between two measurements of the head (`diagnostics`); 0 for none.
        device: "cpu" or "cuda".
        precision: "float32", or "bfloat16" for autocast; parameters are float32 in both.
    """

    text: str = "sotu"
    tokenizer: str = "bpe"
    vocab: int = 2048
    d: int = 64
    layers: int = 2
    heads: int = 2
    context: int = 128
    batch: int = 16
    steps: int = 300
    warmup: float = 0.05
    cooldown: float = 0.4
    hidden_lr: float = 0.02
    embed_lr: float = 0.1
    tied: bool = False
    validation_tokens: int = 65536
    evaluate_tokens: int = 8192
    evaluate_every: int = 50
    measure_every: int = 25
    device: str = "cpu"
    precision: str = "float32"

    def factor(self, step: int) -> float:
        """Return what learning rates are multiplied by in a step, counted from 0."""
        rising = (step + 1) / max(1.0, self.warmup * self.steps)
        falling = (self.steps - step) / max(1.0, self.cooldown * self.steps)
        return min(1.0, rising, falling)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A head optimiser with all of its options but the learning rate.

    Args:
        title: name for readers; the table's key is the one for commands.
        optimizer: name in `heads.OPTIMIZERS`.
        options: of its constructor.
        schedule: options that move linearly from a first to a last value over the steps.
        lrs: learning rates to try first, ascending, in one ratio.
    """

    title: str
    optimizer: str
    lrs: tuple[float, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    schedule: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training run; equal runs give equal results.

    Args:
        training: what all optimisers share, a frozen dataclass with `text`, `vocab` and `d`:
            `Training`, or that of another experiment.
        name: of the method, as in the table.
        optimizer: see `Method`.
        options: see `Method`.
        schedule: see `Method`.
        lr: of the head, at its highest.
        seed: of the initial weights and of the order of the batches.
    """

    training: Any
    name: str
    optimizer: str
    options: Mapping[str, Any]
    schedule: Mapping[str, tuple[float, float]]
    lr: float
    seed: int

    @classmethod
    def of(cls, training: Any, name: str, method: Method, lr: float, seed: int) -> "Run":
        """Return the run of a method."""
        return cls(
            training=training,
            name=name,
            optimizer=method.optimizer,
            options=method.options,
            schedule=method.schedule,
            lr=lr,
            seed=seed,
        )

    @cached_property
    def key(self) -> str:
        """Twelve hexadecimal digits of all that the run depends on, its name apart."""
        content = {k: v for k, v in asdict(self).items() if k != "name"}
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def settings(self) -> dict[str, Any]:
        """Return every setting under one name each, for a row of a table."""
        own = asdict(self)
        return own | own.pop("training")
