"""The head optimisers by name: those of `optim`, of torch, and the ablation's."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.optim import Optimizer

from experiments.lm_head import variants
from rowsep import optim

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "AdamW": torch.optim.AdamW,
    "NAdam": torch.optim.NAdam,
    "Muon": torch.optim.Muon,
    "NorMuon": partial(optim.NorMuon, center=False),  # as published
    "Signum": optim.Signum,
    "RowNormM": optim.RowNormM,
    "RightPolarGradM": optim.RightPolarGradM,
    "HybridPolarGradM": optim.HybridPolarGradM,
    "RowSeparation": optim.RowSeparation,
    "RowwiseAdam": optim.RowwiseAdam,
    "SteepestDescent": optim.SteepestDescent,
    "RowNormDiameter": variants.RowNormDiameter,
    "RowNormCode": variants.RowNormCode,
    "CodeStart": variants.CodeStart,
    "HeavyRows": variants.HeavyRows,
    "WeighedRows": variants.WeighedRows,
    "SignalRows": variants.SignalRows,
    "HiddenMetric": variants.HiddenMetric,
    "SeparatedRowwiseAdam": variants.SeparatedRowwiseAdam,
    "CutRowwiseAdam": variants.CutRowwiseAdam,
}


def direction(optimizer: Optimizer, p: Tensor) -> Tensor:
    """Return the average of gradients that the last step of an optimiser followed.

    The momentum buffer, with the last gradient ahead of it where the group asks for Nesterov's;
    AdamW's first moment.

    Args:
        optimizer: one of `OPTIMIZERS`, after a step.
        p: its parameter, with its gradient still there.
    """
    group, state = optimizer.param_groups[0], optimizer.state[p]
    if "exp_avg" in state:
        return state["exp_avg"]
    buffer = state["momentum_buffer"]
    if not group.get("nesterov", False):
        return buffer
    assert p.grad is not None
    return p.grad.to(buffer.dtype).lerp(buffer, group["momentum"])
