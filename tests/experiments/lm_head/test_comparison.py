"""Differences are paired, intervals are Student's, and sentences say what they support."""

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from experiments.lm_head import comparison, plan, statements, summary
from experiments.lm_head.presets import METHODS, Preset, Stage
from tests.experiments.lm_head.tiny import PLANNED, TINY, level, record, records, valley


def test_intervals_are_those_of_scipy():
    differences = torch.randn(7, generator=torch.Generator().manual_seed(4)).tolist()
    found = comparison.paired_interval(differences)
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx(sum(differences) / 7)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([-1.0, -1.1, -0.9], "better"),
        ([1.0, 1.1, 0.9], "worse"),
        ([-1.0, 1.1, 0.2], "not told apart"),
        ([-1.0], "too few seeds"),
        ([], "too few seeds"),
        ([1.0, math.inf], "not told apart"),
    ],
)
def test_verdicts_need_an_interval_on_one_side(differences, verdict):
    assert comparison.paired_interval(differences).verdict == verdict


def test_the_comparison_pairs_seeds():
    """A difference much smaller than what seeds differ by is found when it is the same in each."""

    def loss(run):
        valley = abs(math.log(run.lr / METHODS[run.name].lrs[2]))
        return valley + 10 * run.seed + (0.01 + 0.001 * run.seed) * (run.name == "row_norm")

    adamw, row_norm = comparison.summarise(PLANNED, records(PLANNED, loss))
    assert (adamw.name, row_norm.name) == ("adamw_95", "row_norm")
    assert adamw.loss == pytest.approx(15.0) and adamw.seeds == 2
    assert row_norm.to_adamw.mean == pytest.approx(0.0115)
    assert adamw.to_row_norm.mean == pytest.approx(-0.0115)
    assert adamw.to_adamw.low == adamw.to_adamw.high == 0.0


def test_differences_to_a_named_method_are_paired_and_need_its_seeds():
    preset = replace(PLANNED, seeds=(1, 2, 3))

    def noisy(run):  # the seeds' own level is far above what the methods differ by
        return level(run) + 10 * run.seed

    done = records(preset, noisy)
    (one,) = comparison.differences(preset, done, "adamw_95")
    assert (one.name, one.vocab, one.loss) == ("row_norm", TINY.vocab, pytest.approx(20.52))
    half = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(3)
    assert one.interval.mean == pytest.approx(0.52) and one.interval.pairs == 3
    assert one.interval.high - one.interval.mean == pytest.approx(half)
    (back,) = comparison.differences(preset, done, "row_norm")
    assert back.interval.mean == pytest.approx(-0.52)
    table = summary.markdown_differences([one], "adamw_95").splitlines()
    assert "loss minus that of AdamW, beta2 0.95" in table[0]
    assert (
        table[2]
        == f"| {TINY.vocab} | Row normalisation | 3 | 20.5200 | +0.5200 ± {half:.4f} | worse |"
    )

    only_swept = [one for one in done if one.run.seed == preset.sweep_seed]
    for unfinished in ([], only_swept):
        with pytest.raises(ValueError, match="no finished seed of row_norm"):
            comparison.differences(preset, unfinished, "row_norm")
    with pytest.raises(ValueError, match="no method bogus here"):
        comparison.differences(preset, done, "bogus")


def test_progress_and_statements_name_what_is_open():
    done = records(PLANNED, level)

    def states(kept):
        return [one.state for one in comparison.progress(PLANNED, kept)]

    def texts(kept):
        return " ".join(one.text for one in statements.statements(PLANNED, kept))

    assert states(done) == ["finished", "finished"]
    assert "Higher loss than the best AdamW (AdamW, beta2 0.95): Row normalisation." in texts(done)
    assert "Lower loss than row normalisation: AdamW, beta2 0.95." in texts(done)
    assert "Not finished" not in texts(done)
    one_short = [one for one in done if (one.run.name, one.run.seed) != ("row_norm", 2)]
    assert states(one_short) == ["finished", "1 of 2 seeds"]
    assert "Not finished: Row normalisation (1 of 2 seeds)." in texts(one_short)
    assert "than" not in texts(one_short), "one seed supports nothing"
    assert states([]) == ["not begun", "not begun"]
    assert "No seed of AdamW is finished" in texts([])
    cell = plan.cells(PLANNED)[1]
    begun = [record(cell.run(cell.method.lrs[1], PLANNED.sweep_seed), 1.0)]
    assert states(begun) == ["not begun", "sweep: 1 of at least 5 learning rates"]


def better_by(by):
    """Losses of a plan over two sizes: `by[V][method]` below AdamW's, alike but for 0.01 seed."""

    def loss(run):
        middle = valley(METHODS[run.name].lrs[2])(run)
        gain = by[run.training.vocab].get(run.name, 0.0) * (1 + 0.01 * run.seed)
        return middle + 5 - gain + 0.1 * run.seed

    return loss


def test_the_answer_is_the_method_that_beats_adamw_by_the_most_with_its_interval():
    sizes = (TINY, replace(TINY, vocab=330))
    names = ("adamw_95", "row_norm", "muon")
    preset = Preset(stages=tuple(Stage(training=t, methods=names) for t in sizes), seeds=(1, 2))

    def said(small, large):
        return statements.answer(preset, records(preset, better_by({320: small, 330: large})))

    half = stats.t.ppf(0.975, 1) * 0.01 * 0.5 / 2  # two differences 0.5 * 0.01 apart
    assert said({"muon": 0.5, "row_norm": 0.2}, {"muon": 1.0}) == (
        "Muon beats the best-tuned AdamW (AdamW, beta2 0.95) by the most: "
        f"0.5075 ± {half:.4f} nats a token at V = 320 (2 seeds) and "
        f"1.0150 ± {2 * half:.4f} nats a token at V = 330 (2 seeds), with 95 % intervals."
    )
    mixed = said({"row_norm": 0.2}, {"row_norm": -0.1, "muon": -0.1})
    assert mixed.startswith("Row normalisation beats the best-tuned AdamW")
    assert "no method beats the best-tuned AdamW (AdamW, beta2 0.95) at V = 330." in mixed
    assert statements.answer(preset, []) == (
        "No AdamW has finished a seed at V = 320 and at V = 330, so nothing is compared there."
    )


def test_the_adamw_of_most_seeds_is_the_reference_until_all_are_finished():
    methods = [("adamw_95", 5, 2.0), ("adamw_99", 2, 1.0), ("row_norm", 5, 0.5)]
    assert comparison.best_adamw(methods) == "adamw_95"
    methods[1] = ("adamw_99", 5, 1.0)
    assert comparison.best_adamw(methods) == "adamw_99"
    assert comparison.best_adamw([("adamw_95", 0, math.nan), ("muon", 1, 1.0)]) is None
