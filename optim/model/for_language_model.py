"""One call from a language model to one optimiser for all of it."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from rowsep.packing import checks

from ..heads.base import HeadOptimizer
from ..heads.normuon import NorMuon
from ..heads.polar_grad import HybridPolarGradM, LeftPolarGradM, RightPolarGradM
from ..heads.row_norm import RowNormM
from ..heads.row_separation import RowSeparation
from ..heads.rowwise_adam import RowwiseAdam
from ..heads.signum import Signum
from ..heads.steepest_descent import SteepestDescent
from .combined import Combined
from .groups import Assignment, assign_roles, frozen_names
from .stacked import Stacked

OPTIMIZERS: dict[str, type[Optimizer]] = {
    "row_separation": RowSeparation,
    "normuon": NorMuon,
    "row_norm": RowNormM,
    "rowwise_adam": RowwiseAdam,
    "right_polar": RightPolarGradM,
    "left_polar": LeftPolarGradM,
    "hybrid_polar": HybridPolarGradM,
    "signum": Signum,
    "steepest_descent": SteepestDescent,
    "muon": Muon,
    "adamw": AdamW,
}

MATRICES = ("gate", "up", "gate_up", "down", "attention", "hidden")
NEURONS = ("gate", "up", "gate_up", "down")

RECIPES: dict[str, dict[str, str]] = {
    "muon": {
        "embedding": "adamw",
        "position": "adamw",
        "router": "adamw",
        **dict.fromkeys(MATRICES, "muon"),
        "vector": "adamw",
    },
    "layerwise": {
        "embedding": "row_norm",
        "position": "adamw",
        "router": "row_norm",
        **dict.fromkeys(NEURONS, "row_norm"),
        "attention": "muon",
        "hidden": "muon",
        "vector": "adamw",
    },
}
"""Optimiser by role. `layerwise` is the stack of Lau and Su, arXiv 2605.18106: rows of gate and up,
the columns of down, embeddings without and routers with centring, Muon where no axis is special."""

LRS: dict[tuple[str, str], float] = {
    ("row_separation", "head"): 1e-2,
    ("steepest_descent", "head"): 1e-2,
    ("rowwise_adam", "head"): 2e-1,
    ("normuon", "head"): 1.6e-2,
    ("row_norm", "head"): 5e-3,
    ("hybrid_polar", "head"): 1e-2,
    ("row_norm", "embedding"): 5e-1,
    ("hybrid_polar", "embedding"): 1.0,
    ("row_norm", "router"): 7.5e-4,
    ("left_polar", "router"): 7.5e-4,
    ("hybrid_polar", "router"): 7.5e-4,
    **{("row_norm", role): 2e-2 for role in NEURONS},
    **{("hybrid_polar", role): 2e-2 for role in NEURONS},
}
"""Learning rates to start a search from: those published for a model of Qwen3-0.6B's size (routers:
OLMoE's). Those of `row_separation`, `steepest_descent`, `rowwise_adam` and `normuon` are not: the
first two move a row about as far as that of `row_norm` does, the others are of the small models of
docs/results/heads.md (docs/how-to/floor_and_lr.md)."""


def for_language_model(
    model: nn.Module,
    *,
    recipe: str = "muon",
    lr: float | Tensor = 6e-4,
    weight_decay: float = 0.1,
    head: str | type[Optimizer] = "row_separation",
    head_lr: float | Tensor | None = None,
    num_real_rows: int | None = None,
    optimizers: Mapping[str, str | type[Optimizer]] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    roles: Mapping[str, str] | None = None,
) -> Combined:
    """Give every trainable parameter of `model` to the optimiser that fits its part.

    Who gets what is decided by `rowsep.optim.model.groups.assign_roles` and printed by `.table()`
    of the result. Members are `head` and, by name, whatever the recipe uses; stacks of experts have
    members of their own, `*_experts`. Every group carries its `"role"`.

    Muon runs with `adjust_lr_fn="match_rms_adamw"` (arXiv 2502.16982), an update of RMS `0.2 lr`
    for any shape: one `lr` then serves it and AdamW, and it does not matter that GPT-2 of
    `transformers` stores its matrices transposed, which the factor `sqrt(rows/columns)` would
    mistake. Fused matrices (queries, keys and values; gate and up) are orthogonalised as they are
    stored, whole.

    Args:
        model: on its final device and dtype, sharded or compiled or not.
        recipe: `"muon"` or `"layerwise"`, see `RECIPES`.
        lr: of everything served by AdamW or Muon.
        weight_decay: decoupled, of everything served by Muon; all else has none.
        head: name (`OPTIMIZERS`) or class of the optimiser of the head.
        head_lr: its learning rate; None for the one in `LRS`, or `lr` with AdamW and Muon.
        num_real_rows: `len(tokenizer)` if the head is padded. None for `model.config.vocab_size`
            where that is smaller than the head, else all rows. Many models count the padding in
            `vocab_size`: see what `.table()` says.
        optimizers: role -> name or class, in place of the recipe's: `{"router": "left_polar"}`.
        options: role -> keyword arguments of its optimiser, e.g. `{"vector": {"lr": 1e-3}}`.
        roles: parameter name -> role, see `assign_roles`.

    Returns:
        A `torch.optim.Optimizer` for any trainer. It steps the head first, whose optimiser refuses
        NaN and infinite gradients: nothing has moved then.

    Raises:
        TypeError: an optimiser that is neither a name nor a class of optimisers, or a learning rate
            or weight decay that is no number.
        ValueError: an unknown recipe, optimiser, role or option, a negative learning rate or weight
            decay, an optimiser without a default learning rate for a role, no trainable parameter,
            or one that `assign_roles` refuses.
    """
    for name, value in (("lr", lr), ("weight_decay", weight_decay)):
        checks.check_size(value, name)
    chosen = _chosen(recipe, head, optimizers or {})
    given = {role: dict(values) for role, values in (options or {}).items()}
    for role in given:
        if role not in chosen:
            raise ValueError(f"options has {role!r}, expected roles: {', '.join(chosen)}")
    if head_lr is not None:
        given.setdefault("head", {}).setdefault("lr", head_lr)
    assignments = assign_roles(model, roles)
    if not assignments:
        raise ValueError(
            f"no parameter of {type(model).__name__} is trainable: each has requires_grad=False"
        )
    notes: list[str] = []

    members: dict[str, list[dict[str, Any]]] = {}
    kinds = sorted(dict.fromkeys(map(_kind, assignments)), key=lambda kind: kind[0] != "head")
    for role, rows, stacked in kinds:
        held = [a for a in assignments if _kind(a) == (role, rows, stacked)]
        name, optimizer = chosen[role]
        group = _defaults(name, optimizer, role, lr, weight_decay)
        accepted = inspect.signature(optimizer).parameters
        if "vocab_dim" in accepted:
            group["vocab_dim"] = rows or 0
        if role == "head":
            real = _real_rows(model, held, num_real_rows, notes)
            if "num_real_rows" in accepted:
                group["num_real_rows"] = real
            elif real is not None:
                notes.append(f"note: {optimizer.__name__} treats padding as any other row")
        unknown = given.get(role, {}).keys() - accepted.keys()
        if unknown:
            raise ValueError(
                f"options[{role!r}] has {sorted(unknown)}, which {optimizer.__name__} does not take"
            )
        group.update(given.get(role, {}))
        if "lr" not in group:
            raise ValueError(
                f"there is no default learning rate for {name} on the role {role!r}; "
                f"pass options={{{role!r}: {{'lr': ...}}}}"
            )
        group["lr"] = group["lr"].clone() if isinstance(group["lr"], Tensor) else group["lr"]
        group.update(role=role, params=[(a.names[0], a.parameter) for a in held])
        split = stacked and issubclass(optimizer, (HeadOptimizer, Muon))
        key = "head" if role == "head" else f"{name}_experts" if split else name
        members.setdefault(key, []).append(group)

    return Combined(
        {key: _built(key, groups, chosen) for key, groups in members.items()},
        [*_notes(model, assignments), *notes],
    )


def _chosen(
    recipe: str, head: str | type[Optimizer], optimizers: Mapping[str, str | type[Optimizer]]
) -> dict[str, tuple[str, type[Optimizer]]]:
    """Name and class by role."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe is {recipe!r}, expected one of {', '.join(RECIPES)}")
    wanted: dict[str, str | type[Optimizer]] = {"head": head, **RECIPES[recipe]}
    for role in optimizers:
        if role not in wanted:
            raise ValueError(f"optimizers has {role!r}, expected roles: {', '.join(wanted)}")
    chosen = {}
    for role, kind in {**wanted, **optimizers}.items():
        if isinstance(kind, str):
            if kind not in OPTIMIZERS:
                raise ValueError(
                    f"the optimiser of {role!r} is {kind!r}, expected a class or one of "
                    f"{', '.join(OPTIMIZERS)}"
                )
            chosen[role] = (kind, OPTIMIZERS[kind])
        elif isinstance(kind, type) and issubclass(kind, Optimizer):
            named = (name for name, known in OPTIMIZERS.items() if known is kind)
            chosen[role] = (next(named, kind.__name__), kind)
        else:
            raise TypeError(
                f"the optimiser of {role!r} is {kind!r}, expected the name or the class of one"
            )
    return chosen


