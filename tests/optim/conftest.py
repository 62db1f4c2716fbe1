"""The fixtures of the packing tests serve here too."""

from tests.packing.conftest import poisoned_empty

__all__ = ["poisoned_empty"]
