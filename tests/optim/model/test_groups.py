"""Every trainable parameter gets exactly one role, by what it is and not by what it is called."""

from collections import Counter

import pytest
import torch
from torch import nn

from rowsep.optim.model.groups import ROLES, assign_roles
from tests.optim.models import CONFIGS, VOCABULARY, Plain, pretrained


def by_name(model: nn.Module, **kwargs) -> dict[str, tuple[str, int | None]]:
    return {a.names[0]: (a.role, a.rows) for a in assign_roles(model, **kwargs)}


@pytest.mark.parametrize("name", CONFIGS)
def test_each_trainable_parameter_once(name: str) -> None:
    model = pretrained(name)
    assignments = assign_roles(model)
    assert [id(a.parameter) for a in assignments] == [id(p) for p in model.parameters()]
    assert {a.role for a in assignments} <= set(ROLES)
    head = next(a for a in assignments if a.role == "head")
    assert head.parameter is model.get_output_embeddings().weight
    assert all(a.role == "vector" for a in assignments if a.parameter.ndim == 1)


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_count_what_they_are_said_to(name: str) -> None:
    """The axis called neurons, experts or tokens has as many entries as there are of them."""
    model, config = pretrained(name), CONFIGS[name]
    neurons = {
        getattr(config, key, None)
        for key in ("intermediate_size", "moe_intermediate_size", "ffn_dim")
    } | {4 * getattr(config, "hidden_size", 0) if name == "gpt2" else None}
    seen = Counter()
    for a in assign_roles(model):
        if a.rows is None:
            continue
        count = a.parameter.shape[-2:][a.rows]
        seen[a.role] += 1
        if a.role == "router":
            assert count == 4
        elif a.role in ("head", "embedding"):
            assert count == VOCABULARY
        else:
            assert count / (2 if a.role == "gate_up" else 1) in neurons
    layers = config.num_hidden_layers
    assert seen["down"] >= layers
    assert seen["router"] == (layers if "mo" in name or name in ("mixtral", "gpt_oss") else 0)


def test_roles_of_gpt2_stored_transposed() -> None:
    roles = by_name(pretrained("gpt2"))
    assert roles["transformer.wte.weight"] == ("head", 0)
    assert roles["transformer.wpe.weight"] == ("position", None)
    assert roles["transformer.h.0.attn.c_attn.weight"] == ("attention", None)
    assert roles["transformer.h.0.mlp.c_fc.weight"] == ("up", 1)
    assert roles["transformer.h.0.mlp.c_proj.weight"] == ("down", 0)
    assert roles["transformer.h.0.mlp.c_fc.bias"] == ("vector", None)


def test_roles_of_swiglu_and_experts() -> None:
    llama, phi = by_name(pretrained("llama")), by_name(pretrained("phi3"))
    assert llama["model.embed_tokens.weight"] == ("embedding", 0)
    assert llama["model.layers.1.mlp.gate_proj.weight"] == ("gate", 0)
    assert llama["model.layers.1.mlp.up_proj.weight"] == ("up", 0)
    assert llama["model.layers.1.mlp.down_proj.weight"] == ("down", 1)
    assert phi["model.layers.1.mlp.gate_up_proj.weight"] == ("gate_up", 0)

    qwen, oss = by_name(pretrained("qwen2_moe")), by_name(pretrained("gpt_oss"))
    assert qwen["model.layers.0.mlp.gate.weight"] == ("router", 0)
    assert qwen["model.layers.0.mlp.shared_expert_gate.weight"] == ("vector", None)
    assert qwen["model.layers.0.mlp.experts.gate_up_proj"] == ("gate_up", 0)
    assert oss["model.layers.0.mlp.experts.gate_up_proj"] == ("gate_up", 1)
    assert oss["model.layers.0.mlp.experts.down_proj"] == ("down", 0)
    assert oss["model.layers.0.mlp.experts.gate_up_proj_bias"] == ("vector", None)
    assert oss["model.layers.0.self_attn.sinks"] == ("vector", None)


class Expert(nn.Module):
    def __init__(self, width: int, neurons: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, neurons, bias=False)
        self.w2 = nn.Linear(neurons, width, bias=False)
        self.w3 = nn.Linear(width, neurons, bias=False)


