"""The optimisers of a head whose steps are timed, by name, from one list of parameters."""

from collections.abc import Callable

import torch
from torch.nn import Parameter

from rowsep import optim

OPTIMISERS: dict[str, Callable[[list[Parameter]], torch.optim.Optimizer]] = {
    "AdamW (torch)": torch.optim.AdamW,
    "Muon (torch)": torch.optim.Muon,
    "Signum": optim.Signum,
    "RowNormM": optim.RowNormM,
    "RightPolarGradM": optim.RightPolarGradM,
    "HybridPolarGradM": optim.HybridPolarGradM,
    "HybridPolarGradM, row_then_polar": lambda p: optim.HybridPolarGradM(p, order="row_then_polar"),
    "RowwiseAdam": optim.RowwiseAdam,
    "SteepestDescent, 8 passes (default)": optim.SteepestDescent,
    "RowSeparation, 4 passes (default)": optim.RowSeparation,
    "RowSeparation, 2 passes": lambda p: optim.RowSeparation(p, passes=2),
    "RowSeparation, 1 pass": lambda p: optim.RowSeparation(p, passes=1),
}
