"""Hilbert's projective distance between distributions over the vocabulary."""

import math
from typing import Literal

from torch import Tensor

from . import checks


def hilbert_distance(
    p: Tensor, q: Tensor, *, kind: Literal["probabilities", "logits"] = "probabilities"
) -> Tensor:
    """Return `max_i log(p_i/q_i) - min_i log(p_i/q_i)`, the largest change of any log-odds.

    Hilbert's projective metric: scaling `p` or `q` by a positive number changes nothing, so
    neither needs to be normalised.

    Args:
        p: shape (..., V), floating dtype; the last axis is the vocabulary.
        q: the shape and device of `p`.
        kind: "probabilities", entries >= 0; or "logits", their logarithms, where -inf is allowed.

    Returns:
        float64, shape (...). A token of probability zero in both is left out; zero in one only
        gives `inf`.

    Raises:
        TypeError: not dense real tensors.
        ValueError: shapes differ, no vocabulary, NaN or +inf, a negative probability, a
            distribution that is zero everywhere, or an unknown kind.
    """
    if kind not in ("probabilities", "logits"):
        raise ValueError(f"kind is {kind!r}, expected 'probabilities' or 'logits'")
    log_p, log_q = _logarithms(p, "p", kind), _logarithms(q, "q", kind)
    checks.check_same_shape(p, q, "p", "q")
    left_out = log_p.isneginf() & log_q.isneginf()
    change = log_p - log_q
    highest = change.masked_fill(left_out, -math.inf).amax(dim=-1)
    lowest = change.masked_fill(left_out, math.inf).amin(dim=-1)
    return highest - lowest


def _logarithms(x: Tensor, name: str, kind: str) -> Tensor:
    checks.check_real(x, name)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}: the last axis holds the tokens")
    x = x.double()
    refused = (x.isnan() | x.isposinf()) if kind == "logits" else ~(x.isfinite() & (x >= 0.0))
    if refused.any():
        first = tuple(refused.nonzero()[0].tolist())
        raise ValueError(
            f"{name} has {x[first].item()} at index {first}, which is none of the {kind}; "
            f"{int(refused.sum())} of {x.numel()} entries are refused"
        )
    logarithms = x if kind == "logits" else x.log()
    if logarithms.isneginf().all(dim=-1).any():
        raise ValueError(f"{name} gives every token probability zero; it needs one above zero")
    return logarithms
