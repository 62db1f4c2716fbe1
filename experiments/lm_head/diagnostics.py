"""What is measured of a head in training, on a few validation windows and between two steps.

All figures are plain floats or lists, so that they go into a JSON file. H is what the head reads,
shape (n, d); W the head, shape (V, d); logits are H W^T; natural logarithms throughout.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rowsep.packing import cloud

QUANTILES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
BANDS = (0.01, 0.1, 0.5, 1.0)
"""Tokens by falling frequency: the most frequent 1 % of the vocabulary, up to 10 %, 50 %, all."""


class BoundViolatedError(RuntimeError):
    """A step moved a log-odds farther than `lr * D * radius`: mathematics or code is wrong."""


def update_figures(change: Tensor, followed: Tensor) -> dict[str, float]:
    """Return D, delta and rho of a step, and its agreement with the momentum that it followed.

    Args:
        change: new weights less old ones, shape (V, d), float64; a step down the gradient.
        followed: average of gradients, shape (V, d).
    """
    found = cloud.ratio(change)
    update = -change
    return {
        "diameter": found.diameter,
        "delta": found.delta,
        "rho": found.value,
        "alignment": cloud.alignment(followed.double(), update, diameter=found.diameter),
        "cosine": cloud.cosine(followed.double(), update),
    }


def log_odds_figures(
    change: Tensor, hidden: Tensor, *, promised: float, radius: float, largest_row: float
) -> dict[str, float]:
    """Return the largest change of a log-odds that a step caused, and check it against its bound.

        max_h max_{i,j} <w'_i - w_i - w'_j + w_j, h>  <=  promised * radius

    Args:
        change: w' - w, shape (V, d), float64, exact.
        hidden: hidden states, shape (n, d).
        promised: diameter of the step, `lr * D`.
        radius: that no hidden state's norm exceeds.
        largest_row: largest row norm of the weights, whose float32 rounding the step includes.

    Raises:
        BoundViolatedError: the change exceeds the bound by more than that rounding.
    """
    logits = hidden.double() @ change.T
    realised = (logits.amax(dim=1) - logits.amin(dim=1)).max().item()
    # both rows are rounded when they are stored; the norm before the head rounds too, by 1e-5 at
    # the very most
    rounding = torch.finfo(torch.float32).eps * (largest_row + promised)
    bound = promised * radius
    if not realised <= bound * (1 + 1e-5) + rounding * radius:
        raise BoundViolatedError(
            f"a step of diameter {promised:.6g} changed a log-odds by {realised:.6g}, more than "
            f"{bound:.6g} at radius {radius:.6g}"
        )
    return {"log_odds": realised, "log_odds_bound": bound}


def logit_figures(logits: Tensor) -> dict[str, float]:
    """Return the RMS of the logits, raw and with each position's mean taken out, and more.

    Args:
        logits: shape (n, V).
    """
    logits = logits.double()
    centred = logits - logits.mean(dim=1, keepdim=True)
    return {
        "logit_rms": logits.square().mean().sqrt().item(),
        "logit_rms_centred": centred.square().mean().sqrt().item(),
        "logit_max": logits.abs().max().item(),
        "log_sum_exp": logits.logsumexp(dim=1).mean().item(),
        "entropy": torch.distributions.Categorical(logits=logits).entropy().mean().item(),
    }


def backward_figures(logits: Tensor, targets: Tensor, head: Tensor) -> dict[str, float]:
    """Return how much of the loss gradient gets through the head, and its rank behind it.

    With G = softmax(logits) - onehot(targets), shape (n, V), the layers below see G W. `through` is
    ||G Q||^2 / ||G||^2, Q a basis of the column space of W: what is left of the gradient when the
    d columns of W are all that it can be expressed in. `backward_rank` is the effective rank of
    G W, exp of the entropy of its normalised singular values (Roy and Vetterli, 2007).

    Args:
        logits: shape (n, V).
        targets: int64, shape (n,).
        head: W, shape (V, d).
    """
    gradient = logits.double().softmax(dim=1)
    gradient[torch.arange(len(targets)), targets] -= 1
    W = head.double()
    basis = torch.linalg.qr(W).Q
    through = (gradient @ basis).square().sum() / gradient.square().sum()
    return {
        "through": through.item(),
        "backward_rank": effective_rank(torch.linalg.svdvals(gradient @ W)),
    }


def effective_rank(singular_values: Tensor) -> float:
    """Return exp of the entropy of the singular values as shares of their sum; 0 if all are 0."""
    total = singular_values.sum()
    if total == 0:
        return 0.0
    return torch.special.entr(singular_values / total).sum().exp().item()


def spectrum_figures(matrix: Tensor) -> dict[str, Any]:
    """Return effective rank and singular values at ranks 1, 2, 4, 8, ..., in float64.

    Args:
        matrix: shape (V, d), V >= d; its Gram matrix is decomposed, so values below 1e-8 of the
            largest are rounding.
    """
    exact = matrix.double()
    squares = torch.linalg.eigvalsh(exact.T @ exact).flip(0).clamp_min(0)
    values = squares.sqrt()
    ranks = [2**k - 1 for k in range(math.floor(math.log2(len(values))) + 1)]
    return {"rank": effective_rank(values), "singular_values": values[ranks].tolist()}


def row_norm_figures(head: Tensor) -> list[float]:
    """Return the `QUANTILES` of the norms of the rows of a head."""
    norms = head.double().norm(dim=1)
    return norms.quantile(
        torch.tensor(QUANTILES, dtype=torch.float64, device=norms.device)
    ).tolist()


def frequency_bands(counts: Tensor) -> Tensor:
    """Return the band of `BANDS` that each token belongs to by its frequency, int64, shape (V,).

    Args:
        counts: occurrences in the training text, shape (V,); ties go by token id.
    """
    rank = torch.empty_like(counts)
    rank[counts.argsort(descending=True, stable=True)] = torch.arange(len(counts))
    ends = (torch.tensor(BANDS, dtype=torch.float64) * len(counts)).ceil()
    return torch.bucketize(rank, ends.long(), right=True)


def band_losses(losses: Tensor, targets: Tensor, bands: Tensor) -> tuple[list[float], list[int]]:
    """Return the sum of the losses and the number of targets in each band.

    Args:
        losses: nats, shape (n,).
        targets: int64, shape (n,).
        bands: band of each token, shape (V,).
    """
    band = bands[targets]
    sums = torch.zeros(len(BANDS), dtype=torch.float64, device=losses.device)
    sums.index_add_(0, band, losses.double())
    return sums.tolist(), torch.bincount(band, minlength=len(BANDS)).tolist()


def token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of every position, nats, float32, shape (n,)."""
    return F.cross_entropy(logits.float(), targets, reduction="none")
