"""Packages that only some uses need: `pip install rowsep` brings torch and numpy alone.

`rowsep[exact]` is for small clouds, proofs and conic solvers, `rowsep[codes]` for explicit
configurations, `rowsep[cli]` for the command and the files it reads, `rowsep[all]` for everything.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is not installed; the message is one line."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say in one line which extra brings a package that is imported inside and missing.

    Raises:
        MissingExtraError: with the name of the package and the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{error.name} is not installed: pip install 'rowsep[{name}]'", name=error.name
        ) from None
