"""The head knows the most frequent tokens, and hidden states meet the token that follows them."""

from dataclasses import replace

import pytest
import torch

from experiments.frozen_head import data, hidden
from tests.experiments.frozen_head.tiny import TINY, D, V, some_states, tiny_data


def test_rows_are_the_most_frequent_tokens_and_other_targets_are_left_out():
    train, made = some_states(600, 1), tiny_data(own=torch.arange(V)[:, None].expand(V, D).float())
    tokens = made.head[:, 0].long()
    counts = torch.bincount(train.targets, minlength=V)
    assert counts[tokens].tolist() == sorted(counts.tolist(), reverse=True)[: TINY.vocab]
    assert torch.equal(tokens[made.train.targets], train.targets[made.train.positions])
    left_out = set(range(V)) - set(tokens.tolist())
    known = torch.tensor([token not in left_out for token in train.targets.tolist()])
    assert torch.equal(known.nonzero()[:, 0], made.train.positions)


def test_bands_go_by_rank():
    made = data.restricted(
        some_states(5, 1), some_states(5, 2), replace(TINY, vocab=600, d=D), None, 700
    )
    assert torch.bincount(made.bands).tolist() == [64, 448, 88]


@pytest.mark.parametrize(
    ("change", "said"), [({"vocab": V + 1}, "has 40 tokens"), ({"d": D + 1}, "has 12")]
)
def test_what_does_not_fit_the_model_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        tiny_data(replace(TINY, **change))


def test_an_epoch_sees_every_position_once():
    order = data.batch_order(100, replace(TINY, batch=30, steps=10), seed=3)
    assert len(order) == 300
    for epoch in order.split(100):
        assert sorted(epoch.tolist()) == list(range(100))
    assert not torch.equal(order[:100], order[100:200])


def test_windows_are_all_of_the_text_with_the_next_token_as_target():
    tokens = torch.arange(10 * hidden.CONTEXT + 5)
    inputs, targets = hidden.window_order(tokens)
    assert torch.equal(targets, inputs + 1)
    assert sorted(inputs.flatten().tolist()) == list(range(10 * hidden.CONTEXT))


def test_hidden_states_go_on_where_a_kill_left_them(tmp_path, monkeypatch):
    """A window that was cut short is computed again, those before it are not."""
    width, seen = hidden.MODELS["smollm2-135m"].d, []
    inputs = torch.arange(20 * hidden.CONTEXT).view(20, hidden.CONTEXT)
    monkeypatch.setattr(hidden, "_windows", lambda *_: (inputs, inputs + 1, "none"))

    def body(ids):
        seen.append(len(ids))
        return (ids % 127)[:, :, None].expand(*ids.shape, width)

    monkeypatch.setattr(hidden, "_body", lambda *_: body)
    hidden.states("smollm2-135m", "sotu", "train", 3, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    found = hidden.states("smollm2-135m", "sotu", "train", 12, tmp_path)
    assert seen == [3, 8, 2]
    expected = inputs[:12].flatten()
    assert torch.equal(found.targets, expected + 1)
    assert torch.equal(found.hidden, (expected % 127)[:, None].expand(-1, width).bfloat16())
    again = hidden.states("smollm2-135m", "sotu", "train", 5, tmp_path)
    assert seen == [3, 8, 2] and len(again.hidden) == 5 * hidden.CONTEXT
    assert again.digest != found.digest
    with pytest.raises(ValueError, match="20 windows"):
        hidden.states("smollm2-135m", "sotu", "train", 21, tmp_path)
