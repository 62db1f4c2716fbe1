"""Which parameter of a language model plays which part.

Decided by identity, module type and structure: the head is what the model itself names, or the
linear layer as wide as the vocabulary; a router is the layer beside `experts` with one output per
expert; gate, up and down projections are the layers of one module whose names *and* shapes fit;
whatever sits inside a module of a type called attention is attention. What fits nothing is an
error, not a guess.

| role | parameters | rows of the symmetry |
|---|---|---|
| `head` | output embedding, tied or not | tokens |
| `embedding` | input embedding, if not tied: the model's own, else the largest table | tokens |
| `position` | every other `nn.Embedding` | |
| `router` | one output per expert | experts |
| `gate`, `up`, `gate_up` | into the neurons of an MLP, `gate_up` both in one | neurons |
| `down` | out of the neurons | neurons, which are its columns |
| `attention` | matrices inside attention | |
| `hidden` | matrices of other linear layers | |
| `vector` | biases, gains, scalars, matrices of one row | |
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from torch import nn

ROLES = (
    "head",
    "embedding",
    "position",
    "router",
    "gate",
    "up",
    "gate_up",
    "down",
    "attention",
    "hidden",
    "vector",
)

MLPS = (
    {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"},
    {"gate": "w1", "up": "w3", "down": "w2"},
    {"gate_up": "gate_up_proj", "down": "down_proj"},
    {"up": "c_fc", "down": "c_proj"},
    {"up": "fc1", "down": "fc2"},
    {"up": "fc_in", "down": "fc_out"},
    {"gate": "wi_0", "up": "wi_1", "down": "wo"},
    {"up": "wi", "down": "wo"},
    {"up": "dense_h_to_4h", "down": "dense_4h_to_h"},
    {"up": "up_proj", "down": "down_proj"},
    {"up": "linear1", "down": "linear2"},
)
"""Names of the projections of one MLP; believed only where the shapes fit too."""


@dataclass(frozen=True)
class Assignment:
    """A trainable parameter and its part in the model.

    Attributes:
        names: every name under which the model holds it; more than one if it is tied.
        parameter: the tensor.
        role: one of `ROLES`.
        rows: the axis, 0 or 1, of the matrix (of each matrix of a 3-D stack) that counts tokens,
            experts or neurons; None for the roles without such an axis.
    """

    names: tuple[str, ...]
    parameter: nn.Parameter
    role: str
    rows: int | None


@dataclass(frozen=True)
class _Use:
    """One place where a module holds a parameter."""

    name: str
    attribute: str
    module: nn.Module
    parents: tuple[nn.Module, ...]


def assign_roles(model: nn.Module, roles: Mapping[str, str] | None = None) -> list[Assignment]:
    """Assign each trainable parameter of `model` exactly one role, in the order of the model.

    Recognised are plain modules and the models of `transformers`: GPT-2 (whose `Conv1D` stores
    matrices transposed), Llama, Phi (fused gate and up), Mixtral, Qwen-MoE and gpt-oss (stacks of
    experts as 3-D parameters), alone or inside `torch.compile` and data-parallel wrappers.

    Args:
        model: the language model; parameters with `requires_grad=False` are left out.
        roles: parameter name -> role, for what is not recognised or is to be treated otherwise.

    Raises:
        ValueError: a parameter fits no role or two, there is no head, or `roles` names a parameter
            or a role that does not exist. The message names the parameters and the remedy.
    """
    uses = _uses(model)
    chosen = _checked(roles or {}, uses, model)
    heads = [p for p, role in chosen.items() if role == "head"] or _heads(model)
    found = _structural(model) | {p: ("embedding", 0) for p in _token_tables(model)}
    assignments, unmatched, doubled = [], [], []
    for p, places in uses.items():
        if not p.requires_grad:
            continue
        if p in chosen:
            options = {chosen[p]}
        elif any(p is head for head in heads):
            options = {"head"}
        else:
            options = {found.get(p, (None,))[0] or _role(p, use) for use in places}
        names = tuple(use.name for use in places)
        if len(options) > 1:
            doubled.append(f"{' = '.join(names)} ({', '.join(sorted(map(str, options)))})")
        elif (role := options.pop()) is None:
            unmatched.append(f"{names[0]} {tuple(p.shape)} in {type(places[0].module).__name__}")
        else:
            rows = found[p][1] if p in found and found[p][0] == role else _rows(p, role, places)
            assignments.append(Assignment(names, p, role, rows))
    if unmatched or doubled:
        example = (unmatched or doubled)[0].split(" ")[0]
        raise ValueError(
            "".join(f"unmatched: {line}\n" for line in unmatched)
            + "".join(f"matched twice: {line}\n" for line in doubled)
            + f"say what they are, for instance roles={{{example!r}: 'hidden'}}; roles are "
            + ", ".join(ROLES)
        )
    return assignments


def _uses(model: nn.Module) -> dict[nn.Parameter, list[_Use]]:
    """Every parameter with every place that holds it."""
    uses: dict[nn.Parameter, list[_Use]] = {}

    def visit(module: nn.Module, prefix: str, parents: tuple[nn.Module, ...]) -> None:
        for attribute, p in module._parameters.items():
            if p is not None:
                uses.setdefault(p, []).append(_Use(prefix + attribute, attribute, module, parents))
        for name, child in module._modules.items():
            if child is not None:
                visit(child, f"{prefix}{name}.", (*parents, module))

    visit(model, "", ())
    return uses


def _checked(
    roles: Mapping[str, str], uses: dict[nn.Parameter, list[_Use]], model: nn.Module
) -> dict[nn.Parameter, str]:
    by_name = {use.name: p for p, places in uses.items() for use in places}
    for name, role in roles.items():
        if name not in by_name:
            raise ValueError(
                f"roles names {name!r}, which {type(model).__name__} does not have; its parameters "
                f"are listed by model.named_parameters()"
            )
        if role not in ROLES:
            raise ValueError(f"roles[{name!r}] is {role!r}, expected one of {', '.join(ROLES)}")
    return {by_name[name]: role for name, role in roles.items()}


def _heads(model: nn.Module) -> list[nn.Parameter]:
    """What the model calls its output embedding, else the linear layer as wide as its tokens."""
    for module in model.modules():
        named = getattr(module, "get_output_embeddings", lambda: None)()
        weight = getattr(named, "weight", None)
        if isinstance(weight, nn.Parameter):
            return [weight]
    tables = _token_tables(model)
    vocabulary = len(tables[0]) if tables else 0
    layers = {
        f"{name}.weight": (cast(nn.Parameter, module.weight), axis)
        for name, module in model.named_modules()
        if (axis := _output_axis(module)) is not None
    }
    fitting = {name: w for name, (w, axis) in layers.items() if w.shape[axis] == vocabulary}
    tied = [weight for weight in fitting.values() if any(weight is table for table in tables)]
    if tied or len(fitting) == 1:
        return tied or list(fitting.values())
    raise ValueError(
        f"{len(fitting)} linear layers are as wide as the vocabulary, {vocabulary} tokens"
        f"{': ' if fitting else ''}{', '.join(fitting)}; name the head: roles={{NAME: 'head'}}"
    )


def _token_tables(model: nn.Module) -> list[nn.Parameter]:
    """What the model calls its input embedding, else the largest tables."""
    tables = [cast(nn.Parameter, m.weight) for m in model.modules() if isinstance(m, nn.Embedding)]
    for module in model.modules():
        named = getattr(module, "get_input_embeddings", lambda: None)()
        if isinstance(named, nn.Embedding):
            return [cast(nn.Parameter, named.weight)]
    return [table for table in tables if len(table) == max(map(len, tables))]


def _output_axis(module: nn.Module) -> int | None:
    """The axis of `weight` that counts outputs; None for a module that is no linear layer.

    The `Conv1D` of GPT-2 in `transformers` stores its weight as (inputs, outputs).
    """
    if isinstance(module, nn.Linear):
        return 0
    if type(module).__name__ == "Conv1D" and hasattr(module, "nf"):
        return 1
    return None


def _structural(model: nn.Module) -> dict[nn.Parameter, tuple[str, int]]:
    """Role and row axis of the parameters that the modules around them give away."""
    found: dict[nn.Parameter, tuple[str, int]] = {}
    for module in model.modules():
        matrices = dict(_matrices(module))
        for pattern in MLPS:
            if all(attribute in matrices for attribute in pattern.values()):
                parts = {role: matrices[attribute] for role, attribute in pattern.items()}
                found.update(_mlp(parts))
                break
        experts = getattr(module, "experts", None)
        if isinstance(experts, nn.Module):
            count = _count(experts)
            for attribute, (p, axis) in matrices.items():
                if attribute != "experts" and p.ndim == 2 and p.shape[axis or 0] == count > 1:
                    found[p] = ("router", axis or 0)
    return found


def _matrices(module: nn.Module) -> Iterator[tuple[str, tuple[nn.Parameter, int | None]]]:
    """Matrices held by a module itself or as the weight of a child, with the axis of outputs."""
    for attribute, p in module._parameters.items():
        if p is not None and p.ndim in (2, 3):
            yield attribute, (p, None)
    for attribute, child in module._modules.items():
        weight = getattr(child, "weight", None)
        if isinstance(weight, nn.Parameter) and weight.ndim == 2:
            yield attribute, (weight, _output_axis(child) if child is not None else None)


def _count(experts: nn.Module) -> int:
    if isinstance(experts, nn.ModuleList):
        return len(experts)
    return next((len(p) for p in experts.parameters(recurse=False) if p.ndim == 3), 0)


def _mlp(parts: dict[str, tuple[nn.Parameter, int | None]]) -> dict[nn.Parameter, tuple[str, int]]:
    """Roles and neuron axes if the shapes are those of one MLP, else nothing.

    Linear layers know their output axis. Of bare parameters the two layouts (neurons, width) and
    (width, neurons) are tried: at most one fits a fused `gate_up`, and both fit a square matrix
    only, where the first is taken.
    """
    for fallback in (0, 1):
        out = {role: fallback if axis is None else axis for role, (_, axis) in parts.items()}
        rows = {role: 1 - out[role] if role == "down" else out[role] for role in parts}
        sizes = {}
        for role, (p, _) in parts.items():
            shape = p.shape[-2:]
            halves = 2 if role == "gate_up" else 1
            sizes[role] = (shape[rows[role]] / halves, shape[1 - rows[role]])
        if len(set(sizes.values())) == 1:
            return {p: (role, rows[role]) for role, (p, _) in parts.items()}
    return {}


def _role(p: nn.Parameter, use: _Use) -> str | None:
    """The role that module types give away, None if they do not."""
    kinds = [type(module).__name__.lower() for module in (*use.parents, use.module)]
    is_bias = use.attribute.endswith("bias") and use.attribute != "weight"
    if p.ndim < 2 or is_bias or "norm" in kinds[-1] or (p.ndim == 2 and min(p.shape) == 1):
        return "vector"
    if isinstance(use.module, nn.Embedding):
        return "position"
    if p.ndim == 2 and "router" in kinds[-1]:
        return "router"
    if p.ndim == 2 and any("attention" in kind or "attn" in kind for kind in kinds):
        return "attention"
    return "hidden" if p.ndim == 2 and _output_axis(use.module) is not None else None


def _rows(p: nn.Parameter, role: str, places: list[_Use]) -> int | None:
    """The axis of tokens, experts or neurons, from the type of the module.

    Of a matrix in a module of unknown type the longer axis is taken for tokens.
    """
    if role in ("position", "attention", "hidden", "vector"):
        return None
    known = [
        0 if isinstance(use.module, nn.Embedding) else _output_axis(use.module) for use in places
    ]
    longer = int(role in ("head", "embedding") and p.shape[-1] > p.shape[-2])
    output = next((axis for axis in known if axis is not None), longer)
    return 1 - output if role == "down" else output


def frozen_names(model: nn.Module) -> list[str]:
    """Names of the parameters with `requires_grad=False`, which no optimiser gets."""
    return [name for name, p in model.named_parameters() if not p.requires_grad]
