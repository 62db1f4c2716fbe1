"""Row separation for language-model heads: the solver, the optimisers, and what they are judged by.

`rowsep.solve` turns a momentum into an update of bounded row diameter and large row separation,
`rowsep.measure` gives the figures of any update; all else is in `rowsep.packing` and
`rowsep.optim`. Nothing is loaded before it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import optim, packing
    from .packing import measure, solve

    __version__: str

__all__ = ["__version__", "measure", "optim", "packing", "solve"]


def __getattr__(name: str) -> Any:
    if name in ("optim", "packing"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("rowsep")
    if name in ("measure", "solve"):
        return getattr(importlib.import_module(f"{__name__}.packing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
