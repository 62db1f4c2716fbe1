"""The examples run as they stand, at small sizes, and do what they say."""

import pytest
import torch

from examples import distributed, loops, trainers


@pytest.fixture(autouse=True)
def same_weights() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", ["plain", "accumulation", "bfloat16"])
def test_loops_learn(name: str) -> None:
    losses = loops.main([name], steps=6)[name]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.2


def test_accumulated_gradients_are_those_of_the_whole_batch() -> None:
    whole = loops.accumulation(4, micro_batches=1)
    torch.manual_seed(0)
    assert loops.accumulation(4, micro_batches=4) == pytest.approx(whole, abs=1e-3)


def test_scaler_skips_steps_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    losses = loops.main(["mixed_precision"], steps=8)["mixed_precision"]
    skipped = int(capsys.readouterr().out.split(" of 8 steps skipped")[0])
    assert 1 <= skipped < 5
    assert losses[-1] < losses[0] - 0.2


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_compiled_model_trains_as_the_plain_one() -> None:
    """Graphs are captured and differentiated, but not turned into machine code, to save time."""
    compiled = loops.compiled(3, backend="aot_eager")
    torch.manual_seed(0)
    assert compiled == pytest.approx(loops.accumulation(3, micro_batches=1), abs=1e-3)


@pytest.mark.parametrize("name", trainers.TRAINERS)
@pytest.mark.filterwarnings("ignore::UserWarning:torch.utils.data")
def test_trainers_accept_it(name: str) -> None:
    losses = trainers.main([name], steps=6)[name]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.1


def test_two_processes_agree_with_each_other_and_with_one(forked: None) -> None:
    results = distributed.main(steps=3)
    one = results["one"]
    for kind in ("replicated", "sharded"):
        first, second = results[f"{kind}0"], results[f"{kind}1"]
        mean = (first["losses"] + second["losses"]) / 2
        torch.testing.assert_close(mean, one["losses"], rtol=0, atol=1e-3)
        for name in one:
            if name != "losses":
                assert first[name].shape == one[name].shape
                assert torch.equal(first[name], second[name])
        for name, apart in distributed.differences(first, one).items():
            # Muon orthogonalises in bfloat16; Adam turns the sign of tiny gradients into steps
            bound = 1e-3 if "norm" in name or name == "head.weight" else 0.05
            assert apart < bound, name
