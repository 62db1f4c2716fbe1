"""The results as figures and as tables for the docs.

    python -m experiments.packing_quality.show [--folder FOLDER]

Writes `packing_quality.png` (rho over its bound for V and d) and `packing_fronts.png` (rho against
the floor on the alignment, on each momentum of `experiments/codes/front.csv`) into an existing
folder; prints Markdown.
"""

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from experiments.codes import front
from experiments.packing_quality.fits import power_law
from experiments.packing_quality.run import RESULTS, SOLVED
from experiments.table import read

Rows = list[dict[str, str]]
PANELS = ("projected_gradient", "code", "code, projected_gradient", "gaussian")
COLOURS = {
    "momentum": "#0072B2",
    "code": "#E69F00",
    "aligned": "#D55E00",
    "blended": "#CC79A7",
    "random": "#009E73",
}
FITTED = 0.05
"""Seconds below which a case is overhead and is left out of the fits."""
LEAST_CASES = 4
"""Of a fit."""


def grid(rows: Rows, method: str) -> tuple[list[int], list[int], np.ndarray]:
    """Return V, d and rho over the bound for a method; NaN where it was not run."""
    Vs = sorted({int(row["rows"]) for row in rows})
    ds = sorted({int(row["dim"]) for row in rows})
    share = np.full((len(ds), len(Vs)), np.nan)
    for row in rows:
        if row["method"] == method:
            share[ds.index(int(row["dim"])), Vs.index(int(row["rows"]))] = float(row["share"])
    return Vs, ds, share


def heat_map(rows: Rows) -> Figure:
    """Draw rho over its bound, a panel a method."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    scale = ScalarMappable(Normalize(0, 1), "viridis")
    for axes, method in zip(panels, PANELS, strict=True):
        Vs, ds, share = grid(rows, method)
        axes.imshow(share, norm=scale.norm, cmap=scale.cmap, origin="lower", aspect="auto")
        for (i, j), value in np.ndenumerate(share):
            if not np.isnan(value):
                colour = "white" if value < 0.6 else "black"
                axes.text(j, i, f"{value:.3f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(Vs)), [str(V) for V in Vs])
        axes.set_yticks(range(len(ds)), [str(d) for d in ds])
        axes.set_title(method, fontsize=11)
        axes.set_xlabel("rows V")
        axes.set_ylabel("dimension d")
    figure.colorbar(scale, ax=panels, label="rho over its upper bound")
    return figure


def draw_front(axes: Axes, rows: Rows, momentum: str) -> None:
    """Draw rho against the alignment reached, a line a start."""
    for start, colour in COLOURS.items():
        own = [r for r in rows if (r["momentum"], r["start"]) == (momentum, start)]
        solved = sorted(
            (float(r["alignment"]), float(r["rho"])) for r in own if r["passes"] == "24"
        )
        axes.plot(*zip(*solved, strict=True), color=colour, marker=".", label=f"{start} start")
        for row in own:
            if row["passes"] == "0":
                place = float(row["alignment"]), float(row["rho"])
                axes.plot(*place, color=colour, marker="*", markersize=12, linestyle="none")
    axes.axhline(float(rows[0]["bound"]), color="#4D4D4D", linestyle="--", linewidth=1)
    axes.set_title(momentum, fontsize=11)
    axes.set_xlabel("alignment")
    axes.set_ylabel("rho")
    axes.set_ylim(0, 1)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def fronts(rows: Rows) -> Figure:
    """Draw a panel a momentum, full vocabularies only."""
    names = list(dict.fromkeys(r["momentum"] for r in rows if "::" not in r["momentum"]))
    figure = Figure(figsize=(11, 3.6 * -(-len(names) // 2)), layout="constrained")
    panels = figure.subplots(-(-len(names) // 2), 2, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        draw_front(axes, [r for r in rows if r["momentum"] == name], name)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    panels[0].legend(frameon=False, fontsize=9)
    return figure


def front_table(rows: Rows) -> list[str]:
    """The fronts as Markdown, the best start of each floor in bold."""
    lines = ["| momentum | start | 0.3 | 0.5 | 0.6 | 0.7 |", "|---|---|---|---|---|---|"]
    rows = [r for r in rows if "::" not in r["momentum"] and r["passes"] == "24"]
    for name in dict.fromkeys(r["momentum"] for r in rows):
        own = {(r["start"], r["floor"]): r for r in rows if r["momentum"] == name}
        for start in front.STARTS:
            cells = []
            for floor in ("0.3", "0.5", "0.6", "0.7"):
                found = own.get((start, floor))
                there = [float(own[s, floor]["rho"]) for s in front.STARTS if (s, floor) in own]
                best = max(there, default=math.nan)
                text = "" if found is None else f"{float(found['rho']):.3f}"
                bold = found is not None and float(found["rho"]) == best
                cells.append(f"**{text}**" if bold else text)
            lines.append(f"| {name} | {start} | {' | '.join(cells)} |")
    return lines


def quality_table(rows: Rows) -> list[str]:
    """Every case as Markdown."""
    lines = [
        "| V | d | method | passes | rho | of the bound | products | MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in sorted(rows, key=lambda r: (int(r["rows"]), int(r["dim"]))):
        passes = "" if r["passes"] == "0" else r["passes"]
        lines.append(
            f"| {r['rows']} | {r['dim']} | {r['method']} | {passes} | {float(r['rho']):.4f} "
            f"| {r['share']} | {float(r['products']):.3g} | {r['peak_MiB']} |"
        )
    return lines


def fit_table(rows: Rows) -> list[str]:
    """The cost of a pass against V and d by processor, certifying passes included.

    A line a solver for every processor that has the cases for a fit.
    """
    lines = [
        "| solver | processor | seconds a pass | V exponent | d exponent | spread | cases |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in SOLVED:
        timed = [r for r in rows if r["method"] == method and float(r["seconds"]) >= FITTED]
        for cpu in dict.fromkeys(r["cpu"] for r in timed):
            own = [r for r in timed if r["cpu"] == cpu]
            Vs, ds = ([int(r[name]) for r in own] for name in ("rows", "dim"))
            if len(own) < LEAST_CASES or len(set(Vs)) < 2 or len(set(ds)) < 2:
                continue
            law = power_law(Vs, ds, [float(r["seconds"]) / (int(r["passes"]) + 2) for r in own])
            lines.append(
                f"| {method} | {cpu} | {law.factor:.2g} V^{law.rows:.2f} d^{law.dim:.2f} "
                f"| {law.rows:.2f} ± {law.rows_error:.2f} | {law.dim:.2f} ± {law.dim_error:.2f} "
                f"| {law.spread:.2f} | {law.cases} |"
            )
    return lines


def main(
    folder: Annotated[Path, typer.Option(help="for the figures")] = Path("."),
    results: Path = RESULTS,
    front_results: Path = front.RESULTS,
) -> None:
    """Write the figures and print the tables."""
    rows, front_rows = read(results), read(front_results)
    heat_map(rows).savefig(folder / "packing_quality.png", dpi=110)
    fronts(front_rows).savefig(folder / "packing_fronts.png", dpi=110)
    print("\n".join([*quality_table(rows), "", *fit_table(rows), "", *front_table(front_rows)]))


if __name__ == "__main__":
    typer.run(main)
