"""A picture of few points in the plane or in space: who is nearest to whom, and who farthest.

Drawn on `matplotlib.figure.Figure` objects, so that neither a display nor pyplot's state is needed.
"""

import matplotlib.collections
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection
from torch import Tensor

from ..point_sets.configuration import Configuration

_NEAR, _FAR, _POINT = "#0072B2", "#D55E00", "#000000"  # Okabe and Ito (2008)
ACTIVE = 1e-9
"""Pairs within this part of the smallest or largest squared distance are drawn."""


def configuration_figure(configuration: Configuration) -> Figure:
    """Draw the points with the pairs at the smallest and at the largest distance.

    Args:
        configuration: of points in R^2 or R^3.

    Raises:
        ValueError: the points are in another dimension.
    """
    dim = configuration.dim
    if dim not in (2, 3):
        raise ValueError(f"points in R^{dim} cannot be drawn: only those in R^2 and R^3 can")
    points = configuration.points
    near, far = active_pairs(points)
    drawn = Figure(figsize=(6.0, 6.6), layout="constrained")
    axes = drawn.add_subplot(projection="3d" if dim == 3 else None)
    kind = Line3DCollection if dim == 3 else matplotlib.collections.LineCollection
    for pairs, colour, width, name in (
        (far, _FAR, 0.9, f"{len(far)} pairs at the largest distance"),
        (near, _NEAR, 1.8, f"{len(near)} pairs at the smallest"),
    ):
        segments = [points[[i, j]].numpy() for i, j in pairs]
        axes.add_collection(kind(segments, colors=colour, linewidths=width, label=name))
    axes.scatter(*points.T.numpy(), color=_POINT, s=26, zorder=3)
    low, high = points.amin(dim=0), points.amax(dim=0)
    half = 0.5 * float((high - low).max())
    for axis, middle in zip("xyz", (0.5 * (low + high)).tolist(), strict=False):
        axes.set(**{f"{axis}lim": (middle - half, middle + half)})
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)
    axes.set_title(
        f"{configuration.num_points} points in R^{dim}: "
        f"squared ratio {float(configuration.ratio_squared):.10f}"
    )
    return drawn


def active_pairs(points: Tensor) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the pairs i < j at the smallest distance and those at the largest, to 1e-9.

    Args:
        points: shape (n, d), float64, n >= 2.
    """
    squares = (points[:, None] - points[None]).square().sum(dim=2)
    upper = squares.new_ones(squares.shape).triu(1).bool()
    least, most = squares[upper].min(), squares[upper].max()
    near = (upper & (squares <= least * (1 + ACTIVE))).nonzero().tolist()
    far = (upper & (squares >= most * (1 - ACTIVE))).nonzero().tolist()
    return [tuple(pair) for pair in near], [tuple(pair) for pair in far]
