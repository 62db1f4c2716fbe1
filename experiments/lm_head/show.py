"""The comparison of a preset as a figure.

python -m experiments.lm_head.show [--preset cpu] [--figure heads.svg]
"""

from collections.abc import Sequence
from pathlib import Path

import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.lm_head.comparison import Line, summarise
from experiments.lm_head.presets import METHODS
from experiments.lm_head.summary import preset_with_runs

RESULTS = Path(__file__).parent / "results"
COLOURS = {"better": "#009E73", "worse": "#D55E00"}


def intervals(lines: Sequence[Line]) -> Figure:
    """Draw paired differences to the best AdamW with their 95 % intervals, a panel a size."""
    vocabs = list(dict.fromkeys(line.vocab for line in lines))
    groups = [[one for one in lines if one.vocab == vocab] for vocab in vocabs]
    heights = [len(group) + 2 for group in groups]
    drawn = Figure(figsize=(8, 0.3 * sum(heights)), layout="constrained")
    panels = drawn.subplots(len(groups), 1, squeeze=False, height_ratios=heights).ravel()
    for axes, vocab, group in zip(panels, vocabs, groups, strict=True):
        _draw(axes, group)
        axes.set_title(f"V = {vocab}", fontsize=11, loc="left")
    panels[-1].set_xlabel("loss minus the best AdamW's, nats a token; to the left is better")
    return drawn


def _draw(axes: Axes, group: Sequence[Line]) -> None:
    compared = sorted((one for one in group if one.to_adamw.pairs), key=lambda one: one.loss)
    for place, one in enumerate(compared):
        found = one.to_adamw
        colour = COLOURS.get(found.verdict, "#4D4D4D")
        axes.plot([found.low, found.high], [place, place], color=colour, linewidth=2)
        axes.plot(found.mean, place, color=colour, marker="o", markersize=5)
    axes.axvline(0.0, color="#4D4D4D", linewidth=0.8)
    axes.set_yticks(range(len(compared)), [METHODS[one.name].title for one in compared])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def main(preset: str = "cpu", results: Path = RESULTS, figure: Path = Path("heads.svg")) -> None:
    """Draw the figure."""
    intervals(summarise(*preset_with_runs(preset, results))).savefig(figure)


if __name__ == "__main__":
    typer.run(main)
