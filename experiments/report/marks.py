"""Colours, symbols and dashes; a method looks the same in every figure of a page.

Each colour has a contrast of at least 3 to 1 to both backgrounds (WCAG 2.2, 1.4.11).
"""

from typing import NamedTuple

COLOURS = (
    "#2f7de1",
    "#d9730d",
    "#1f9d57",
    "#db4250",
    "#a85fd6",
    "#1b98a6",
    "#a0714f",
    "#d45fa8",
)
SYMBOLS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "cross": "✚",
    "x": "✖\ufe0e",  # as text, not as an emoji
    "star": "★",
    "triangle-down": "▼",
}
"""Of plotly, with a character that looks like it."""
DASHES = ("solid", "dash", "longdash", "dashdot", "longdashdot")
SHOWN_FIRST = len(COLOURS)
"""How many marks have nothing in common, so that as many lines can be told apart at a glance."""


class Mark(NamedTuple):
    """How one line or point set is drawn."""

    colour: str
    symbol: str
    dash: str

    @property
    def character(self) -> str:
        """What looks like the symbol in a text."""
        return SYMBOLS[self.symbol]


def mark(index: int) -> Mark:
    """Return the mark of a place in a list.

    The first `SHOWN_FIRST` share neither colour nor symbol; no two of the first 64 share both, no
    two of the first 40 colour and dash.
    """
    lap, place = divmod(index, len(COLOURS))
    symbol = list(SYMBOLS)[(place + lap) % len(SYMBOLS)]
    return Mark(COLOURS[place], symbol, DASHES[lap % len(DASHES)])
