"""Row-scaled momenta, whitened by an average over steps in place of each step's polar factor.

    r_i^2 <- beta2 r_i^2 + (1 - beta2) ||g_i - mean(g)||^2          one number a token
    W <- W - lr S / D(S),   S = (a_i / r_i) M^(-1/2),   A the centred momentum

with M, of shape (d, d), an average over steps: of the right Gram matrix of the row-scaled
gradients, one-sided Shampoo (Gupta, Koren and Singer, arXiv 1802.09568) behind the row scaling; or
of h h^T over what the head reads, the input half of K-FAC (Martens and Grosse, arXiv 1503.05671).
"""

from typing import Any

import torch
from torch import Tensor

from experiments.lm_head.variants import at_diameter_one
from rowsep import optim
from rowsep.optim.updates.row_norm import row_norm
from rowsep.optim.updates.rowwise_adam import followed_row_rms
from rowsep.packing import checks

EVERY = 10
"""Steps between two roots of an average, which changes slowly; each of the first has its own."""


class Whitened(optim.HeadOptimizer):
    """What the rules share: the average M and its root; a subclass says what it averages."""

    def __init__(
        self,
        params: Any,
        lr: float,
        *,
        momentum: float = 0.9,
        nesterov: bool = True,
        beta2: float = 0.999,
        decay: float = 0.99,
        damping: float = 1e-3,
    ):
        """Take the decays of momentum, row lengths and M; `damping` is by the mean eigenvalue."""
        checks.check_size(damping, "damping")
        options = dict(
            lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=0.0, vocab_dim=0
        ) | dict(num_real_rows=None, beta2=beta2, decay=decay, damping=damping)
        super().__init__(params, options)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return super()._new_state(p, group) | {
            "row_rms": torch.zeros(len(p)).to(p),
            "average": torch.zeros(p.shape[1], p.shape[1]).to(p),
            "root": torch.eye(p.shape[1]).to(p),
            "step": 0,
        }

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        state["row_rms"] = followed_row_rms(state["row_rms"], grad, group["beta2"])
        self._follow(state, grad, group)
        if state["step"] < EVERY or state["step"] % EVERY == 0:
            state["root"] = inverse_root(state["average"], group["damping"])
        state["step"] += 1
        super()._step_parameter(p, grad, group)

    def _follow(self, state: dict[str, Any], grad: Tensor, group: dict[str, Any]) -> None:
        """Bring the average up to date."""
        raise NotImplementedError

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        rows = row_scaled(momentum, state["row_rms"]) @ state["root"]
        return at_diameter_one(rows - rows.mean(dim=0))


class AveragedGram(Whitened):
    """M the average of `X^T X`, X the row-scaled centred gradient."""

    def _follow(self, state: dict[str, Any], grad: Tensor, group: dict[str, Any]) -> None:
        rows = row_scaled(grad, state["row_rms"])
        size = rows.norm().clamp_min(1e-30)  # row lengths are relative, and so is the average
        state["average"].lerp_((rows.T / size) @ (rows / size), 1 - group["decay"])


class HiddenCovariance(Whitened):
    """M the average of `h h^T` over the batches given to `observe`."""

    def observe(self, p: Tensor, hidden: Tensor) -> None:
        """Take what the head reads in the coming step, shape (n, d)."""
        group, average = self.param_groups[0], self.state[p]["average"]
        rows = hidden.to(average)
        average.lerp_(rows.T @ rows / len(rows), 1 - group["decay"])

    def _follow(self, state: dict[str, Any], grad: Tensor, group: dict[str, Any]) -> None:
        del state, grad, group  # `observe` has


class HiddenRowNorm(HiddenCovariance):
    """Row normalisation in the metric of the hidden states: `row_norm(A M^(-1/2)) M^(-1/2)`."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del group
        return at_diameter_one(row_norm(momentum @ state["root"]) @ state["root"])


def row_scaled(matrix: Tensor, row_rms: Tensor) -> Tensor:
    """Return the centred rows over their lengths relative to the largest, zero for length zero."""
    relative = (row_rms / row_rms.max().clamp_min(1e-30))[:, None].to(matrix)
    rows = matrix / matrix.abs().max().clamp_min(1e-30)  # gradients of 1e-20 have no squares
    return torch.where(relative > 0, (rows - rows.mean(dim=0)) / relative, 0.0)


def inverse_root(average: Tensor, damping: float) -> Tensor:
    """Return `(M + damping mean(eigenvalues) I)^(-1/2)`, the identity for M = 0."""
    values, vectors = torch.linalg.eigh(average.double())
    mean = values.mean()
    if mean <= 0:
        return torch.eye(len(average)).to(average)
    values = values.clamp_min(0) / mean + damping
    return ((vectors * values.rsqrt()) @ vectors.T).to(average)
