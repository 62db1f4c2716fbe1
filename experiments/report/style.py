"""The traces of methods, and the plotly template of each theme."""

from typing import Any

import plotly.graph_objects as go

from experiments.lm_head.presets import METHODS
from experiments.report.marks import Mark

BACKGROUNDS = {"light": "#ffffff", "dark": "#15181d"}
INK = {"light": "#22262d", "dark": "#dfe3ea"}
GRID = {"light": "#e4e7ec", "dark": "#2d323b"}
GREY = "#858d99"


def trace(
    name: str, its: Mark, *, dashed: bool = False, mode: str = "lines+markers", **values: Any
) -> go.Scatter:
    """Return the scatter trace of a method, which the page's legend shows and hides.

    Args:
        name: key of the method.
        its: mark.
        dashed: draw a dotted line, for what is not final.
        mode: of plotly.
        values: of `plotly.graph_objects.Scatter`.
    """
    return go.Scatter(
        name=METHODS[name].title,
        meta=name,
        mode=mode,
        line={"color": its.colour, "dash": "dot" if dashed else its.dash, "width": 1.8},
        marker={"color": its.colour, "symbol": its.symbol, "size": 8, "maxdisplayed": 12},
        showlegend=False,
        **values,
    )


def figure(x: str, y: str, *, height: int = 420, **layout: Any) -> go.Figure:
    """Return an empty figure with its two titles; the page gives it the theme's template."""
    made = go.Figure()
    made.update_layout(
        template="none",
        height=height,
        margin={"l": 62, "r": 14, "t": 16, "b": 52},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        xaxis_title=x,
        yaxis_title=y,
        **layout,
    )
    return made


def templates() -> dict[str, dict[str, Any]]:
    """Return the plotly template of each theme as JSON values."""
    return {theme: _template(theme) for theme in BACKGROUNDS}


def _template(theme: str) -> dict[str, Any]:
    ink, grid = INK[theme], GRID[theme]
    axis = {
        "gridcolor": grid,
        "linecolor": grid,
        "zerolinecolor": GREY,
        "zerolinewidth": 1,
        "automargin": True,
        "title": {"standoff": 10},
    }
    return {
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": ink},
            "hoverlabel": {
                "bgcolor": BACKGROUNDS[theme],
                "bordercolor": grid,
                "font": {"color": ink},
            },
            "xaxis": axis,
            "yaxis": axis,
        }
    }
