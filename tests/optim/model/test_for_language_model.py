"""One call serves every part of a model by the optimiser said, and tells so."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Muon

from rowsep.optim.heads.polar_grad import HybridPolarGradM, LeftPolarGradM
from rowsep.optim.heads.row_norm import RowNormM
from rowsep.optim.heads.row_separation import RowSeparation
from rowsep.optim.heads.rowwise_adam import RowwiseAdam
from rowsep.optim.model.for_language_model import RECIPES, for_language_model
from rowsep.optim.model.stacked import Stacked
from rowsep.optim.normalized_head import NormalizedHead
from rowsep.packing import cloud
from tests.optim.models import CONFIGS, VOCABULARY, Plain, batch, loss_of, pretrained


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", [*CONFIGS, "plain"])
def test_moves_every_parameter_and_lowers_the_loss(name: str, recipe: str) -> None:
    model = Plain() if name == "plain" else pretrained(name)
    optimizer = for_language_model(model, recipe=recipe)
    owned = [p for group in optimizer.param_groups for p in group["params"]]
    assert len(owned) == len({id(p) for p in owned}) == len(list(model.parameters()))
    before, losses = copy.deepcopy(model), []
    for _ in range(3):
        loss = loss_of(model, batch())
        loss.backward()
        missing = {id(p) for p in model.parameters() if p.grad is None or not p.grad.any()}
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for p, q in zip(model.parameters(), before.parameters(), strict=True):
        assert id(p) in missing or not torch.equal(p, q)


def classes(model: nn.Module, **kwargs) -> dict[str, set[type]]:
    """Optimiser classes by role, those of single experts too."""
    optimizer, found = for_language_model(model, **kwargs), {}
    for group in optimizer.param_groups:
        member = optimizer.optimizers[group["optimizer"]]
        kind = member.optimizer if isinstance(member, Stacked) else type(member)
        found.setdefault(group["role"], set()).add(kind)
    return found


def test_recipes_serve_each_role_as_published() -> None:
    model = pretrained("qwen2_moe")
    assert classes(model) == {
        "head": {RowSeparation},
        "embedding": {AdamW},
        "router": {AdamW},
        "vector": {AdamW},
        **{role: {Muon} for role in ("gate", "up", "gate_up", "down", "attention")},
    }
    layerwise = classes(
        model, recipe="layerwise", head="row_norm", optimizers={"router": "left_polar"}
    )
    assert layerwise == {
        "router": {LeftPolarGradM},
        "vector": {AdamW},
        "attention": {Muon},
        **{role: {RowNormM} for role in ("head", "embedding", "gate", "up", "gate_up", "down")},
    }


def test_layerwise_steps_normalise_neurons_and_centre_only_heads_and_routers() -> None:
    """The step of each part, from the weights before and after, against its definition."""
    model = pretrained("gpt_oss")
    optimizer = for_language_model(model, recipe="layerwise", head="row_norm")
    before = copy.deepcopy(model.state_dict())
    loss_of(model, batch()).backward()
    optimizer.step()
    lrs = {n: g["lr"] for g in optimizer.param_groups for n in g["param_names"]}
    for name, p in model.named_parameters():
        step = (before[name] - p.detach()) / lrs[name]
        if name.endswith("embed_tokens.weight"):
            used = p.grad.norm(dim=1) > 0
            torch.testing.assert_close(step.norm(dim=1), used.float())
        elif "gate_up_proj" in name and p.ndim == 3:  # (experts, width, neurons)
            moved = step.norm(dim=1)
            moved = moved[p.grad.norm(dim=1) > 0]
            torch.testing.assert_close(moved, torch.ones_like(moved), rtol=1e-3, atol=1e-3)
        elif "down_proj" in name and p.ndim == 3:  # (experts, neurons, width)
            moved = step.norm(dim=2)
            moved = moved[p.grad.norm(dim=2) > 0]
            torch.testing.assert_close(moved, torch.ones_like(moved), rtol=1e-3, atol=1e-3)
        elif "router.weight" in name or "lm_head" in name:
            assert step.sum(dim=0).abs().max() < 1e-2


def test_head_step_has_the_diameter_of_its_rate() -> None:
    model = pretrained("llama")
    optimizer = for_language_model(model, head_lr=0.25)
    before = model.lm_head.weight.detach().clone()
    loss_of(model, batch()).backward()
    optimizer.step()
    assert cloud.diameter(before - model.lm_head.weight.detach()).value == pytest.approx(
        0.25, rel=1e-4
    )
    assert set(optimizer.optimizers["head"].last_step) == {"lm_head.weight"}


def test_transposed_storage_trains_alike() -> None:
    """GPT-2 with `Conv1D` and with the same numbers in `nn.Linear` take the same steps."""

    def linear(module: nn.Module) -> None:
        for name, child in list(module.named_children()):
            if type(child).__name__ == "Conv1D":
                layer = nn.Linear(*child.weight.shape)
                layer.weight = nn.Parameter(child.weight.detach().T.clone())
                layer.bias = nn.Parameter(child.bias.detach().clone())
                setattr(module, name, layer)
            else:
                linear(child)

    for recipe in RECIPES:
        stored, plain = pretrained("gpt2"), pretrained("gpt2")
        linear(plain)
        for model in (stored, plain):
            model.eval()
            optimizer = for_language_model(model, recipe=recipe)
            loss_of(model, batch()).backward()
            optimizer.step()
        ours, theirs = dict(stored.named_parameters()), dict(plain.named_parameters())
        for name, p in ours.items():
            q = theirs[name].T if p.ndim == 2 and ".h." in name else theirs[name]
            # a step of Muon has entries of about 1.2e-4, and is orthogonalised in bfloat16
            torch.testing.assert_close(p, q, rtol=0, atol=1.5e-5)


def test_tied_heads_have_one_owner_and_say_so() -> None:
    for model in (Plain(tied=True), pretrained("gpt2")):
        optimizer = for_language_model(model)
        owners = [
            group["optimizer"]
            for group in optimizer.param_groups
            for p in group["params"]
            if any(
                p is m.weight for m in model.modules() if isinstance(m, nn.Linear | nn.Embedding)
            )
            and p.shape[0] == VOCABULARY
        ]
        assert owners == ["head"]
        assert "tied: " in optimizer.table() and "one owner, the optimiser of head" in (
            optimizer.table()
        )


def test_padding_rows_of_the_head_stay() -> None:
    model = Plain(padding=27)
    model.config = type("Config", (), {"vocab_size": VOCABULARY})()
    for optimizer, source in (
        (for_language_model(model), "vocab_size of the model's config"),
        (for_language_model(model, num_real_rows=VOCABULARY), "num_real_rows"),
    ):
        assert f"{VOCABULARY} of 128 rows are tokens ({source})" in optimizer.table()
        before = model.head.weight.detach().clone()
        loss_of(model, batch()).backward()
        optimizer.step()
        assert torch.equal(model.head.weight[VOCABULARY:], before[VOCABULARY:])
        assert not torch.equal(model.head.weight[:VOCABULARY], before[:VOCABULARY])
    assert "treats padding as any other row" in for_language_model(model, head="adamw").table()
    with pytest.raises(ValueError, match="num_real_rows is 200"):
        for_language_model(model, num_real_rows=200)


class Transposed(nn.Module):
    """A model whose head is stored as (width, tokens), in a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 8)
        self.unembed = nn.ParameterDict({"weight": torch.randn(8, VOCABULARY)})


