"""What all head optimisers share in a run on a frozen body."""

from dataclasses import dataclass

BANDS = (64, 512, 2048)
"""Tokens by falling frequency: the most frequent 64, up to 512, up to 2048, and the rest."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A head trained on the hidden states of a frozen body.

    The learning rate falls linearly to zero from the first step on.

    Args:
        text: "sotu" or "shakespeare".
        model: name in `models.MODELS`.
        vocab: tokens V of the head: the most frequent ones of the training part. Positions with
            another target are left out.
        d: width of the model.
        start: "zero", or "pretrained" for the model's own head.
        windows: of `hidden.CONTEXT` tokens, to train on.
        held_out: of them, for validation.
        batch: tokens of a step, from anywhere in the windows.
        steps: number of steps.
        evaluate_every: steps between two evaluations, all on the whole validation part.
    """

    text: str = "sotu"
    model: str = "smollm2-135m"
    vocab: int = 4096
    d: int = 576
    start: str = "zero"
    windows: int = 1024
    held_out: int = 64
    batch: int = 512
    steps: int = 450
    evaluate_every: int = 50

    def factor(self, step: int) -> float:
        """Return what the learning rate is multiplied by in a step, counted from 0."""
        return 1 - step / self.steps
