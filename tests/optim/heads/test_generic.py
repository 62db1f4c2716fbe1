"""What PyTorch asks of every optimiser, for matrices: errors, schedulers, hooks, state, compile.

After torch's own `test/test_optim.py` and `test/inductor/test_compiled_optimizers.py`.
"""

import io
import pickle
from copy import deepcopy

import pytest
import torch
from torch.nn import Parameter
from torch.optim import SGD, AdamW, lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from rowsep import optim
from tests.optim.optimisers import CLASSES, WITH_STATE

SCHEDULERS = {
    "step and linear": lambda o: [
        lr_scheduler.StepLR(o, step_size=10, gamma=0.9),
        lr_scheduler.LinearLR(o, start_factor=0.4, total_iters=4),
    ],
    "one cycle": lambda o: [lr_scheduler.OneCycleLR(o, max_lr=1e-2, total_steps=30)],
    "plateau": lambda o: [lr_scheduler.ReduceLROnPlateau(o)],
}


@pytest.fixture(params=WITH_STATE)
def make(request):
    """The optimiser with the options of one entry of the table."""
    cls, options = WITH_STATE[request.param]
    return lambda params, **more: cls(params, **options, **more)


@pytest.fixture(params=CLASSES)
def cls(request):
    return CLASSES[request.param][0]


pytestmark = pytest.mark.usefixtures("generator")  # as torch's global state is seeded alike


def problem(contiguous=True):
    """A weight and the closure of a quadratic loss, as in torch's tests."""
    weight = torch.randn(10, 5) if contiguous else torch.randn(10, 5, 2)[..., 0]
    weight, point = Parameter(weight), torch.randn(5)

    def loss():
        weight.grad = None
        value = weight.mv(point).square().sum()
        value.backward()
        return value

    return weight, loss


def run(optimiser, loss, steps, schedulers=()):
    for _ in range(steps):
        value = optimiser.step(loss)
        for scheduler in schedulers:
            if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
                scheduler.step(value.detach())
            else:
                scheduler.step()


def plain(state_dict):
    """Without parameter names, which need not agree."""
    groups = [
        {k: v for k, v in g.items() if k != "param_names"} for g in state_dict["param_groups"]
    ]
    return state_dict | {"param_groups": groups}


