"""The Hilbert distance is a projective metric, and its supremum over hidden states is attained.

The softmax tests use the momentum that ships with the package as the update of a head.
"""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from rowsep.packing import cloud
from rowsep.packing.cloud import hilbert_distance

DATA = Path(cloud.__file__).parent / "data" / "momentum.safetensors"
seeds = st.integers(0, 2**32 - 1)
properties = settings(max_examples=60)


def gaussian(seed, *size):
    """Standard normal entries."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator, dtype=torch.float64)


@properties
@given(seeds, st.integers(1, 30), st.floats(1e-3, 1e3))
def test_it_is_a_projective_metric(seed, tokens, factor):
    p, q, r = gaussian(seed, 3, 4, tokens).softmax(-1)
    distance = hilbert_distance(p, q)
    assert distance.shape == (4,) and distance.dtype == torch.float64
    ratio = p / q
    torch.testing.assert_close(distance, (ratio.amax(-1) / ratio.amin(-1)).log())
    torch.testing.assert_close(hilbert_distance(q, p), distance)
    torch.testing.assert_close(hilbert_distance(p * factor, q), distance)
    torch.testing.assert_close(hilbert_distance(p.log() + factor, q.log(), kind="logits"), distance)
    assert not hilbert_distance(p, p).any()
    assert (hilbert_distance(p, r) + hilbert_distance(r, q) >= distance - 1e-12).all()


def test_it_is_the_largest_change_of_a_log_odds():
    p, q = gaussian(3, 2, 7).softmax(-1)
    change = (p.log() - q.log())[:, None] - (p.log() - q.log())[None, :]
    assert hilbert_distance(p, q).item() == pytest.approx(change.max().item(), rel=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_taken_as_given(dtype):
    p, q = gaussian(4, 2, 9).softmax(-1).to(dtype)
    assert hilbert_distance(p, q) == hilbert_distance(p.double(), q.double())


def test_zero_probabilities():
    p = torch.tensor([0.5, 0.5, 0.0])
    assert hilbert_distance(p, torch.tensor([0.8, 0.2, 0.0])).item() == pytest.approx(math.log(4))
    assert hilbert_distance(p, torch.tensor([0.5, 0.25, 0.25])).item() == math.inf
    assert hilbert_distance(torch.tensor([0.5, 0.25, 0.25]), p).item() == math.inf
    assert hilbert_distance(p, torch.tensor([0.0, 0.0, 1.0])).item() == math.inf
    assert hilbert_distance(p.log(), p.log(), kind="logits").item() == 0.0


@pytest.mark.parametrize(
    ("p", "kind", "message"),
    [
        ([0.5, -0.25], "probabilities", r"p has -0.25 at index \(1,\)"),
        ([math.nan, 0.5], "probabilities", r"p has nan at index \(0,\)"),
        ([math.inf, 0.5], "probabilities", r"p has inf at index \(0,\)"),
        ([0.0, 0.0], "probabilities", "p gives every token probability zero"),
        ([0.0, math.inf], "logits", r"p has inf at index \(1,\)"),
        ([0.0, math.nan], "logits", r"p has nan at index \(1,\)"),
        ([-math.inf, -math.inf], "logits", "p gives every token probability zero"),
        ([0.5, 0.5, 0.5], "probabilities", r"\(3,\).*\(2,\)"),
        ([], "probabilities", "last axis"),
        ([0.5, 0.5], "odds", "'odds'"),
    ],
)
def test_what_is_no_distribution_is_refused(p, kind, message):
    with pytest.raises(ValueError, match=message):
        hilbert_distance(torch.tensor(p), torch.tensor([0.5, 0.5]), kind=kind)
    with pytest.raises(TypeError, match="torch.int64"):
        hilbert_distance(torch.tensor([0.5]), torch.tensor([1]))


@pytest.fixture(scope="module")
def update():
    """The shipped momentum as the update of a head: (4096, 128), float16."""
    return load_file(DATA)["momentum"]


def softmax_change(head, update, hidden):
    """`H(softmax((U+S)h), softmax(Uh))` for hidden states (n, d), by the softmax itself."""
    after = (hidden @ (head + update.double()).T).softmax(-1)
    return hilbert_distance(after, (hidden @ head.T).softmax(-1))


def candidates(update, radius):
    """Hidden states of norm `radius`: random ones, and differences of random pairs of rows."""
    rows = update.double()
    left, right = torch.randint(len(rows), (2, 200), generator=torch.Generator().manual_seed(8))
    directions = torch.cat([gaussian(9, 200, rows.shape[1]), rows[left] - rows[right]])
    return radius * torch.nn.functional.normalize(directions, dim=1)


def test_real_softmax_attains_the_bound_and_never_exceeds_it(update):
    radius, head = 0.05, 3 * gaussian(7, *update.shape)
    worst = cloud.worst_hidden_state(update, radius)
    assert worst.hidden.norm().item() == pytest.approx(radius, rel=1e-12)
    assert worst.distance == pytest.approx(radius * cloud.diameter(update).value, rel=1e-12)
    attained = softmax_change(head, update, worst.hidden[None]).item()
    assert attained == pytest.approx(worst.distance, rel=1e-11)
    others = softmax_change(head, update, candidates(update, radius))
    assert others.max().item() <= worst.distance * (1 + 1e-11)
    assert others.max().item() > 0.2 * worst.distance


def test_real_softmax_behind_an_rms_norm_with_gain(update):
    radius, head = 0.05, 3 * gaussian(7, *update.shape)
    gain = gaussian(10, update.shape[1]).exp() * gaussian(11, update.shape[1]).sign()
    worst = cloud.worst_hidden_state(update, radius, gain=gain)
    assert (worst.hidden / gain).norm().item() == pytest.approx(radius, rel=1e-12)
    assert worst.distance == radius * cloud.gain_diameter(update, gain).value
    stretched = cloud.diameter(update.double() * gain)
    assert worst.distance == pytest.approx(radius * stretched.value, rel=1e-12)
    assert worst.pair == stretched.pair
    attained = softmax_change(head, update, worst.hidden[None]).item()
    assert attained == pytest.approx(worst.distance, rel=1e-11)
    others = softmax_change(head, update, gain * candidates(update * gain, radius))
    assert others.max().item() <= worst.distance * (1 + 1e-11)
    assert others.max().item() > 0.2 * worst.distance


def test_the_gain_diameter_keeps_its_digits_under_a_common_shift():
    S, gain = gaussian(1, 6, 3), torch.tensor([1e-8, 3.0, -0.1], dtype=torch.float64)
    S = (S * 2**20).round() / 2**20
    far = cloud.gain_diameter(S + 2.0**30, gain).value
    assert far == pytest.approx(cloud.gain_diameter(S, gain).value, rel=1e-12)


@pytest.mark.parametrize("gain", [None, torch.zeros(3)])
def test_nothing_to_change_gives_a_zero_hidden_state(gain):
    S = torch.ones(4, 3) if gain is None else gaussian(1, 4, 3)
    worst = cloud.worst_hidden_state(S, 2.0, gain)
    assert worst.distance == 0.0 and not worst.hidden.any()
    alone = cloud.worst_hidden_state(S[:1], 2.0, gain)
    assert alone.pair == (-1, -1) and not alone.hidden.any()
    assert cloud.worst_hidden_state(gaussian(1, 4, 3), 0.0, gain).distance == 0.0
