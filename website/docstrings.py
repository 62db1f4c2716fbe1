"""The extension of Griffe that typesets the formulas of docstrings."""

from typing import Any

import griffe

from website.ascii_formulas import typeset


class Formulas(griffe.Extension):
    """Put the formulas of every docstring between dollars before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Typeset one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = typeset(obj.docstring.value)
