"""Show the committed results: a markdown table, and `rho` against alignment as a figure.

Runs whose floor is on the cosine are left out.

python -m experiments.separation.show [--figure separation.png]
"""

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

from experiments.separation.run import RESULTS
from experiments.table import read

METHODS = {"projected_gradient": "projected gradient", "smoothed": "smoothed"}
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


def main(
    results: Path = RESULTS,
    figure: Annotated[Path | None, typer.Option(help="where to draw it, PNG or SVG")] = None,
) -> None:
    """Print the table of `results` and draw the figure if asked."""
    rows = [row for row in read(results) if row["measure"] == "decrease"]
    print(table(rows))
    if figure is not None:
        draw(rows).savefig(figure, dpi=110)


def table(rows: list[dict[str, str]]) -> str:
    """One line per momentum, solver and floor: `rho @ alignment` for each number of passes."""
    counts = sorted({int(r["passes"]) for r in rows if r["passes"]})
    lines = [
        "| momentum | method | floor | " + " | ".join(f"{c} passes" for c in counts) + " |",
        "|---|---|---|" + "---|" * len(counts),
    ]
    cells: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for r in rows:
        cell = f"{float(r['rho']):.3f} @ {float(r['alignment']):.3f}"
        cells[r["momentum"], r["method"], r["floor"]][r["passes"]] = cell
    for (momentum, method, floor), found in cells.items():
        shown = [found.get(str(c), found.get("", "") if c == counts[0] else "") for c in counts]
        lines.append(f"| {momentum} | {method} | {floor} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def draw(rows: list[dict[str, str]]) -> Figure:
    """One panel per momentum: what each solver reached with each number of passes."""
    momenta = list(dict.fromkeys(r["momentum"] for r in rows))
    drawing = Figure(figsize=(4.2 * len(momenta), 3.8), layout="constrained")
    axes = drawing.subplots(1, len(momenta), squeeze=False, sharey=True)[0]
    counts = sorted({int(r["passes"]) for r in rows if r["passes"]})
    for axis, momentum in zip(axes, momenta, strict=True):
        mine = [r for r in rows if r["momentum"] == momentum]
        for colour, count in zip(COLOURS, counts, strict=False):
            for (method, name), style in zip(METHODS.items(), ("o-", "x:"), strict=True):
                points = sorted(
                    (float(r["alignment"]), float(r["rho"]))
                    for r in mine
                    if r["method"] == method and r["passes"] == str(count)
                )
                if not points:
                    continue
                label = f"{name}, {count} passes"
                axis.plot(*zip(*points, strict=True), style, color=colour, label=label, ms=4)
        for r in mine:
            if r["passes"] == "":
                axis.plot(float(r["alignment"]), float(r["rho"]), "k*")
                place = (float(r["alignment"]), float(r["rho"]))
                axis.annotate(
                    r["method"], place, xytext=(0, 6), textcoords="offset points", ha="center"
                )
        bound = next(float(r["bound"]) for r in mine if r["bound"])
        axis.axhline(bound, color="0.5", lw=0.8)
        axis.set(title=f"{momentum} ({mine[0]['rows']} x {mine[0]['dim']})", xlabel="alignment")
        axis.margins(x=0.12)
    axes[0].set(ylabel="rho (grey line: bound)", ylim=(0, 1))
    named = {
        label: line
        for axis in axes
        for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    drawing.legend(named.values(), named.keys(), fontsize=7, loc="outside lower center", ncols=4)
    return drawing


if __name__ == "__main__":
    typer.run(main)