def _kind(a: Assignment) -> tuple[str, int | None, bool]:
    """What the parameters of one group have in common."""
    return a.role, a.rows, a.parameter.ndim == 3


def _defaults(
    name: str, optimizer: type[Optimizer], role: str, lr: float | Tensor, weight_decay: float
) -> dict[str, Any]:
    group: dict[str, Any] = {"weight_decay": 0.0}
    if (name, role) in LRS:
        group["lr"] = LRS[name, role]
    if optimizer is AdamW:
        group.update(lr=lr, betas=(0.9, 0.95))
    if optimizer is Muon:
        group.update(lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
    if optimizer is HybridPolarGradM:
        group["order"] = "row_then_polar"  # as in the published runs, to which the rates belong
    if "center" in inspect.signature(optimizer).parameters:
        group["center"] = role in ("head", "router")
    return group


def _built(
    key: str, groups: list[dict[str, Any]], chosen: dict[str, tuple[str, type[Optimizer]]]
) -> Optimizer:
    optimizer = chosen[groups[0]["role"]][1]
    if key.endswith("_experts"):
        return Stacked(groups, optimizer, lr=groups[0]["lr"])
    return optimizer(groups, lr=groups[0]["lr"])  # type: ignore[call-arg]


def _real_rows(
    model: nn.Module, heads: list[Assignment], given: int | None, notes: list[str]
) -> int | None:
    """How many rows of the head are tokens, None for all of them, and a note that says so."""
    count = min(a.parameter.shape[a.rows or 0] for a in heads)
    if given is not None:
        notes.append(f"head: {given} of {count} rows are tokens (num_real_rows)")
        return given
    configs = [getattr(module, "config", None) for module in model.modules()]
    sizes = [getattr(config, "vocab_size", None) for config in configs if config is not None]
    size = next((size for size in sizes if isinstance(size, int)), count)
    if size < count:
        notes.append(f"head: {size} of {count} rows are tokens (vocab_size of the model's config)")
        return size
    notes.append(f"head: all {count} rows are taken for tokens; num_real_rows= says otherwise")
    return None


def _notes(model: nn.Module, assignments: list[Assignment]) -> list[str]:
    notes = []
    for a in assignments:
        if a.role == "head" and a.rows == 1:
            notes.append(f"head: {a.names[0]} is stored transposed, one column per token")
        if len(a.names) > 1:
            notes.append(
                f"tied: {' = '.join(a.names)}, one parameter with one owner, the optimiser of "
                f"{a.role}"
            )
    frozen = frozen_names(model)
    if frozen:
        notes.append(f"frozen, left out: {', '.join(frozen)}")
    if not any(a.role == "head" for a in assignments):
        notes.append("head: frozen")
    return notes
