"""The machine that a measurement was made on."""

import platform
from pathlib import Path


def cpu() -> str:
    """The processor's name where the system tells it, else what Python knows of it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
