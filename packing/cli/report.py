"""What the command line says about a matrix and about an update: JSON and tables.

The summary that `rowsep solve` writes is strict JSON; a number that is not finite is null. Its
keys:

    versions    of rowsep, python and torch
    date        when it was written, UTC, ISO 8601
    command     the command line
    input       path, sha256, key, shape (as stored), dtype, orientation, note, and how many rows
                took part
    options     diameter, alignment, measure, solver, passes, starts, tolerance, time_limit
    seed        of the solver
    interrupted whether Ctrl-C ended the work; what came after it is then missing
    results     seconds, and of the update: diameter, delta, rho, bound, rho_over_bound, alignment,
                cosine, closest, farthest, passes, met, stop
    baselines   for each name: rho, alignment, cosine
    front       for each floor tried: floor, rho, alignment, cosine, passes; empty without a front
    history     for each pass: passes, rho, alignment, cosine, as the solver saw it
    outputs     the files written: update, summary, figure (null if there is none)
"""

import json
import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from rich.console import Group, RenderableType
from rich.table import Table
from torch import Tensor

from .. import bounds, cloud
from ..baselines import Quality
from ..io import MatrixInfo
from ..solution import Solution

QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def rowsep_version() -> str:
    """Return the version of the installed package, "unknown" in a bare checkout."""
    try:
        return version("rowsep")
    except PackageNotFoundError:
        return "unknown"


