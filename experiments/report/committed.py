"""Figures of the results that are committed next to their experiments.

All return None where an experiment has no results.
"""

import datetime
import json
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import plotly.graph_objects as go

from experiments.report.marks import COLOURS, SHOWN_FIRST, mark
from experiments.report.style import GREY, figure
from experiments.table import read
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.point_sets.records import records

EXPERIMENTS = Path(__file__).parents[1]
SEPARATION = EXPERIMENTS / "separation" / "results.csv"
STEEPEST = EXPERIMENTS / "steepest" / "results.csv"
CODES = EXPERIMENTS / "codes" / "best_code.csv"
FRONT = EXPERIMENTS / "codes" / "front.csv"
QUALITY = EXPERIMENTS / "packing_quality" / "results.csv"
MOMENTUM = "shipped"
DIMS = (2, 3, 4, 8)
"""Of the minimal diameters drawn."""
STATUSES = {"proved": "square", "best known": "circle", "found here": "x"}

Rows = Sequence[dict[str, str]]


def date(*paths: Path) -> str:
    """Return the latest date in the tables, of the last commit to them if they have none."""
    dates = {row["date"] for path in paths for row in read(path) if row.get("date")}
    return max(dates, default=_commit_date(*paths))


def records_date() -> str:
    """Return the latest date of the certificates."""
    folder = files("rowsep.packing.point_sets.records")
    entries = [
        one
        for file in folder.iterdir()
        if file.name.startswith("found_d")
        for one in json.loads(file.read_text())
    ]
    return max(one["date"] for one in entries)


def separation(rows: Rows) -> go.Figure | None:
    """Draw rho against alignment for the shipped momentum, a line a solver and its passes."""
    lines: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["momentum"] == MOMENTUM and row["measure"] == "decrease":
            name, passes = _words(row["method"]), row["passes"]
            lines.setdefault(f"{name}, {passes} passes" if passes else name, []).append(row)
    return _tradeoff(lines)


def fronts(rows: Rows) -> go.Figure | None:
    """Draw rho against alignment for one momentum, by what the solver starts from."""
    lines: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["momentum"] == rows[0]["momentum"]:
            start, passes = row["start"], row["passes"]
            unsolved = f"{start} rows, unsolved"
            name = unsolved if passes == "0" else f"from {start}, {passes} passes"
            lines.setdefault(name, []).append(row)
    return _tradeoff(lines)


def steepest(rows: Rows) -> go.Figure | None:
    """Draw the steepest step's alignment and bound, of least gap, and that of row normalisation."""
    by_gap = sorted(rows, key=lambda r: float(r["gap"]), reverse=True)
    best = {(r["momentum"], r["rows"], r["dim"]): r for r in by_gap}
    titles = [f"{_short(name)}<br>{V} x {d}" for name, V, d in best]
    made = figure("alignment", "", height=120 + 58 * len(titles))
    made.update_yaxes(autorange="reversed", showgrid=False)
    for index, (name, column, symbol) in enumerate(
        (
            ("row normalisation", "row_normalised", "diamond"),
            ("steepest step found", "alignment", "circle"),
            ("upper bound", "upper", "line-ns-open"),
        )
    ):
        values = [float(r[column]) for r in best.values()]
        its = _trace(name, index, values, titles, mode="markers")
        its.update(marker={"symbol": symbol, "size": 11})
        its.update(hovertemplate="%{x:.6f}<extra>" + name + "</extra>")
        made.add_trace(its)
    return made if rows else None


def quality(codes: Rows, measured: Rows) -> go.Figure | None:
    """Draw rho over its upper bound against V/d: codes' guarantees, and measured methods."""
    made = figure("rows over dimension, V/d", "rho over its upper bound")
    made.update_xaxes(type="log", dtick=1)
    made.update_layout(showlegend=True)
    sets = {"code, guaranteed": [r for r in codes if r.get("what") == "size"]}
    for row in measured:
        sets.setdefault(f"{_words(row['method'])}, measured", []).append(row)
    for index, (name, rows) in enumerate(sets.items()):
        its = _trace(
            name,
            index,
            [int(r["rows"]) / int(r["dim"]) for r in rows],
            [float(r["rho"]) / float(r["bound"]) for r in rows],
            mode="markers",
            text=[f"V {r['rows']}, d {r['dim']}" for r in rows],
        )
        its.update(marker={"size": 6 if index == 0 else 8})
        made.add_trace(its)
    return made if codes or measured else None


def minimal_diameter() -> go.Figure:
    """Draw the least 1/rho known of n points of R^d with its lower bound, status by symbol."""
    made = figure("points n", "1/rho: largest over smallest distance")
    for index, dim in enumerate(DIMS):
        table = records(dim)
        colour = COLOURS[index]
        ns = [one.n for one in table]
        made.add_trace(
            go.Scatter(
                x=ns,
                y=[float(one.ratio_squared) ** 0.5 for one in table],
                name=f"R<sup>{dim}</sup>",
                mode="lines+markers",
                line={"color": colour, "width": 1.5},
                marker={"symbol": [STATUSES[one.status] for one in table], "size": 7},
                text=[f"{one.status}, {one.credit}" for one in table],
                hovertemplate="n %{x}: %{y:.6f}, %{text}<extra>R^" + str(dim) + "</extra>",
            )
        )
        made.add_trace(
            go.Scatter(
                x=ns,
                y=[1.0 / rho_upper_bound(n, dim) for n in ns],
                mode="lines",
                line={"color": colour, "width": 1.2, "dash": "dot"},
                showlegend=False,
                hoverinfo="skip",
            )
        )
    for status, symbol in STATUSES.items():
        its = go.Scatter(x=[None], y=[None], name=status, mode="markers")
        its.update(marker={"symbol": symbol, "size": 8, "color": GREY})
        made.add_trace(its)
    return made


def _tradeoff(lines: Mapping[str, Rows]) -> go.Figure | None:
    """Draw rho against alignment, a line a name; None without lines."""
    made = figure("alignment with the momentum", "rho of the update")
    for index, (name, rows) in enumerate(lines.items()):
        mine = sorted(rows, key=lambda r: float(r["alignment"]))
        made.add_trace(
            _trace(
                name,
                index,
                [float(r["alignment"]) for r in mine],
                [float(r["rho"]) for r in mine],
                mode="lines+markers" if len(mine) > 1 else "markers",
                text=[f"floor {r['floor'] or 'none'}" for r in mine],
            )
        )
    return made if lines else None


def _trace(
    name: str, index: int, x: Sequence, y: Sequence, *, mode: str, text: Sequence[str] = ()
) -> go.Scatter:
    its = mark(index)
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode=mode,
        line={"color": its.colour, "dash": its.dash, "width": 1.6},
        marker={"color": its.colour, "symbol": its.symbol, "size": 8},
        visible=True if index < SHOWN_FIRST else "legendonly",
        text=text,
        hovertemplate="%{y:.4f} at %{x:.4g} %{text}<extra>" + name + "</extra>",
    )


def _short(momentum: str) -> str:
    """Like "d128 step300" of "momentum_d128_step300.npy"."""
    return _words(momentum.removesuffix(".npy").removeprefix("momentum_"))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _commit_date(*paths: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(EXPERIMENTS), "log", "-1", "--format=%ct", "--", *map(str, paths)],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0 or not done.stdout.strip():
        return "not recorded"
    return datetime.datetime.fromtimestamp(int(done.stdout), datetime.UTC).date().isoformat()