class Experts(nn.Module):
    """The mixture as older releases wrote it: a linear gate beside a list of experts."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 8)
        self.gate = nn.Linear(8, 3, bias=False)
        self.experts = nn.ModuleList(Expert(8, 12) for _ in range(3))
        self.out = nn.Linear(8, VOCABULARY)


def test_lists_of_experts() -> None:
    roles = by_name(Experts())
    assert roles["gate.weight"] == ("router", 0)
    assert roles["experts.2.w1.weight"] == ("gate", 0)
    assert roles["experts.2.w2.weight"] == ("down", 1)
    assert roles["experts.2.w3.weight"] == ("up", 0)
    assert roles["out.weight"] == ("head", 0)


@pytest.mark.parametrize(
    "names",
    [
        {"gate": "wi_0", "up": "wi_1", "down": "wo"},
        {"up": "wi", "down": "wo"},
        {"up": "fc_in", "down": "fc_out"},
    ],
)
def test_mlps_of_t5_and_gptj(names: dict[str, str]) -> None:
    sizes = {"gate": (8, 12), "up": (8, 12), "down": (12, 8)}
    mlp = {name: nn.Linear(*sizes[role]) for role, name in names.items()}
    model = nn.ModuleDict(
        {"e": nn.Embedding(VOCABULARY, 8), "mlp": nn.ModuleDict(mlp), "h": nn.Linear(8, VOCABULARY)}
    )
    roles = by_name(model)
    for role, name in names.items():
        assert roles[f"mlp.{name}.weight"] == (role, int(role == "down"))


def test_names_alone_prove_nothing() -> None:
    """A `down_proj` that does not fit `up_proj`, a `gate` without experts, a small `lm_head`."""
    model = nn.ModuleDict(
        {
            "tokens": nn.Embedding(VOCABULARY, 8),
            "up_proj": nn.Linear(8, 12),
            "down_proj": nn.Linear(9, 8),
            "gate": nn.Linear(8, 4),
            "lm_head": nn.Linear(8, 5),
            "unembed": nn.Linear(8, VOCABULARY),
        }
    )
    roles = by_name(model)
    assert roles["unembed.weight"] == ("head", 0)
    for name in ("up_proj", "down_proj", "gate", "lm_head"):
        assert roles[f"{name}.weight"] == ("hidden", None)


def test_plain_modules_tied_or_not() -> None:
    roles = by_name(Plain())
    assert roles["head.weight"] == ("head", 0)
    assert roles["wte.weight"] == ("embedding", 0)
    assert roles["wpe.weight"] == ("position", None)
    assert roles["block.mlp.c_fc.weight"] == ("up", 0)
    tied = next(a for a in assign_roles(Plain(tied=True)) if a.role == "head")
    assert tied.names == ("wte.weight", "head.weight")
    assert "embedding" not in {a.role for a in assign_roles(Plain(tied=True))}


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_wrapped_models_are_the_same() -> None:
    for model in (pretrained("gpt2"), Plain()):
        roles = list(by_name(model).values())
        assert list(by_name(torch.compile(model)).values()) == roles
        assert list(by_name(nn.ModuleDict({"module": model})).values()) == roles


def test_frozen_parameters_are_left_out() -> None:
    model = Plain()
    model.wte.weight.requires_grad_(False)
    model.block.attn.requires_grad_(False)
    names = set(by_name(model))
    assert "head.weight" in names
    assert not any(name.startswith(("wte", "block.attn")) for name in names)


class Odd(nn.Module):
    """A head stored transposed in a module of its own type, and a bare matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 8)
        self.unembed = nn.ParameterDict({"weight": torch.zeros(8, VOCABULARY)})
        self.mixing = nn.Parameter(torch.zeros(4, 4))


def test_what_is_not_recognised_is_named_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"0 linear layers .* name the head: roles="):
        assign_roles(Odd())
    with pytest.raises(ValueError, match=r"unmatched: mixing \(4, 4\) in Odd\n.*roles=\{'mixing'"):
        assign_roles(Odd(), {"unembed.weight": "head"})
    roles = by_name(Odd(), roles={"unembed.weight": "head", "mixing": "vector"})
    assert roles["unembed.weight"] == ("head", 1)
    assert roles["mixing"] == ("vector", None)


def test_parameter_with_two_roles_is_named() -> None:
    model = nn.ModuleDict(
        {
            "tokens": nn.Embedding(VOCABULARY, 8),
            "other": nn.Embedding(12, 8),
            "layer": nn.Linear(8, 12),
            "head": nn.Linear(8, VOCABULARY),
        }
    )
    model["layer"].weight = model["other"].weight
    with pytest.raises(ValueError, match=r"matched twice: other.weight = layer.weight \(hidden"):
        assign_roles(model)
    assert by_name(model, roles={"layer.weight": "hidden"})["other.weight"] == ("hidden", None)


def test_ambiguous_heads_are_named() -> None:
    model = nn.ModuleDict(
        {
            "tokens": nn.Embedding(VOCABULARY, 8),
            "a": nn.Linear(8, VOCABULARY),
            "b": nn.Linear(8, VOCABULARY),
        }
    )
    with pytest.raises(ValueError, match="2 linear layers .*: a.weight, b.weight; name the head"):
        assign_roles(model)
    assert by_name(model, roles={"b.weight": "head"})["a.weight"] == ("hidden", None)


def test_an_output_embedding_without_a_weight_of_its_own() -> None:
    """As wrapped by an adapter: its layers are looked at."""

    class Wrapped(Plain):
        def get_output_embeddings(self) -> nn.Module:
            return nn.ModuleList([self.head])

    assert by_name(Wrapped())["head.weight"] == ("head", 0)


def test_unknown_names_and_roles_are_refused() -> None:
    with pytest.raises(ValueError, match="'lm_head.weight', which Plain does not have"):
        assign_roles(Plain(), {"lm_head.weight": "head"})
    with pytest.raises(ValueError, match="'headd', expected one of head, embedding"):
        assign_roles(Plain(), {"head.weight": "headd"})