def strict_json(value: Any) -> str:
    """Return `value` as indented JSON in which a number that is not finite is null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def summary(
    *,
    command: str,
    info: MatrixInfo,
    rows: int,
    options: Mapping[str, Any],
    seed: int,
    seconds: float,
    interrupted: bool,
    solution: Solution,
    baselines: Mapping[str, Quality],
    front: Sequence[tuple[float, Solution]],
    outputs: Mapping[str, str | None],
) -> dict[str, Any]:
    """Return the summary of one run, with the keys that the module's docstring lists."""
    return {
        "versions": {
            "rowsep": rowsep_version(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "input": _input(info, rows),
        "options": dict(options),
        "seed": seed,
        "interrupted": interrupted,
        "results": {
            "seconds": round(seconds, 3),
            "diameter": solution.diameter,
            "delta": solution.delta,
            "rho": solution.rho,
            "bound": solution.bound,
            "rho_over_bound": solution.rho / solution.bound,
            "alignment": solution.alignment,
            "cosine": solution.cosine,
            "closest": solution.closest,
            "farthest": solution.farthest,
            "passes": solution.passes,
            "met": solution.met,
            "stop": solution.stop,
        },
        "baselines": {name: one._asdict() for name, one in baselines.items()},
        "front": [
            {
                "floor": floor,
                "rho": one.rho,
                "alignment": one.alignment,
                "cosine": one.cosine,
                "passes": one.passes,
            }
            for floor, one in front
        ],
        "history": [entry._asdict() for entry in solution.history],
        "outputs": dict(outputs),
    }


def summary_table(
    info: MatrixInfo,
    rows: int,
    solution: Solution,
    seconds: float,
    baselines: Mapping[str, Quality],
) -> RenderableType:
    """Return the figures of an update beside those of the baselines, for a terminal."""
    about = _grid(
        ("momentum", f"{rows} rows in {solution.update.shape[1]} dimensions, {info.dtype}"),
        ("diameter D", f"{solution.diameter:.6g}   rows {_pair(solution.farthest)}"),
        ("separation", f"{solution.delta:.6g}   rows {_pair(solution.closest)}"),
        ("bound on rho", f"{solution.bound:.4f}"),
        ("work", f"{solution.passes} passes over all pairs, {seconds:.1f} s"),
        ("stopped", solution.stop),
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("update", justify="right", style="bold")
    for name in baselines:
        table.add_column(name, justify="right")
    update = Quality(solution.rho, solution.alignment, solution.cosine)
    columns = [update, *baselines.values()]
    table.add_row("rho", *(_short(one.rho) for one in columns))
    table.add_row("rho / bound", *(_short(one.rho / solution.bound) for one in columns))
    table.add_row("alignment", *(_short(one.alignment) for one in columns))
    table.add_row("cosine", *(_short(one.cosine) for one in columns))
    return Group(about, "", table)


def measured(M: Tensor, info: MatrixInfo) -> dict[str, Any]:
    """Return what a matrix is like as a cloud of rows.

    Distances are those of `M`; norms and singular values are those of the centred rows, on which a
    solver works. With `p_i = sigma_i / sum_j sigma_j` the effective rank is
    `exp(-sum_i p_i log p_i)` (Roy and Vetterli, 2007); the stable rank is
    `sum_i sigma_i^2 / sigma_1^2`.

    Args:
        M: shape (V, d), V >= 2, the rows that take part.
        info: where it came from.
    """
    rho, delta, diameter, closest, farthest = cloud.ratio(M)
    A = cloud.centre(M.double())
    norms = A.norm(dim=1)
    sigma = torch.linalg.svdvals(A)
    bound = bounds.rho_upper_bound(*M.shape)
    levels = torch.tensor(QUANTILES, dtype=torch.float64)
    shares = sigma / sigma.sum()
    return {
        "input": _input(info, len(M)),
        "diameter": diameter,
        "delta": delta,
        "rho": rho,
        "bound": bound,
        "rho_over_bound": rho / bound,
        "closest": closest,
        "farthest": farthest,
        "row_norms": dict(zip(map(str, QUANTILES), norms.quantile(levels).tolist(), strict=True)),
        "singular_values": {
            str(rank): (sigma[rank - 1] / sigma[0]).item() for rank in RANKS if rank <= len(sigma)
        },
        "stable_rank": (sigma.square().sum() / sigma[0].square()).item(),
        "effective_rank": torch.special.entr(shares).sum().exp().item(),
        "equal_rows": equal_rows(M),
    }


def measured_table(figures: Mapping[str, Any]) -> RenderableType:
    """Return what `measured` found, for a terminal."""
    given = figures["input"]
    norms = figures["row_norms"]
    return _grid(
        ("matrix", f"{given['rows']} rows in {_width(given)} dimensions, {given['dtype']}"),
        ("diameter D", f"{figures['diameter']:.6g}   rows {_pair(figures['farthest'])}"),
        ("separation", f"{figures['delta']:.6g}   rows {_pair(figures['closest'])}"),
        ("rho", f"{figures['rho']:.4g}"),
        ("bound on rho", f"{figures['bound']:.4f}"),
        ("rho / bound", f"{figures['rho_over_bound']:.4g}"),
        (
            "centred row norms",
            "  ".join(f"{100 * float(q):g} %: {value:.3g}" for q, value in norms.items()),
        ),
        (
            "singular values",
            "  ".join(f"{r}: {value:.3g}" for r, value in figures["singular_values"].items()),
        ),
        ("stable rank", f"{figures['stable_rank']:.4g}"),
        ("effective rank", f"{figures['effective_rank']:.4g}"),
        ("rows equal to another", str(figures["equal_rows"])),
    )


def _input(info: MatrixInfo, rows: int) -> dict[str, Any]:
    return {
        "path": info.path,
        "sha256": info.sha256,
        "key": info.key,
        "shape": info.shape,
        "dtype": info.dtype,
        "orientation": info.orientation,
        "note": info.note,
        "rows": rows,
    }


def _width(given: Mapping[str, Any]) -> int:
    return given["shape"][1 if given["orientation"] == "rows" else 0]


def equal_rows(M: Tensor) -> int:
    """Return how many rows have exactly the entries of another row; -0.0 is 0.0."""
    wide = (M if M.dtype == torch.float64 else M.float()) + 0.0
    _, counts = torch.unique(wide, dim=0, return_counts=True)
    return int(counts[counts > 1].sum())


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.0e}"


def _pair(pair: tuple[int, int]) -> str:
    return f"{pair[0]}, {pair[1]}"


def _grid(*lines: tuple[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for title, text in lines:
        grid.add_row(title, text)
    return grid


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