def test_heads_stored_transposed() -> None:
    model = Transposed()
    optimizer = for_language_model(model, roles={"unembed.weight": "head"}, head_lr=0.5)
    assert "unembed.weight is stored transposed" in optimizer.table()
    weight = model.unembed["weight"]
    weight.grad = torch.randn(8, VOCABULARY)
    before = weight.detach().clone()
    optimizer.step()
    assert cloud.diameter((before - weight.detach()).T).value == pytest.approx(0.5, rel=1e-4)


def test_frozen_parameters_are_left_and_named() -> None:
    model = Plain()
    model.head.requires_grad_(False)
    optimizer = for_language_model(model)
    assert "frozen, left out: head.weight\nhead: frozen" in optimizer.table()
    assert "head" not in optimizer.optimizers


def test_table_lists_every_parameter_once() -> None:
    model = pretrained("mixtral")
    lines = for_language_model(model).table().splitlines()
    listed = [line.split()[0] for line in lines[1 : 1 + len(list(model.parameters()))]]
    assert sorted(listed) == sorted(name for name, _ in model.named_parameters())
    line = next(line for line in lines if "experts.down_proj" in line)
    assert line.split()[1:] == [
        *"4 x 16 x 24".split(),
        "down",
        "muon_experts",
        "(Stacked)",
        "0.0006",
    ]


def test_options_reach_their_role_only() -> None:
    optimizer = for_language_model(
        Plain(),
        lr=1e-3,
        head="hybrid_polar",
        options={"vector": {"lr": 7e-3}, "up": {"weight_decay": 0.5}, "head": {"alpha": 0.0}},
    )
    groups = {g["role"]: g for g in optimizer.param_groups}
    assert {role: g["lr"] for role, g in groups.items()} == {
        "head": 1e-2,
        "vector": 7e-3,
        **dict.fromkeys(("embedding", "position", "attention", "up", "down"), 1e-3),
    }
    assert groups["up"]["weight_decay"] == 0.5 and groups["down"]["weight_decay"] == 0.1
    assert groups["vector"]["weight_decay"] == groups["embedding"]["weight_decay"] == 0.0
    assert groups["head"]["alpha"] == 0.0 and groups["head"]["order"] == "row_then_polar"
    assert isinstance(optimizer.optimizers["head"], HybridPolarGradM)


