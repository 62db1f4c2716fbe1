"""HiddenMetric: the second moment of what a head reads, as an average over steps."""

import io

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import Parameter

from rowsep import optim
from rowsep.optim import HiddenMetric
from rowsep.packing.metric import Metric
from tests.packing.clouds import gaussian


def test_it_follows_its_formula(generator):
    """The weighted average of all batches, with weights beta^age that sum to one."""
    metric = HiddenMetric(4, beta=0.7, damping=0.1, dtype=torch.float64)
    batches = [gaussian(n, 4, generator).double() for n in (30, 5, 12)]
    for t, batch in enumerate(batches):
        metric.observe(batch)
        found = metric.current()
        weights = torch.tensor([0.7 ** (t - k) for k in range(t + 1)], dtype=torch.float64)
        moments = [h.T @ h / len(h) for h in batches[: t + 1]]
        sigma = sum(w * m for w, m in zip(weights / weights.sum(), moments, strict=True))
        torch.testing.assert_close(found.sigma, Metric(sigma, damping=0.1).sigma)
    assert metric.current() is found


def test_passes_before_a_step_are_one_batch(generator):
    batches = [gaussian(n, 4, generator) for n in (7, 20)]
    pieces, whole = HiddenMetric(4), HiddenMetric(4)
    for batch in batches:
        pieces.observe(batch)
    whole.observe(torch.cat(batches))
    torch.testing.assert_close(pieces.current().sigma, whole.current().sigma, rtol=1e-5, atol=1e-6)


def test_the_hook_counts_training_passes_until_it_is_removed(generator):
    head, metric = nn.Linear(4, 9, bias=False), HiddenMetric(4)
    handle = metric.follow(head)
    hidden = gaussian(24, 4, generator).view(2, 12, 4)
    mask = torch.rand(2, 12, generator=generator) < 0.6
    mask[0, 0] = True
    with torch.no_grad():
        head(100 * hidden)  # an evaluation
    metric.count_only(mask)
    head(input=hidden)
    expected = Metric.of_hidden(hidden, mask=mask).sigma
    torch.testing.assert_close(metric.current().sigma, expected, rtol=1e-5, atol=1e-6)
    handle.remove()
    head(hidden)
    assert metric.state_dict()["pending_count"] == 0


