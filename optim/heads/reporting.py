"""Optimisers that tell what their last step did, from numbers that the step has computed anyway."""

from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

from .base import HeadOptimizer

Report = TypeVar("Report", bound=NamedTuple)


class ReportingOptimizer(HeadOptimizer, Generic[Report]):
    """A `HeadOptimizer` whose `_update` leaves a report in `self._report`."""

    _report: Report

    def __init__(self, params: Any, defaults: dict[str, Any]):
        """Check the options in `defaults`, then the parameters."""
        self._reports: dict[Tensor, Report] = {}
        super().__init__(params, defaults)

    @property
    def last_step(self) -> dict[str, Report]:
        """What the last step did, by the parameter's name, or "group.index" without names.

        Numbers that the step has computed anyway: reading them costs nothing. Empty before the
        first step and after loading, copying or unpickling.
        """
        reports = {}
        for g, group in enumerate(self.param_groups):
            for k, p in enumerate(group["params"]):
                if p in self._reports:
                    name = group["param_names"][k] if "param_names" in group else f"{g}.{k}"
                    reports[name] = self._reports[p]
        return reports

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; the reports are not part of the state."""
        self._reports = {}
        super().__setstate__(state)

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        self._reports.pop(p, None)
        super()._step_parameter(p, grad, group)
        self._reports[p] = self._report


def log_odds_bound(group: dict[str, Any], diameter: float) -> float | None:
    """Return `lr * diameter * radius`, None without a `radius` among the options of the group."""
    radius = group["radius"]
    return None if radius is None else float(group["lr"]) * diameter * float(radius)
