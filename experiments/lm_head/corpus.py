"""The text of a run as tokens: a training part, a fixed validation part, and token frequencies.

Every twentieth document is kept for validation, so that both parts cover all years. The tokeniser
is trained on the training part.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from experiments import text
from experiments.lm_head.config import Training

DOCS = Path(__file__).parents[2] / "docs"
HELD_OUT = 20


@dataclass(frozen=True)
class Corpus:
    """Tokens of one text under one tokeniser.

    Args:
        train: int64 ids, shape (n,).
        validation: int64 ids, shape (m,).
        counts: how often each token occurs in `train`, int64, shape (V,).
        token_bytes: bytes of text that each token stands for, int64, shape (V,).
    """

    train: Tensor
    validation: Tensor
    counts: Tensor
    token_bytes: Tensor

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of both parts."""
        both = torch.cat([self.train, self.validation])
        return hashlib.sha256(both.numpy().tobytes()).hexdigest()[:16]


def load_corpus(training: Training, cache: Path) -> Corpus:
    """Return the corpus of a run, from `cache` if its tokens are there already.

    Args:
        training: `text`, `tokenizer` and `vocab` are read.
        cache: folder for the archive of the text and for tokens; made if missing.

    Raises:
        TextUnavailableError: the text or the tokeniser cannot be had; it says what to do.
        ValueError: the vocabulary is not that of the tokeniser, or too large for the text.
    """
    documents = read_documents(training.text, cache)
    digest = hashlib.sha256("\0".join(documents).encode()).hexdigest()[:12]
    name = f"{training.text}-{training.tokenizer}-{training.vocab}-{digest}.pt"
    if (cache / name).exists():
        return Corpus(**torch.load(cache / name, weights_only=True))

    learned = [doc for i, doc in enumerate(documents) if i % HELD_OUT != HELD_OUT - 1]
    tokenizer = make_tokenizer(training, learned)
    train = text.encode(tokenizer, learned)
    parts = {
        "train": train,
        "validation": text.encode(tokenizer, documents[HELD_OUT - 1 :: HELD_OUT]),
        "counts": torch.bincount(train, minlength=training.vocab),
        "token_bytes": text.token_bytes(tokenizer),
    }
    cache.mkdir(parents=True, exist_ok=True)
    partial = cache / f"{name}.partial{os.getpid()}"
    torch.save(parts, partial)
    os.replace(partial, cache / name)
    return Corpus(**parts)


def read_documents(name: str, cache: Path) -> list[str]:
    """Return the documents of a text: addresses, or sections of this project's documentation.

    Raises:
        ValueError: no such text.
        TextUnavailableError: the addresses cannot be had.
    """
    if name == "sotu":
        return text.read_addresses(text.fetch_archive(cache))
    if name == "docs":
        pages = [path.read_text() for path in sorted(DOCS.rglob("*.md"))]
        return [section for page in pages for section in page.split("\n## ")]
    raise ValueError(f"text is {name!r}, expected 'sotu' or 'docs'")


def make_tokenizer(training: Training, documents: list[str]) -> Tokenizer:
    """Return the tokeniser of a run, trained on `documents` if it is "bpe".

    Raises:
        ValueError: no such tokeniser, or its vocabulary is not the one asked for.
    """
    if training.tokenizer == "bpe":
        return text.train_bpe(documents, vocab=training.vocab)
    if training.tokenizer == "gpt2":
        tokenizer = text.published_gpt2()
        if training.vocab != tokenizer.get_vocab_size():
            raise ValueError(f"vocab is {training.vocab}, GPT-2's is {tokenizer.get_vocab_size()}")
        return tokenizer
    raise ValueError(f"tokenizer is {training.tokenizer!r}, expected 'bpe' or 'gpt2'")


def window_order(num_tokens: int, training: Training, seed: int) -> Tensor:
    """Return the windows of a whole run in order: all of them once an epoch, shuffled anew.

    Returns:
        Indices of windows of `context` tokens, int64, shape (steps * batch,).

    Raises:
        ValueError: the text has no whole window.
    """
    available = (num_tokens - 1) // training.context
    if available < 1:
        raise ValueError(
            f"{num_tokens} tokens hold no window of {training.context} and one to predict: "
            "give more text or a shorter context"
        )
    needed = training.steps * training.batch
    generator = torch.Generator().manual_seed(seed)
    epochs = [
        torch.randperm(available, generator=generator) for _ in range(-(-needed // available))
    ]
    return torch.cat(epochs)[:needed]


def windows_at(tokens: Tensor, windows: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets, each int64 of shape (windows, context)."""
    rows = tokens[windows[:, None] * context + torch.arange(context + 1)]
    return rows[:, :-1], rows[:, 1:]
