"""The head optimisers by name: those of the small GPTs, and those of this experiment."""

from collections.abc import Callable

from torch.optim import Optimizer

from experiments.frozen_head import variants
from experiments.lm_head import heads

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = heads.OPTIMIZERS | {
    "AveragedGram": variants.AveragedGram,
    "HiddenCovariance": variants.HiddenCovariance,
    "HiddenRowNorm": variants.HiddenRowNorm,
}