def equal(a, b):
    """Whether two nests of dicts and lists hold the same, tensors bit for bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return type(a) is type(b) and a == b


def test_constructor_errors(cls):
    one, two = Parameter(torch.randn(1, 1)), Parameter(torch.randn(1, 1))
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
        cls(one)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        cls([one, one])
    with pytest.raises(ValueError, match="more than one parameter group"):
        cls([{"params": one}, {"params": one}])
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        cls(None, lr=torch.tensor([0.001, 0.001]))
    with pytest.raises(ValueError, match="with/without names. Some param names are missing"):
        cls([("weight", one), two])
    with pytest.raises(ValueError, match="cannot add param group with names"):
        cls([{"params": [one], "lr": 1e-2}, {"params": [("weight", two)]}])
    for option in ("lr", "momentum", "weight_decay"):
        with pytest.raises(ValueError, match=f"{option} is -1"):
            cls([one], **{option: -1.0})
        with pytest.raises(ValueError, match=f"{option} is nan"):
            cls(None, **{option: float("nan")})
    with pytest.raises(ValueError, match="less than 1"):
        cls([one], momentum=1.0)
    with pytest.raises(ValueError, match="only supports 2D parameters.*(4,)"):
        cls([one, torch.randn(4)])
    with pytest.raises(ValueError, match="only supports 2D parameters"):
        cls([torch.randn(2, 3, 4)])
    with pytest.raises(TypeError, match="does not support complex parameters"):
        cls([torch.randn(2, 3, dtype=torch.complex64)])
    for vocab_dim in (2, True, 1.0):
        with pytest.raises(ValueError, match=f"vocab_dim is {vocab_dim}"):
            cls([one], vocab_dim=vocab_dim)
    with pytest.raises(ValueError, match=r"shape \(4, 0\).*at least one dimension"):
        cls([torch.randn(4, 0)])
    with pytest.raises(ValueError, match="num_real_rows is 2, but"):
        cls([one], num_real_rows=2)
    with pytest.raises(TypeError, match="nesterov"):
        cls([one], nesterov=1)


def test_a_group_that_is_refused_leaves_the_optimiser_as_it_was(cls):
    optimiser = cls([Parameter(torch.randn(3, 2))])
    for bad in ({"params": [torch.randn(3)]}, {"params": [torch.randn(3, 2)], "lr": -1.0}):
        with pytest.raises(ValueError):
            optimiser.add_param_group(bad)
        assert len(optimiser.param_groups) == len(optimiser.state) == 1


def test_sparse_gradients_are_refused_before_anything_moves(cls):
    first, second = Parameter(torch.randn(4, 3)), Parameter(torch.randn(4, 3))
    optimiser, before = cls([first, second]), first.detach().clone()
    first.grad, second.grad = torch.randn(4, 3), torch.randn(4, 3).to_sparse()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optimiser.step()
    assert torch.equal(first, before)


@pytest.mark.parametrize("contiguous", [True, False])
def test_the_loss_goes_down(make, contiguous):
    weight, loss = problem(contiguous)
    before = loss().item()
    run(make([weight]), loss, 5)
    assert loss().item() < before


@pytest.mark.parametrize("scheduled", SCHEDULERS)
@pytest.mark.parametrize("tensor_lr", [False, True])
def test_the_loss_goes_down_with_schedulers(cls, scheduled, tensor_lr):
    weight, loss = problem()
    before = loss().item()
    optimiser = cls([weight], lr=torch.tensor(1e-3) if tensor_lr else 1e-3)
    run(optimiser, loss, 5, SCHEDULERS[scheduled](optimiser))
    assert loss().item() < before


@pytest.mark.parametrize("shape", [(), (1,)])
def test_tensor_lr_is_float_lr(make, shape):
    weight, loss = problem()
    other, optimiser = deepcopy(weight), make([weight], lr=1e-3)
    with_tensor = make([other], lr=torch.full(shape, 1e-3, dtype=torch.float64))
    for _ in range(3):
        loss()
        other.grad = weight.grad.clone()
        optimiser.step()
        with_tensor.step()
        torch.testing.assert_close(weight, other, rtol=0, atol=0)


def test_groups_have_their_own_options(cls):
    weight, loss = problem()
    still = Parameter(torch.randn(4, 3))
    before, kept = loss().item(), still.detach().clone()
    optimiser = cls([{"params": [weight], "lr": 1e-3}, {"params": [still]}], lr=1e-28)
    for _ in range(4):
        loss()
        still.grad = torch.rand_like(still)
        optimiser.step()
    assert loss().item() < before
    torch.testing.assert_close(still, kept)
    decayed = cls([{"params": [still], "weight_decay": 0.5}], lr=0.1)
    still.grad = torch.zeros_like(still)
    decayed.step()
    torch.testing.assert_close(still, 0.95 * kept)


def test_nothing_moves_without_gradients(make):
    weight = Parameter(torch.randn(5, 3))
    before, optimiser = weight.detach().clone(), make([weight])
    optimiser.step(lambda: torch.tensor([1]))
    weight.grad = torch.zeros_like(weight)
    optimiser.step()
    assert torch.equal(weight, before)


def test_it_prints(make):
    assert "lr: 0.25" in repr(make([Parameter(torch.randn(2, 3))], lr=0.25))


@pytest.mark.parametrize("named, loaded_named", [(False, False), (True, False), (False, True)])
def test_a_loaded_state_goes_on_alike(make, named, loaded_named):
    weight, loss = problem()
    optimiser = make([("w", weight)] if named else [weight])
    run(optimiser, loss, 2)
    other = Parameter(weight.detach().clone())
    loaded = make([("w", other)] if loaded_named else [other])
    loaded.load_state_dict(deepcopy(optimiser.state_dict()))
    for _ in range(2):
        loss()
        other.grad = weight.grad.clone()
        optimiser.step()
        loaded.step()
        assert torch.equal(weight, other)
    assert equal(plain(optimiser.state_dict()), plain(loaded.state_dict()))
    if named or loaded_named:
        assert loaded.state_dict()["param_groups"][0]["param_names"] == ["w"]


def test_loading_shares_nothing_and_changes_nothing(cls):
    weight, loss = problem()
    optimiser = cls([weight])
    run(optimiser, loss, 2)
    saved = optimiser.state_dict()
    before = deepcopy(saved)
    loaded = cls([Parameter(weight.detach().clone())])
    loaded.load_state_dict(state_dict=saved)
    for p in loaded.state:
        p.grad = torch.randn_like(p)
    loaded.step()
    assert equal(saved, before)


def test_a_state_of_another_shape_is_refused_untouched(cls):
    weight, other = Parameter(torch.randn(6, 3)), Parameter(torch.randn(5, 3))
    before = other.detach().clone()
    saved, optimiser = cls([weight], lr=0.5).state_dict(), cls([other], lr=0.25)
    with pytest.raises(ValueError, match=r"momentum_buffer of shape \(6, 3\) .* of shape \(5, 3\)"):
        optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 0.25
    other.grad = torch.randn(5, 3)
    optimiser.step()
    assert not torch.equal(other, before)


def test_a_state_of_another_optimiser_is_refused_untouched(cls):
    other = AdamW if cls is not optim.RowNormM else optim.RowSeparation
    weight = Parameter(torch.randn(6, 3))
    saved, optimiser = other([weight], lr=0.5).state_dict(), cls([weight], lr=0.25)
    with pytest.raises(ValueError, match=f"another optimiser than {cls.__name__}: .* lacks "):
        optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 0.25
    ours = optimiser.state_dict()
    ours["param_groups"][0] |= {"initial_lr": 0.5, "tag": "the user's", "max_lr": 1.0}
    optimiser.load_state_dict(ours)
    assert optimiser.param_groups[0]["tag"] == "the user's"
    del ours["param_groups"][0]["tag"], ours["param_groups"][0]["num_real_rows"]
    optimiser.load_state_dict(ours)  # of an earlier version, with a scheduler


def test_weights_only_load(make):
    weight, loss = problem()
    optimiser = make([("w", weight)])
    run(optimiser, loss, 3)
    file = io.BytesIO()
    torch.save(optimiser.state_dict(), file)
    file.seek(0)
    assert equal(torch.load(file, weights_only=True), optimiser.state_dict())


def test_the_keys_of_the_state_do_not_wait_for_a_step(make):
    """Distributed checkpoints load only what the fresh optimiser has."""
    weight, loss = problem()
    optimiser = make([weight])
    optimiser.add_param_group({"params": Parameter(torch.randn(2, 2))})
    before = optimiser.state_dict()["state"]
    keys = [set(state) for state in before.values()]
    run(optimiser, loss, 2)
    assert [set(state) for state in optimiser.state_dict()["state"].values()] == keys
    assert len(keys) == 2 and "momentum_buffer" in keys[0]


def test_options_missing_in_an_older_state_dict_stay(make):
    weight, loss = problem()
    optimiser = make([weight])
    options, old = dict(optimiser.defaults), deepcopy(optimiser.state_dict())
    old["param_groups"] = [{"lr": 0.5, "params": [0]}]
    old["state"] = {}
    optimiser.load_state_dict(old)
    run(optimiser, loss, 1)
    assert optimiser.param_groups[0] == options | {"lr": 0.5, "params": [weight]}


def test_state_dict_hooks(cls):
    optimiser = cls([Parameter(torch.rand(2, 3))])
    optimiser.register_state_dict_pre_hook(lambda o: o.state.update(test=1))
    assert optimiser.state_dict()["state"]["test"] == 1
    optimiser.register_state_dict_post_hook(lambda o, d: {**d, "ran": d["state"].pop("test")})
    assert optimiser.state_dict()["ran"] == 1


def test_load_state_dict_hooks(cls):
    optimiser = cls([Parameter(torch.rand(2, 3))])
    saved = optimiser.state_dict()

    def replace(optimiser, state_dict):
        made = deepcopy(state_dict)
        made["param_groups"][0]["lr"] = 0.003
        made["state"][0]["momentum_buffer"] += 1
        return made

    optimiser.register_load_state_dict_pre_hook(replace)
    seen = []
    optimiser.register_load_state_dict_post_hook(
        lambda o: seen.append(next(iter(o.state.values()))["momentum_buffer"])
    )
    optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 0.003
    assert torch.equal(seen[0], torch.ones(2, 3))


def test_step_hooks(cls):
    params, order = [Parameter(torch.ones(1, 2))], []
    optimiser, other = cls(params), SGD(params)

    def note(k):
        return lambda *_: order.append(k)

    handles = [
        register_optimizer_step_pre_hook(note(0)),
        register_optimizer_step_post_hook(note(5)),
        optimiser.register_step_pre_hook(note(1)),
        optimiser.register_step_post_hook(note(2)),
    ]
    try:
        optimiser.step()
        other.step()
        optimiser.step()
    finally:
        for handle in handles:
            handle.remove()
    optimiser.step()
    assert order == [0, 1, 2, 5, 0, 5, 0, 1, 2, 5]


def test_copies_and_pickles_go_on_alike(make):
    weight, loss = problem()
    optimiser = make([weight])
    run(optimiser, loss, 3)
    for copied in (deepcopy(optimiser), pickle.loads(pickle.dumps(optimiser))):
        public = [{k for k in vars(o) if not k.startswith("_")} for o in (optimiser, copied)]
        assert public[0] == public[1]
        other = copied.param_groups[0]["params"][0]
        assert equal(optimiser.state_dict(), copied.state_dict())
        loss()
        other.grad = weight.grad.clone()
        ahead = deepcopy(optimiser)
        ahead.param_groups[0]["params"][0].grad = weight.grad.clone()
        ahead.step()
        copied.step()
        assert torch.equal(other, ahead.param_groups[0]["params"][0])


def test_default_dtype_does_not_matter(make):
    made = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            weight = Parameter(torch.linspace(-1, 1, 30, dtype=torch.float32).sin().view(10, 3))
            optimiser = make([weight])
            for k in range(3):
                weight.grad = torch.cos(7.0 * weight.detach() + k)
                optimiser.step()
            made.append(weight)
        finally:
            torch.set_default_dtype(torch.float32)
    assert torch.equal(*made)
