"""The optimisers, each with the options that change what it computes."""

import torch
from torch import Tensor

from rowsep import optim

ALL = {
    "row norm": (optim.RowNormM, {}),
    "row norm, uncentred": (optim.RowNormM, {"center": False}),
    "right polar": (optim.RightPolarGradM, {}),
    "right polar, alpha 0": (optim.RightPolarGradM, {"alpha": 0.0, "nesterov": True}),
    "left polar": (optim.LeftPolarGradM, {}),
    "polar then row": (optim.HybridPolarGradM, {}),
    "row then polar": (optim.HybridPolarGradM, {"order": "row_then_polar"}),
    "rowwise adam": (optim.RowwiseAdam, {}),
    "rowwise adam, no polar": (optim.RowwiseAdam, {"polar": False, "nesterov": False}),
    "rowwise adam, averaged": (optim.RowwiseAdam, {"gram": "averaged"}),
    "normuon": (optim.NorMuon, {}),
    "normuon, uncentred": (optim.NorMuon, {"center": False, "nesterov": False}),
    "sign": (optim.Signum, {}),
    "steepest": (optim.SteepestDescent, {}),
    "steepest, warm": (optim.SteepestDescent, {"warm_start": True, "passes": 2}),
    "separation": (optim.RowSeparation, {}),
    "separation, warm": (optim.RowSeparation, {"warm_start": True, "passes": 2}),
    "separation, cosine": (optim.RowSeparation, {"measure": "cosine", "alignment": 0.5}),
    "separation, right polar": (optim.RowSeparation, {"precondition": "right_polar"}),
}
STATEFUL = ("separation, warm", "steepest, warm", "rowwise adam, averaged")
CLASSES = {name: ALL[name] for name in ALL if "," not in name}
WITH_STATE = CLASSES | {name: ALL[name] for name in STATEFUL}


def stepped(
    cls, weight: Tensor, grads: list[Tensor], **options
) -> tuple[torch.nn.Parameter, object]:
    """The parameter after a step for each gradient, and its optimiser."""
    p = torch.nn.Parameter(weight.clone())
    optimiser = cls([p], **options)
    for grad in grads:
        p.grad = grad.clone()
        optimiser.step()
    return p, optimiser
