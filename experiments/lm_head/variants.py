"""Head optimisers of the ablation: one part of `RowSeparation` taken away, replaced or added.

None is meant for use elsewhere.
"""

from typing import Any

import torch
from torch import Tensor, nn

from rowsep import optim
from rowsep.optim.updates import row_norm, row_separation
from rowsep.packing import checks, cloud


class RowNormDiameter(optim.RowNormM):
    """Row normalisation brought to diameter one: the bound on the step without the separation."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        return at_diameter_one(super()._update(momentum, group, state))


class RowNormCode(optim.HeadOptimizer):
    """Row normalisation blended with a fixed random code: separation that the data did not choose.

    `u = n + t c` at diameter one, with n the row-normalised momentum, c unit rows drawn once from
    `seed`, and t the largest for which the alignment is at least `alignment`, by bisection.
    """

    def __init__(self, params: Any, lr: float, *, alignment: float, seed: int = 0):
        """Take the floor on the alignment and the seed of the code."""
        super().__init__(params, _options(lr, alignment=alignment, seed=seed))

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        del state
        code = random_code(momentum, group["seed"])
        rows = row_norm(momentum)
        low, high = 0.0, 1.0
        for _ in range(6):
            t = (low + high) / 2
            agreed = cloud.alignment(momentum, rows + t * code)
            low, high = (t, high) if agreed >= group["alignment"] else (low, t)
        return at_diameter_one(rows + low * code)


class CodeStart(optim.RowSeparation):
    """Row separation that starts every step from one random code, not from the momentum."""

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        state["separated"] = random_code(momentum, group["seed"])
        return super()._update(momentum, group | {"warm_start": True}, state)


class HeavyRows(optim.HeadOptimizer):
    """Row separation of the rows with a signal; the others, such as unseen tokens, stay put.

    A row takes part if its momentum, centred, has at least `threshold` times the mean row norm.
    """

    def __init__(self, params: Any, lr: float, *, threshold: float, alignment: float, passes: int):
        """Take the threshold, and floor and passes of `RowSeparation`."""
        checks.check_size(threshold, "threshold")
        options = _options(lr, threshold=threshold, alignment=alignment, passes=passes)
        super().__init__(params, options)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        norms = (momentum - momentum.mean(dim=0)).norm(dim=1)
        mask = norms >= group["threshold"] * norms.mean()
        return _separated(momentum, group, state, mask)


class WeighedRows(optim.HeadOptimizer):
    """Row separation whose floor counts rows by a power of their norm: `a_i ||a_i||^(p-1)`.

    `RowSeparation` is p = 1, in which a row counts by its norm. With p = 0 rare tokens count like
    frequent ones and the floor is about the mean cosine of the rows; with p = 2 heavy rows follow
    the momentum and the rest is left to the separation.
    """

    def __init__(self, params: Any, lr: float, *, power: float, alignment: float, passes: int):
        """Take p, and floor and passes of `RowSeparation`."""
        checks.check_size(power, "power")
        super().__init__(params, _options(lr, power=power, alignment=alignment, passes=passes))

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        rows = momentum - momentum.mean(dim=0)
        norms = rows.norm(dim=1, keepdim=True)
        scaled = (norms / norms.max().clamp_min(1e-30)).clamp_min(1e-12)
        return _separated(rows * scaled ** (group["power"] - 1), group, state)


class SignalRows(optim.HeadOptimizer):
    """Row separation whose floor counts rows by their signal, as far as it exceeds their noise.

    `m_i` is scaled by its `signal_share` where that is positive, as by James and Stein: rows of
    noise are left to the separation.
    """

    def __init__(self, params: Any, lr: float, *, alignment: float, passes: int):
        """Take floor and passes of `RowSeparation`."""
        super().__init__(params, _options(lr, alignment=alignment, passes=passes))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return super()._new_state(p, group) | {"squares": torch.zeros(len(p), 1).to(p)}

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        squares = (grad - grad.mean(dim=0)).square().sum(dim=1, keepdim=True)
        self.state[p]["squares"].lerp_(squares, 1 - group["momentum"])
        super()._step_parameter(p, grad, group)

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        rows = momentum - momentum.mean(dim=0)
        share = signal_share(rows, state["squares"], group["momentum"])
        return _separated(rows * share.clamp_min(1e-6), group, state)


class HiddenMetric(optim.HeadOptimizer):
    """Row separation in the metric of the hidden states: pairs count by the log-odds they move.

    With `C` the average of `h h^T` over what the head reads, `<s_i - s_j, h>` has mean square
    `||C^(1/2) (s_i - s_j)||^2`. So `T = S C^(1/2)` is what is separated, under the momentum
    `A C^(-1/2)` since `<A, S> = <A C^(-1/2), T>`, and `S = T C^(-1/2)` is brought to diameter one.
    `damping` times the mean of its eigenvalues is added to C.
    """

    def __init__(self, params: Any, lr: float, *, damping: float, alignment: float, passes: int):
        """Take the damping, and floor and passes of `RowSeparation`."""
        checks.check_size(damping, "damping")
        super().__init__(params, _options(lr, damping=damping, alignment=alignment, passes=passes))

    def watch(self, head: nn.Linear) -> None:
        """Average `h h^T` over every training batch that the head reads from now on."""

        def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if torch.is_grad_enabled():
                hidden = inputs[0].detach().flatten(0, -2)
                group, state = self.param_groups[0], self.state[head.weight]
                covariance = (hidden.T @ hidden / len(hidden)).to(state["covariance"])
                state["covariance"].lerp_(covariance, 1 - group["momentum"])

        head.register_forward_pre_hook(note)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return super()._new_state(p, group) | {
            "covariance": torch.zeros(p.shape[1], p.shape[1]).to(p)
        }

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        values, vectors = torch.linalg.eigh(state["covariance"].double())
        values = values.clamp_min(0) + group["damping"] * values.mean()
        root = (vectors * values.rsqrt() @ vectors.T).to(momentum)
        return at_diameter_one(_separated(momentum @ root, group, state) @ root)


class SeparatedRowwiseAdam(optim.RowwiseAdam):
    """Rowwise Adam, then row separation down to a cosine of `floor` with its update."""

    def __init__(self, params: Any, lr: float, *, floor: float, momentum: float, passes: int = 4):
        """Take the decay of the average, and the floor and the passes of `rowsep.packing.solve`."""
        checks.check_floor(floor, "floor")
        super().__init__(params, lr, momentum=momentum)
        for options in (self.defaults, *self.param_groups):
            options |= {"floor": floor, "passes": passes}

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        update = super()._update(momentum, group, state)
        step = state["step"] = state.get("step", -1) + 1
        separated, _ = row_separation(
            update,
            alignment=group["floor"],
            measure="cosine",
            passes=group["passes"],
            seed=step,
        )
        self._report = _report(momentum, separated)
        return separated


class CutRowwiseAdam(optim.RowwiseAdam):
    """Rowwise Adam with no row longer than `cap` times their root mean square before the cut.

    A few long rows decide the diameter of rowwise Adam's update; without them the rest moves
    farther at the same diameter.
    """

    def __init__(self, params: Any, lr: float, *, cap: float, momentum: float):
        """Take the cap and the decay of the average."""
        checks.check_size(cap, "cap")
        super().__init__(params, lr, momentum=momentum)
        for options in (self.defaults, *self.param_groups):
            options |= {"cap": cap}

    def _update(self, momentum: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        update = super()._update(momentum, group, state)
        lengths = update.norm(dim=1, keepdim=True)
        most = group["cap"] * lengths.square().mean().sqrt()
        cut = at_diameter_one(update * (most / lengths.clamp_min(1e-30)).clamp_max(1.0))
        self._report = _report(momentum, cut)
        return cut


def _report(momentum: Tensor, update: Tensor) -> optim.BoundedReport:
    diameter = cloud.diameter(update).value
    return optim.BoundedReport(
        diameter=diameter,
        alignment=cloud.alignment(momentum, update, diameter=diameter),
        cosine=cloud.cosine(momentum, update),
        log_odds=None,
    )


def _options(lr: float, **more: Any) -> dict[str, Any]:
    """The options that all of them share, as `separation` in the presets has them."""
    shared = dict(
        momentum=0.95, nesterov=False, weight_decay=0.0, vocab_dim=0, num_real_rows=None, lr=lr
    )
    return shared | more


def _separated(
    momentum: Tensor, group: dict[str, Any], state: dict[str, Any], mask: Tensor | None = None
) -> Tensor:
    step = state.get("step", 0)
    state["step"] = step + 1
    return row_separation(
        momentum, alignment=group["alignment"], passes=group["passes"], mask=mask, seed=step
    )[0]


def signal_share(rows: Tensor, squares: Tensor, beta: float) -> Tensor:
    """Return the estimated share of signal in `||m_i||^2`, shape (V, 1), at most 1.

    With `v_i` the average of the squared norms of the gradients of row i that the momentum is of
    the gradients, noise that is independent from step to step has
    `E ||m_i||^2 = v_i (1 - beta)/(1 + beta)`; hence `1 - v_i (1 - beta)/((1 + beta) ||m_i||^2)`.

    Args:
        rows: `m_i`, shape (V, d).
        squares: `v_i`, shape (V, 1).
        beta: decay of both averages.
    """
    found = rows.square().sum(dim=1, keepdim=True).clamp_min(1e-30)
    return 1 - squares * (1 - beta) / ((1 + beta) * found)


def at_diameter_one(update: Tensor) -> Tensor:
    """Return the update divided by its diameter; zero stays zero."""
    diameter = cloud.diameter(update).value
    return update / diameter if diameter > 0 else update


def random_code(like: Tensor, seed: int) -> Tensor:
    """Return unit rows in random directions, of the shape and dtype of a matrix."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(like.shape, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1).to(like)