def test_autocast_does_not_shorten_the_sums(generator):
    hidden, metric, plain = gaussian(64, 4, generator), HiddenMetric(4), HiddenMetric(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        metric.observe(hidden)
    plain.observe(hidden)
    assert torch.equal(metric.current().root, plain.current().root)


def test_a_batch_that_overflowed_counts_nowhere(generator):
    metric, hidden = HiddenMetric(4), gaussian(10, 4, generator)
    metric.observe(hidden)
    for bad in (torch.nan, torch.inf):
        metric.observe(torch.full((3, 4), bad))
    torch.testing.assert_close(metric.current().sigma, Metric.of_hidden(hidden).sigma)


def test_roots_are_made_every_so_many_steps(generator):
    metric, found = HiddenMetric(4, every=3), []
    for _ in range(5):
        metric.observe(gaussian(10, 4, generator))
        found.append(metric.current())
    assert found[0] is found[1] is found[2] and found[3] is found[4]
    assert not torch.equal(found[2].root, found[3].root)


@pytest.mark.parametrize("every", [1, 4])
def test_a_resumed_run_goes_on_bit_for_bit(generator, every):
    """Head, optimiser and metric from their state dicts, loaded weights_only, amid a step."""
    target, data = gaussian(50, 11, generator).softmax(1), gaussian(50, 4, generator)

    def built():
        head = nn.Linear(4, 11, bias=False)
        metric = HiddenMetric(4, beta=0.8, every=every)
        metric.follow(head)
        return head, optim.RowwiseAdam(head.parameters(), lr=0.1, gram="hidden", metric=metric)

    def train(head, optimiser, steps):
        for k in steps:
            part = slice(5 * k, 5 * k + 5)
            loss = nn.functional.cross_entropy(head(data[part]), target[part])
            loss.backward()
            if k % 2:
                optimiser.step()
                optimiser.zero_grad()

    head, optimiser = built()
    train(head, optimiser, range(7))
    file = io.BytesIO()
    metric = optimiser.param_groups[0]["metric"]
    saved = head.state_dict(), optimiser.state_dict(), metric.state_dict(), head.weight.grad
    torch.save(saved, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    other, resumed = built()
    other.load_state_dict(loaded[0])
    own = resumed.param_groups[0]["metric"]
    resumed.load_state_dict(loaded[1])
    assert resumed.param_groups[0]["metric"] is own  # and not a copy, which nobody feeds
    own.load_state_dict(loaded[2])
    other.weight.grad = loaded[3]
    train(head, optimiser, range(7, 10))
    train(other, resumed, range(7, 10))
    assert torch.equal(head.weight, other.weight)
    mine, theirs = metric.state_dict(), own.state_dict()
    assert all(torch.equal(torch.as_tensor(mine[k]), torch.as_tensor(theirs[k])) for k in mine)


def test_it_is_refused_clearly(generator):
    metric = HiddenMetric(4)
    with pytest.raises(RuntimeError, match=r"seen no hidden state: follow\(head\)"):
        metric.current()
    with pytest.raises(ValueError, match=r"shape \(3, 5\), expected \(..., 4\)"):
        metric.observe(gaussian(3, 5, generator))
    with pytest.raises(ValueError, match=r"mask has shape \(2,\), expected \(3,\)"):
        metric.observe(gaussian(3, 4, generator), torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="of 5 dimensions, this one of 4"):
        metric.load_state_dict(HiddenMetric(5).state_dict())
    with pytest.raises(ValueError, match="lacks pending, pending_count"):
        metric.load_state_dict({"steps": 0, "second_moment": torch.eye(4), "used": torch.eye(4)})
    for options, said in (({"beta": 1.0}, "beta"), ({"damping": 0.0}, "damping is 0.0")):
        with pytest.raises(ValueError, match=said):
            HiddenMetric(4, **options)


def test_a_step_before_any_pass_changes_nothing(generator):
    p = Parameter(gaussian(5, 4, generator))
    before = p.detach().clone()
    optimiser = optim.RowNormM([p], metric=HiddenMetric(4))
    p.grad = gaussian(5, 4, generator)
    with pytest.raises(RuntimeError, match="seen no hidden state"):
        optimiser.step()
    assert torch.equal(p, before) and not optimiser.state[p]["momentum_buffer"].any()


def ranks_agree(rank, store, hidden):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    metric, whole = HiddenMetric(4, beta=0.5), HiddenMetric(4, beta=0.5)
    for batch in hidden:
        metric.observe(batch[:3] if rank else batch[3:])  # uneven parts
        whole.observe(batch)
        found, expected = metric.current().sigma, whole.current().sigma
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        both = [torch.empty_like(found) for _ in range(2)]
        dist.all_gather(both, found)
        assert torch.equal(*both)
    dist.destroy_process_group()


def test_ranks_sum_what_they_saw(tmp_path, generator):
    hidden = [gaussian(10, 4, generator) for _ in range(3)]
    mp.spawn(ranks_agree, args=(tmp_path / "store", hidden), nprocs=2)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model_is_followed(generator):
    torch._dynamo.reset()
    head, metric, hidden = nn.Linear(4, 9, bias=False), HiddenMetric(4), gaussian(6, 4, generator)
    metric.follow(head)
    compiled = torch.compile(head, backend="eager")
    for _ in range(2):
        compiled(hidden)
    assert metric.state_dict()["pending_count"] == 12
    torch.testing.assert_close(metric.current().sigma, Metric.of_hidden(hidden).sigma)
