"""The record of a stage, and running it so that nothing that goes wrong in it gets out."""

import contextlib
import datetime
import platform
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from experiments.device_check.inputs import Sizes
from rowsep.packing.cli.report import rowsep_version, strict_json
from rowsep.packing.io import replacing


@dataclass
class Stage:
    """The record of one stage while it runs."""

    name: str
    device: torch.device
    sizes: Sizes
    console: Console
    deadline: float
    """On the clock of `time.monotonic`."""
    checks: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def at_most(self, name: str, value: float, limit: float) -> None:
        """Record that `value` has to be at most `limit`; NaN is not."""
        passed = bool(value <= limit)
        self.checks.append({"name": name, "value": value, "limit": limit, "passed": passed})
        if not passed:
            self.console.print(f"  [red]failed[/red] {name}: {value:.4g}, at most {limit:.4g}")

    def holds(self, name: str, passed: bool) -> None:
        """Record a condition."""
        self.at_most(f"{name} (0 is yes)", 0.0 if passed else 1.0, 0.0)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in the block after some seconds, where the system can."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() != threading.main_thread():
        yield
        return

    def overrun(*_: object) -> None:
        raise TimeoutError(f"the stage overran its budget of {seconds:g} s")

    before = signal.signal(signal.SIGALRM, overrun)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_stage(stage: Stage, budget: float, work: Callable[[Stage], None]) -> dict[str, Any]:
    """Run one stage and return its record; nothing that goes wrong in it gets out."""
    began = time.monotonic()
    error = None
    try:
        with within(budget):
            work(stage)
            if stage.device.type == "cuda":
                torch.cuda.synchronize(stage.device)
    except Exception as caught:
        error = "".join(traceback.format_exception(caught, limit=-6))
        stage.console.print(f"  [red]error[/red] {type(caught).__name__}: {caught}", markup=True)
    failed = [check["name"] for check in stage.checks if not check["passed"]]
    status = "error" if error else "failed" if failed else "passed"
    return {
        "status": status,
        "seconds": time.monotonic() - began,
        "budget_seconds": budget,
        "error": error,
        "failed": failed,
        "checks": stage.checks,
        "figures": stage.figures,
    }


def facts(device: torch.device) -> dict[str, Any]:
    """What the figures depend on."""
    about: dict[str, Any] = {"type": device.type, "name": platform.processor() or "cpu"}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        about |= {
            "name": properties.name,
            "capability": [properties.major, properties.minor],
            "memory_bytes": properties.total_memory,
        }
    return {
        "device": about,
        "versions": {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "rowsep": rowsep_version(),
        },
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write(record: dict[str, Any], path: Path) -> None:
    """Replace the JSON in one step; what is not finite is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(strict_json(record).encode() + b"\n")
