"""Methods that are shown at once can be told apart, in both themes."""

import math

import pytest

from experiments.lm_head import plan
from experiments.lm_head.presets import METHODS, PRESETS
from experiments.report import committed, marks, style
from experiments.report.head import Experiment
from experiments.table import read
from tests.experiments.lm_head.tiny import finish, record


def luminance(colour):
    """Relative luminance of #rrggbb by WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_method_has_a_mark_of_its_own_and_the_first_share_nothing(preset):
    its = list(Experiment(preset, []).marks.values())
    assert len(its) == len({cell.name for cell in plan.cells(preset)})
    assert len({(one.colour, one.symbol) for one in its}) == len(its)
    assert len({(one.colour, one.dash) for one in its}) == len(its)
    first = its[: marks.SHOWN_FIRST]
    for part in ("colour", "symbol", "character"):
        assert len({getattr(one, part) for one in first}) == len(first)


def test_the_best_of_each_optimiser_are_shown_first():
    """Losses fall along the preset, so the last method of an optimiser is its best."""
    preset = PRESETS["ablation"]
    names = list(dict.fromkeys(cell.name for cell in plan.cells(preset)))

    def loss(run):
        tuned = abs(math.log(run.lr / METHODS[run.name].lrs[2]))
        return 9 - 0.1 * names.index(run.name) + 0.01 * tuned

    done, losses = finish(preset, loss)
    order = list(Experiment(preset, [record(run, losses[run.key]) for run in done]).marks)
    best = {METHODS[name].optimizer: name for name in names}.values()
    assert marks.SHOWN_FIRST == 8 < len(best) < len(names) == len(order)
    assert order[: len(best)] == [name for name in reversed(names) if name in best]
    assert order[len(best) :] == [name for name in reversed(names) if name not in best]


def test_methods_without_a_run_come_last():
    (first, *_) = plan.pending(PRESETS["cpu"], {}, ("muon",))
    order = list(Experiment(PRESETS["cpu"], [record(first, 5.0)]).marks)
    assert order[0] == "muon" and len(order) == 18


def test_both_themes_show_every_colour():
    for colour in (*marks.COLOURS, style.GREY):
        for background in style.BACKGROUNDS.values():
            dark, light = sorted((luminance(colour), luminance(background)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (colour, background)


def test_other_figures_too_show_eight_lines_at_first():
    for made in (
        committed.separation(read(committed.SEPARATION)),
        committed.fronts(read(committed.FRONT)),
        committed.quality(read(committed.CODES), read(committed.QUALITY)),
    ):
        assert made is not None
        drawn = list(made.data)
        assert [one.visible for one in drawn] == [
            True if index < marks.SHOWN_FIRST else "legendonly" for index in range(len(drawn))
        ]
        assert len({(one.marker.color, one.marker.symbol) for one in drawn}) == len(drawn)
