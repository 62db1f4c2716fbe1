"""The figure shows three panels with the data in them, and its text does not overlap."""

import dataclasses
import math
from itertools import combinations

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rowsep.packing import baselines, bounds, cloud
from rowsep.packing.cli import plot
from rowsep.packing.solution import Progress, Solution

V, D = 60, 8
PASSES = 5


@pytest.fixture
def momentum():
    generator = torch.Generator().manual_seed(0)
    return cloud.centre(torch.randn(V, D, generator=generator, dtype=torch.float64))


def solution_of(A, update):
    """Return `update` as if a solver had made it of `A` in `PASSES` passes."""
    rho, delta, diameter, closest, farthest = cloud.ratio(update)
    quality = baselines.quality(A, update)
    history = [Progress(k + 1, rho * (k + 1) / PASSES, 0.9, 0.9) for k in range(PASSES)]
    return Solution(
        update=update,
        delta=delta,
        diameter=diameter,
        rho=rho,
        alignment=quality.alignment,
        cosine=quality.cosine,
        bound=bounds.rho_upper_bound(*A.shape),
        closest=closest,
        farthest=farthest,
        passes=PASSES,
        met=True,
        stop="the passes are spent",
        state=update,
        history=tuple(history),
    )


@pytest.fixture
def drawn(momentum):
    solution = solution_of(momentum, baselines.polar(momentum))
    compared = {
        name: baselines.quality(momentum, one(momentum))
        for name, one in baselines.BASELINES.items()
    }
    front = [(0.3, solution), (0.5, solution_of(momentum, momentum))]
    return plot.figure(momentum, solution, compared, front)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_figure_is_written(tmp_path, drawn, suffix):
    path = tmp_path / f"figure{suffix}"
    drawn.savefig(path)
    assert path.stat().st_size > 5000


def test_panels_show_the_data(momentum, drawn):
    solution = solution_of(momentum, baselines.polar(momentum))
    distances, passes, costs = drawn.axes
    assert distances.get_yscale() == "log"
    for patch in distances.patches:
        assert sum(patch.get_data().values) == pytest.approx(1.0)
    seen = next(line for line in passes.lines if len(line.get_xdata()) == PASSES)
    assert list(seen.get_ydata()) == [entry.rho for entry in solution.history]
    assert any(line.get_ydata()[0] == solution.bound for line in passes.lines)
    points = [tuple(one.get_offsets()[0]) for one in costs.collections]
    assert (solution.alignment, solution.rho) in points
    assert len(points) == len(baselines.BASELINES) + 1
    assert set(baselines.BASELINES) <= set(labels(costs))


def test_front_and_baselines_may_be_missing(momentum):
    solution = solution_of(momentum, baselines.polar(momentum))
    costs = plot.figure(momentum, solution, {}).axes[2]
    assert not any("floors" in label for label in labels(costs))


def test_cosine_may_be_the_horizontal_axis(momentum):
    solution = solution_of(momentum, baselines.polar(momentum))
    costs = plot.figure(momentum, solution, {}, measure="cosine").axes[2]
    assert costs.collections[0].get_offsets()[0][0] == solution.cosine
    assert "cosine" in costs.get_xlabel()


@pytest.mark.parametrize("update", ["zero", "two rows"])
def test_degenerate_updates_are_drawn(tmp_path, momentum, update):
    if update == "zero":
        A, S = momentum, torch.zeros_like(momentum)
    else:
        A = S = cloud.centre(momentum[:2])
    solution = dataclasses.replace(solution_of(A, S), history=())
    plot.figure(A, solution, {}).savefig(tmp_path / "figure.png")


def test_text_does_not_overlap(drawn):
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [drawn.texts[0], *(text for axes in drawn.axes for text in visible_texts(axes))]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    for (one, box), (other, its_box) in combinations(boxes, 2):
        assert not box.overlaps(its_box), (one, other)


def visible_texts(axes):
    """Yield the title, the axis labels, the legend's texts and the tick labels in view."""
    yield from (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_legend().get_texts())
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        for tick in axis.get_major_ticks():
            if low <= tick.get_loc() <= high:
                yield tick.label1


def test_histogram_of_a_simplex_is_one_bin():
    shares, pairs = plot.distance_histogram(torch.eye(10), bins=50)
    assert pairs == 45
    assert shares[-1] == 1.0


def test_histogram_counts_each_pair_once():
    line = torch.arange(1300.0)[:, None]  # more rows than one block
    shares, pairs = plot.distance_histogram(line, bins=1299)
    assert pairs == math.comb(1300, 2)
    assert shares.sum().item() == pytest.approx(1.0)
    # distance k occurs 1300 - k times; the last bin holds 1298 and 1299
    assert shares[-1].item() * pairs == pytest.approx(3)
    assert shares[10].item() * pairs == pytest.approx(1300 - 10)


def test_sampled_histogram_is_near_the_exact_one(monkeypatch, momentum):
    exact, _ = plot.distance_histogram(momentum, bins=10)
    monkeypatch.setattr(plot, "EXACT_ROWS", 10)
    monkeypatch.setattr(plot, "SAMPLED_PAIRS", 200_000)
    sampled, pairs = plot.distance_histogram(momentum, bins=10)
    assert pairs == 200_000
    # a share p of n pairs is binomial: five deviations sqrt(p/n)
    assert ((sampled - exact).abs() <= 5 * (exact / pairs).sqrt() + 1e-9).all()
    again, _ = plot.distance_histogram(momentum, bins=10)
    assert torch.equal(sampled, again)
