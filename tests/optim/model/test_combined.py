"""A Combined is one optimiser to everything outside and the members, unchanged, inside."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.optim import SGD, AdamW, Muon, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau

from rowsep.optim.heads.row_norm import RowNormM
from rowsep.optim.model.combined import Combined


def network(seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 11, bias=False)).to(dtype)


def members(model: nn.Module) -> dict[str, Optimizer]:
    named = dict(model.named_parameters())
    return {
        "muon": Muon([("0.weight", named["0.weight"])], lr=0.02),
        "adamw": AdamW([("0.bias", named["0.bias"])], lr=0.01),
        "head": RowNormM([("1.weight", named["1.weight"])], lr=0.03),
    }


def gradients(model: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)


def train(model: nn.Module, *optimizers: Optimizer, steps: range) -> None:
    for step in steps:
        gradients(model, step)
        for optimizer in optimizers:
            optimizer.step()


def assert_same(a: nn.Module, b: nn.Module) -> None:
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(p, q)


def test_steps_as_the_members_alone() -> None:
    together, apart = network(), network()
    train(together, Combined(members(together)), steps=range(4))
    train(apart, *members(apart).values(), steps=range(4))
    assert_same(together, apart)


def test_schedulers_act_on_the_members() -> None:
    model, reference = network(), network()
    optimizer = Combined(members(model))
    alone = members(reference)
    schedule = CosineAnnealingLR(optimizer, T_max=5)
    schedules = [CosineAnnealingLR(m, T_max=5) for m in alone.values()]
    for step in range(4):
        train(model, optimizer, steps=range(step, step + 1))
        train(reference, *alone.values(), steps=range(step, step + 1))
        for s in (schedule, *schedules):
            s.step()
    assert_same(model, reference)
    assert optimizer.optimizers["head"].param_groups[0]["lr"] < 0.03
    plateau = ReduceLROnPlateau(optimizer, patience=0)
    plateau.step(1.0)
    plateau.step(2.0)
    assert optimizer.optimizers["muon"].param_groups[0]["lr"] < 0.02 / 10


def test_closure_is_evaluated_once_with_gradients_on() -> None:
    model = network()
    calls = []

    def closure() -> torch.Tensor:
        calls.append(torch.is_grad_enabled())
        loss = model(torch.ones(2, 5)).square().sum()
        loss.backward()
        return loss

    loss = Combined(members(model)).step(closure)
    assert calls == [True] and loss.item() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_resumes_bit_for_bit_from_a_weights_only_file(dtype: torch.dtype) -> None:
    model = network(dtype=dtype)
    optimizer = Combined(members(model))
    train(model, optimizer, steps=range(3))
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    train(model, optimizer, steps=range(3, 6))

    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed = network(seed=1, dtype=dtype)
    resumed.load_state_dict(saved["model"])
    again = Combined(members(resumed))
    schedule = CosineAnnealingLR(again, T_max=5)
    again.load_state_dict(saved["optimizer"])
    del schedule
    train(resumed, again, steps=range(3, 6))
    assert_same(model, resumed)


def test_groups_stay_live_after_loading_and_copying() -> None:
    model = network()
    optimizer = Combined(members(model))
    train(model, optimizer, steps=range(1))
    optimizer.load_state_dict(optimizer.state_dict())
    for one in (optimizer, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        for group in one.param_groups:
            group["lr"] = 0.5
        assert all(m.param_groups[0]["lr"] == 0.5 for m in one.optimizers.values())
        for p in one.state:
            one.state[p]["mark"] = 1
        assert all(s["mark"] for m in one.optimizers.values() for s in m.state.values())


def test_deepcopy_goes_on_alike() -> None:
    model = network()
    optimizer = Combined(members(model))
    train(model, optimizer, steps=range(2))
    twin_model, twin = copy.deepcopy((model, optimizer))
    train(model, optimizer, steps=range(2, 4))
    train(twin_model, twin, steps=range(2, 4))
    assert_same(model, twin_model)


def test_state_dict_has_the_format_of_torch() -> None:
    model = network()
    optimizer = Combined(members(model))
    train(model, optimizer, steps=range(1))
    state = optimizer.state_dict()
    assert set(state) == {"state", "param_groups"}
    assert [g["params"] for g in state["param_groups"]] == [[0], [1], [2]]
    assert [g["param_names"] for g in state["param_groups"]] == [
        ["0.weight"],
        ["0.bias"],
        ["1.weight"],
    ]
    assert set(state["state"][1]) == {"step", "exp_avg", "exp_avg_sq"}


def test_refuses_the_state_of_another() -> None:
    model = network()
    optimizer = Combined(members(model))
    state = optimizer.state_dict()
    swapped = {**state, "param_groups": state["param_groups"][::-1]}
    with pytest.raises(ValueError, match="group 0 .* optimizer head, this optimiser muon"):
        optimizer.load_state_dict(swapped)
    renamed = copy.deepcopy(state)
    renamed["param_groups"][2]["param_names"] = ["lm_head"]
    with pytest.raises(ValueError, match="group 2 .* param_names"):
        optimizer.load_state_dict(renamed)
    with pytest.raises(ValueError, match="2 parameter groups, this optimiser 3"):
        optimizer.load_state_dict({**state, "param_groups": state["param_groups"][:2]})


def test_a_state_of_another_shape_leaves_every_member_as_it_was() -> None:
    def pair(rows: int, lr: float) -> Combined:
        weights = [torch.nn.Parameter(torch.ones(n, 3)) for n in (6, rows)]
        return Combined(
            {
                "first": RowNormM([("a", weights[0])], lr=lr),
                "second": RowNormM([("b", weights[1])], lr=lr),
            }
        )

    optimizer = pair(5, 0.25)
    with pytest.raises(ValueError, match=r"shape \(6, 3\) for parameter 1, of shape \(5, 3\)"):
        optimizer.load_state_dict(pair(6, 0.5).state_dict())
    groups = [member.param_groups[0] for member in optimizer.optimizers.values()]
    assert all(mine is own for mine, own in zip(optimizer.param_groups, groups, strict=True))
    assert [group["lr"] for group in groups] == [0.25, 0.25]


def test_add_param_group_goes_to_the_member_named() -> None:
    model = network()
    optimizer = Combined(members(model))
    extra = nn.Parameter(torch.zeros(3))
    optimizer.add_param_group({"params": [("extra", extra)], "optimizer": "adamw", "lr": 0.1})
    assert optimizer.param_groups[-1] is optimizer.optimizers["adamw"].param_groups[-1]
    assert optimizer.param_groups[-1]["eps"] == 1e-8
    extra.grad = torch.ones(3)
    optimizer.step()
    assert torch.allclose(extra, torch.tensor(-0.1))
    train(model, optimizer, steps=range(1))
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.param_groups[-1]["params"][0] is extra

    before = len(optimizer.param_groups)
    with pytest.raises(ValueError, match="None, expected one of .*'adamw', 'head', 'muon'"):
        optimizer.add_param_group({"params": [("x", nn.Parameter(torch.zeros(3)))]})
    with pytest.raises(ValueError, match="2D"):
        group = {"params": [("x", nn.Parameter(torch.zeros(3)))], "optimizer": "head"}
        optimizer.add_param_group(group)
    with pytest.raises(ValueError, match="more than one"):
        optimizer.add_param_group({"params": [("0.weight", model[0].weight)], "optimizer": "adamw"})
    assert len(optimizer.param_groups) == before
    assert sum(len(m.param_groups) for m in optimizer.optimizers.values()) == before


def test_hooks_run_once_around_all_members() -> None:
    model = network()
    optimizer = Combined(members(model))
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.register_state_dict_post_hook(lambda _, state: state.update(extra=1))
    optimizer.register_load_state_dict_pre_hook(lambda _, state: seen.append(state.pop("extra")))
    optimizer.register_load_state_dict_post_hook(lambda _: seen.append("loaded"))
    train(model, optimizer, steps=range(1))
    optimizer.load_state_dict(state_dict=optimizer.state_dict())
    assert seen == ["before", "after", 1, "loaded"]


def test_zero_grad_and_parameters_without_gradient() -> None:
    model = network()
    optimizer = Combined(members(model))
    gradients(model, 0)
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    before = copy.deepcopy(model)
    optimizer.step()
    assert_same(model, before)


def test_grad_scaler_skips_a_step_with_an_infinite_gradient() -> None:
    model, reference = network(), network()
    optimizer, alone = Combined(members(model)), members(reference)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=100)
    for step, poison in enumerate((False, True, False)):
        gradients(model, step)
        for p in model.parameters():
            assert p.grad is not None
            p.grad.mul_(scaler.get_scale())
        scaler.scale(torch.ones(()))  # what makes a scaler of a loss ready
        if poison:
            assert model[1].weight.grad is not None
            model[1].weight.grad[0, 0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        if not poison:
            train(reference, *alone.values(), steps=range(step, step + 1))
    assert scaler.get_scale() == 4.0
    assert_same(model, reference)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_distributed_checkpoint_resumes_a_fresh_process(tmp_path) -> None:
    model = network()
    optimizer = Combined(members(model))
    train(model, optimizer, steps=range(2))
    state = get_optimizer_state_dict(model, optimizer)
    assert "momentum_buffer" in state["state"]["1.weight"]
    checkpoint.save({"optimizer": state}, checkpoint_id=tmp_path, no_dist=True)

    resumed = copy.deepcopy(model)
    again = Combined(members(resumed))
    fresh = {"optimizer": get_optimizer_state_dict(resumed, again)}
    assert_same(model, resumed)
    checkpoint.load(fresh, checkpoint_id=tmp_path, no_dist=True)
    set_optimizer_state_dict(resumed, again, fresh["optimizer"])
    train(model, optimizer, steps=range(2, 4))
    train(resumed, again, steps=range(2, 4))
    assert_same(model, resumed)


def test_table_and_repr_show_members_and_current_rates() -> None:
    model = network()
    optimizer = Combined(members(model), notes=["a note"])
    optimizer.param_groups[2]["lr"] = 0.125
    lines = optimizer.table().splitlines()
    assert len(lines) == 1 + 3 + 1 and lines[-1] == "a note"
    assert lines[3].split() == ["1.weight", "11", "x", "7", "head", "(RowNormM)", "0.125"]
    assert "head: RowNormM" in repr(optimizer)


def test_refuses_what_it_cannot_combine() -> None:
    model = network()
    with pytest.raises(ValueError, match="empty"):
        Combined({})
    with pytest.raises(TypeError, match="'a'.* is a int"):
        Combined({"a": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="more than one"):
        parameters = list(model.parameters())
        Combined({"a": SGD(parameters), "b": SGD(parameters[:1])})
