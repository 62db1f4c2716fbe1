"""The results as a figure and as tables for the docs.

    python -m experiments.minimal_diameter.show [--figure minimal_diameter.png]

Reads `rowsep.packing.point_sets.records` and `compare.csv`; prints Markdown.
"""

from pathlib import Path
from typing import Annotated

import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.minimal_diameter.compare import RESULTS
from experiments.table import read
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.point_sets.records import Record, best_configuration, records


def draw(axes: Axes, dim: int) -> None:
    """Draw 1/rho against n: what is found, published and proved, and what cannot be beaten."""
    table = records(dim)
    found = [one for one in table if one.found]
    ns = range(min(one.n for one in table), max(one.n for one in table) + 1)
    bounds = [1.0 / rho_upper_bound(n, dim) for n in ns]
    axes.plot(list(ns), bounds, color="#4D4D4D", linestyle="--", label="lower bound")
    axes.plot(
        [one.n for one in found],
        [float(one.found or "nan") ** 0.5 for one in found],
        color="#0072B2",
        marker=".",
        label="found from random starts",
    )
    for title, marker, colour, chosen in (
        ("published", "o", "#D55E00", [one for one in table if one.published]),
        ("proved", "s", "#009E73", [one for one in table if one.status == "proved"]),
    ):
        axes.scatter(
            [one.n for one in chosen],
            [float(one.published or one.ratio_squared) ** 0.5 for one in chosen],
            marker=marker,
            facecolors="none",
            edgecolors=colour,
            s=70 if marker == "o" else 130,
            label=title,
        )
    axes.set_title(f"Points in R^{dim}", fontsize=11)
    axes.set_xlabel("points n")
    axes.set_ylabel("1/rho: largest over smallest distance")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def line(one: Record) -> str:
    """One record as a row of a Markdown table."""
    told = best_configuration(one.n, one.dim).optimality
    assert told is not None
    kind = "isolated" if told.isolated else ("not isolated" if told.solved else "unsolved")
    if told.rattlers:
        kind += f", {len(told.rattlers)} loose"
    return (
        f"| {one.n} | {one.ratio_squared[:14]} | {one.bound:.4f} | {one.published or ''} "
        f"| {one.status} | {one.agreeing} of {one.starts} | {len(told.near)} + {len(told.far)} "
        f"| {kind} |"
    )


def dimensions() -> list[int]:
    """Return the dimensions of the records."""
    return sorted({one.dim for one in records()})


def table(dim: int) -> list[str]:
    """The records of one dimension as lines of a Markdown table."""
    head = "| n | squared ratio | bound | published | status | agree | active | kind |"
    return [head, "|---" * 8 + "|", *(line(one) for one in records(dim) if one.found)]


def panels() -> Figure:
    """Draw the plane, space and R^8."""
    drawn = Figure(figsize=(13, 4.8), layout="constrained")
    for axes, dim in zip(drawn.subplots(1, 3), (2, 3, 8), strict=True):
        draw(axes, dim)
    return drawn


def comparison() -> list[str]:
    """The solvers on the same momenta as rows of a Markdown table."""
    cells: dict[tuple[str, str, str], dict[tuple[str, str], dict[str, str]]] = {}
    for row in read(RESULTS):
        case = row["rows"], row["dim"], row["floor"]
        cells.setdefault(case, {})[row["solver"], row["passes"]] = row
    columns = [key for key in next(iter(cells.values())) if key[0] != "exact"]
    titles = " | ".join(f"{solver}, {passes}" for solver, passes in columns)
    lines = [f"| V | d | floor | exact | {titles} |", "|---" * (4 + len(columns)) + "|"]
    order = sorted(cells.items(), key=lambda cell: [float(part) for part in cell[0]])
    for (rows, dim, floor), made in order:
        exact = made["exact", ""]
        best = float(exact["rho"])
        others = " | ".join(
            f"{float(made[key]['rho']):.4f} (-{100 * (1 - float(made[key]['rho']) / best):.1f} %)"
            + ("" if made[key]["met"] == "True" else " missed")
            for key in columns
        )
        shown = "none" if float(floor) == -1 else floor
        agree = f"{best:.6f}, {exact['agreeing']} of {exact['starts']}"
        lines.append(f"| {rows} | {dim} | {shown} | {agree} | {others} |")
    return lines


def main(
    figure: Annotated[Path | None, typer.Option(help="PNG, SVG or PDF to draw.")] = None,
) -> None:
    """Print the tables and draw the figure."""
    for dim in dimensions():
        print(f"\nR^{dim}\n")
        print("\n".join(table(dim)))
    print("\n" + "\n".join(comparison()))
    if figure is not None:
        panels().savefig(figure, dpi=120)


if __name__ == "__main__":
    typer.run(main)
