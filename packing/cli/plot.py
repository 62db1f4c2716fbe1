"""One figure of a row separation: distances before and after, the passes, and what it costs.

Drawn on `matplotlib.figure.Figure` objects, so that neither a display nor pyplot's state is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from ..baselines import Quality, row_norm
from ..solution import Solution

EXACT_ROWS = 6000
"""Up to this many rows every pair is counted; above, `SAMPLED_PAIRS` random ones."""
SAMPLED_PAIRS = 2_000_000
BINS = 120

_BEFORE, _AFTER, _FRONT, _LIMIT = "#D55E00", "#0072B2", "#56B4E9", "#4D4D4D"  # Okabe and Ito (2008)
_MARKERS = ("s", "D", "^", "v", "P", "X")
_BASELINE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#999999", "#000000")


def figure(
    A: Tensor,
    solution: Solution,
    baselines: Mapping[str, Quality],
    front: Sequence[tuple[float, Solution]] | None = None,
    *,
    measure: Literal["decrease", "cosine"] = "decrease",
) -> Figure:
    """Draw three panels: pair distances, rho against passes, and rho against the floor's measure.

    Args:
        A: centred momentum, shape (V, d), the rows that take part.
        solution: its separated update; `solution.update` has the rows of `A`.
        baselines: what else could be done with `A`, by name.
        front: (floor, solution) for some floors, this one included; None leaves the curve out.
        measure: the horizontal axis of the third panel, "decrease" for the alignment.

    Returns:
        A figure, 13 x 4.6 inches; `figure.savefig(path)` writes it.
    """
    drawn = Figure(figsize=(13, 4.6), layout="constrained")
    distances, passes, costs = drawn.subplots(1, 3)
    _draw_distances(distances, A, solution)
    _draw_passes(passes, solution)
    _draw_costs(costs, solution, baselines, front or (), measure)
    drawn.suptitle(f"Row separation of {A.shape[0]} rows in {A.shape[1]} dimensions")
    for axes in (distances, passes, costs):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False, fontsize=9
        )
    return drawn


def distance_histogram(S: Tensor, *, bins: int = BINS, seed: int = 0) -> tuple[Tensor, int]:
    """Return how the pair distances of `S` are spread between 0 and its diameter.

    Distances are those of a working-precision pass: right for a bin's width, not to the last digit.

    Args:
        S: shape (V, d), V >= 2.
        bins: number of equal bins over [0, D].
        seed: of the sampled pairs, if V > `EXACT_ROWS`.

    Returns:
        The share of the pairs in each bin, float64, shape (bins,), summing to 1 (all in the first
        bin if D = 0); and the number of pairs counted.
    """
    points = S.detach().cpu().double()
    points = points / points.abs().max().clamp_min(torch.finfo(torch.float64).tiny)
    found = _all_distances(points) if len(points) <= EXACT_ROWS else _sampled(points, seed)
    top = found.max().item()
    counts = torch.histc(found, bins=bins, min=0.0, max=top or 1.0).double()
    return counts / counts.sum(), len(found)


def _all_distances(points: Tensor) -> Tensor:
    size = 512
    blocks = []
    for start in range(0, len(points), size):
        block = torch.cdist(points[start : start + size], points[start:]).float()
        rows, columns = torch.triu_indices(*block.shape, offset=1)
        blocks.append(block[rows, columns])
    return torch.cat(blocks)


def _sampled(points: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    num_rows = len(points)
    first = torch.randint(num_rows, (SAMPLED_PAIRS,), generator=generator)
    shift = torch.randint(1, num_rows, (SAMPLED_PAIRS,), generator=generator)
    second = (first + shift) % num_rows
    chunks = zip(first.split(65536), second.split(65536), strict=True)
    return torch.cat([(points[i] - points[j]).norm(dim=1).float() for i, j in chunks])


def _draw_distances(axes: Axes, A: Tensor, solution: Solution) -> None:
    edges = torch.linspace(0, 1, BINS + 1).tolist()
    counted = 0
    for cloud, colour, name in (
        (row_norm(A), _BEFORE, "row-normalised momentum"),
        (solution.update, _AFTER, "separated update"),
    ):
        shares, counted = distance_histogram(cloud)
        axes.stairs(shares.tolist(), edges, color=colour, fill=True, alpha=0.25)
        axes.stairs(shares.tolist(), edges, color=colour, linewidth=1.4, label=name)
    axes.axvline(
        solution.rho, color=_AFTER, linestyle=":", label=f"its separation, {solution.rho:.3f}"
    )
    axes.set_yscale("log")
    axes.set_xlim(0, 1)
    axes.set_xlabel("pair distance / diameter")
    axes.set_ylabel("share of the pairs")
    pairs = A.shape[0] * (A.shape[0] - 1) // 2
    which = f"all {counted:,}" if counted == pairs else f"{counted:,} sampled"
    axes.set_title(f"Distances of {which} pairs", fontsize=11)


def _draw_passes(axes: Axes, solution: Solution) -> None:
    seen = [entry.passes for entry in solution.history]
    axes.plot(
        seen,
        [entry.rho for entry in solution.history],
        color=_AFTER,
        marker=".",
        label="separation ratio rho",
    )
    axes.plot(
        seen,
        [entry.alignment for entry in solution.history],
        color="#009E73",
        linewidth=1.2,
        label="alignment",
    )
    axes.axhline(
        solution.bound, color=_LIMIT, linestyle="--", label=f"bound on rho, {solution.bound:.3f}"
    )
    axes.axhline(
        solution.rho, color=_AFTER, linestyle=":", label=f"rho returned, {solution.rho:.3f}"
    )
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("passes over all pairs")
    axes.set_ylabel("rho, alignment")
    axes.set_title("Separation by pass", fontsize=11)


def _draw_costs(
    axes: Axes,
    solution: Solution,
    baselines: Mapping[str, Quality],
    front: Sequence[tuple[float, Solution]],
    measure: Literal["decrease", "cosine"],
) -> None:
    name = "alignment" if measure == "decrease" else "cosine"
    if front:
        points = sorted((getattr(one, name), one.rho) for _, one in front)
        floors = [floor for floor, _ in front]
        axes.plot(
            *zip(*points, strict=True),
            color=_FRONT,
            marker="o",
            label=f"floors {min(floors):g} to {max(floors):g}",
        )
    for index, (title, quality) in enumerate(baselines.items()):
        axes.scatter(
            getattr(quality, name),
            quality.rho,
            marker=_MARKERS[index % len(_MARKERS)],
            color=_BASELINE_COLOURS[index % len(_BASELINE_COLOURS)],
            s=55,
            zorder=3,
            clip_on=False,
            label=title,
        )
    axes.scatter(
        getattr(solution, name),
        solution.rho,
        marker="*",
        color=_AFTER,
        s=190,
        zorder=4,
        label="this update",
    )
    axes.axhline(solution.bound, color=_LIMIT, linestyle="--", label="bound on rho")
    axes.set_xlim(min(0.0, axes.get_xlim()[0]), 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("alignment with the momentum" if name == "alignment" else "cosine with it")
    axes.set_ylabel("separation ratio rho")
    axes.set_title(f"Separation against {name}", fontsize=11)
