"""The fixtures of the packing tests serve here too."""

from tests.packing.conftest import generator, poisoned_empty

__all__ = ["generator", "poisoned_empty"]
