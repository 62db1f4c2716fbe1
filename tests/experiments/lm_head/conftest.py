"""What the tests of the head experiment share."""

import pytest

from experiments.lm_head import corpus as corpora
from tests.experiments.lm_head.tiny import TINY


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """This project's documentation under a BPE of 320 tokens."""
    return corpora.load_corpus(TINY, tmp_path_factory.mktemp("cache"))
