"""The machine that a measurement was made on, and the memory that a task takes of it."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def cpu() -> str:
    """The processor's name where the system tells it, else what Python knows of it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def with_peak(task: Callable[[], Result]) -> tuple[Result, float]:
    """Run a task; its result, and the MiB of memory it held at most above what was held before.

    Resident memory as Linux counts it. Set `MALLOC_MMAP_THRESHOLD_=1048576` before the start of
    the process, or memory that was freed before may be used again unseen.
    """
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is held now
    before = _resident("VmRSS")
    result = task()
    return result, _resident("VmHWM") - before


def _resident(field: str) -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024