def test_published_variants_of_the_layerwise_stack() -> None:
    model = pretrained("mixtral")
    variants = {"router": "left_polar"} | dict.fromkeys(("gate_up", "down"), "hybrid_polar")
    optimizer = for_language_model(model, recipe="layerwise", optimizers=variants)
    before = loss_of(model, batch())
    before.backward()
    optimizer.step()
    assert loss_of(model, batch()) < before
    assert {g["lr"] for g in optimizer.param_groups if g["role"] in ("gate_up", "down")} == {2e-2}


def test_normalised_head_keeps_unit_rows() -> None:
    model = Plain()
    model.head = NormalizedHead(model.head)
    optimizer = for_language_model(model, roles={"head.weight": "head"}, head_lr=0.1)
    model.head.attach(optimizer)
    loss_of(model, batch()).backward()
    optimizer.step()
    torch.testing.assert_close(model.head.weight.norm(dim=1), torch.ones(VOCABULARY))
    assert {g["role"]: len(g["params"]) for g in optimizer.param_groups}["head"] == 1


def test_tensor_rates_are_not_shared_between_groups() -> None:
    optimizer = for_language_model(Plain(), lr=torch.tensor(1e-3), head_lr=torch.tensor(0.1))
    groups = {g["role"]: g for g in optimizer.param_groups}
    groups["vector"]["lr"].mul_(2)
    assert {role: round(float(g["lr"]), 6) for role, g in groups.items()} == {
        "head": 0.1,
        "vector": 2e-3,
        **dict.fromkeys(("embedding", "position", "attention", "up", "down"), 1e-3),
    }


def test_any_optimiser_class_serves_a_role() -> None:
    assert classes(Plain(), head=RowwiseAdam) == classes(Plain(), head="rowwise_adam")
    group = for_language_model(Plain(), head="rowwise_adam").param_groups[0]
    assert (group["lr"], group["momentum"]) == (0.2, 0.8), "as docs/how-to/floor_and_lr.md has them"
    found = classes(Plain(), head=SGD, options={"head": {"lr": 0.1}})
    assert found["head"] == {SGD}


@pytest.mark.parametrize(
    "kwargs, message",
    [
        (dict(recipe="mup"), "recipe is 'mup', expected one of muon, layerwise"),
        (dict(head="rows"), "optimiser of 'head' is 'rows', expected a class or one of"),
        (dict(optimizers={"heads": "adamw"}), "optimizers has 'heads'"),
        (dict(options={"heads": {}}), "options has 'heads'"),
        (dict(options={"head": {"beta": 0.9}}), r"\['beta'\], which RowSeparation does not take"),
        (dict(head="right_polar"), "no default learning rate for right_polar on the role 'head'"),
        (dict(head=SGD), "no default learning rate for SGD"),
        (dict(head_lr=-1.0), "lr is -1.0"),
        (dict(weight_decay=-0.1), "weight_decay is -0.1"),
    ],
)
def test_refuses_what_it_does_not_know(kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        for_language_model(Plain(), **kwargs)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        (dict(head=None), "optimiser of 'head' is None"),
        (dict(optimizers={"vector": int}), "optimiser of 'vector' is <class 'int'>"),
        (dict(lr="fast"), "lr is 'fast'"),
        (dict(weight_decay=None), "weight_decay is None"),
    ],
)
def test_refuses_what_is_no_optimiser_and_no_number(kwargs: dict, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        for_language_model(Plain(), **kwargs)


def test_refuses_a_model_with_nothing_to_train() -> None:
    with pytest.raises(ValueError, match="no parameter of Plain is trainable"):
        for_language_model(Plain().requires_grad_(False))


def test_a_nan_loss_moves_nothing() -> None:
    """AdamW and Muon would take NaN gradients: the head refuses them before their turn."""
    model = Plain()
    optimizer = for_language_model(model)
    before = copy.deepcopy(model.state_dict())
    (loss_of(model, batch()) * float("nan")).backward()
    with pytest.raises(ValueError, match="entries NaN"):
        optimizer.step()
    for name, p in model.state_dict().items():
        assert torch.equal(p, before[name])


def test_resumes_bit_for_bit_with_experts() -> None:
    model = pretrained("gpt_oss").to(torch.bfloat16)
    optimizer = for_language_model(model, recipe="layerwise")

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, seeds: range) -> None:
        for seed in seeds:
            loss_of(model, batch(seed)).backward()
            optimizer.step()
            optimizer.zero_grad()

    train(model, optimizer, range(2))
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    train(model, optimizer, range(2, 4))
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    resumed = pretrained("gpt_oss", seed=1).to(torch.bfloat16)
    resumed.load_state_dict(weights)
    again = for_language_model(resumed, recipe="layerwise")
    again.load_state_dict(state)
    train(resumed, again, range(2, 4))
    for p, q in zip(model.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(p, q)
