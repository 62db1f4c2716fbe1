"""Plans sweep learning rates until the best is bracketed, then compare on paired seeds."""

import math
from dataclasses import replace

import pytest

from experiments.lm_head import plan
from experiments.lm_head.presets import METHODS, PRESETS
from tests.experiments.lm_head.tiny import PLANNED, TINY, finish, tiny, valley


def test_a_plan_sweeps_then_compares_at_the_best():
    done, losses = finish(PLANNED, valley(0.004 * 1.1))
    assert len({run.key for run in done}) == len(done)
    adamw = [run for run in done if run.name == "adamw_95"]
    assert [run.lr for run in adamw[:5]] == list(METHODS["adamw_95"].lrs)
    assert [(run.lr, run.seed) for run in adamw[5:]] == [(0.004, 1), (0.004, 2)]
    assert plan.forecast(PLANNED, losses) == 0


def test_a_sweep_goes_on_while_the_best_is_on_the_edge():
    cell = plan.Cell(TINY, "adamw_95")
    done, losses = finish(PLANNED, valley(0.03))
    tried, over = plan.sweep(cell, PLANNED, losses)
    assert over and tried == [1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3]
    assert plan.best_lr(cell, PLANNED, losses) == 32e-3
    assert not plan.on_edge(cell, PLANNED, losses)
    _, losses = finish(PLANNED, valley(1e-9))
    tried, over = plan.sweep(cell, PLANNED, losses)
    assert over and len(tried) == 7 and plan.on_edge(cell, PLANNED, losses)


def test_diverged_runs_are_never_the_best():
    cell = plan.Cell(TINY, "adamw_95")
    _, losses = finish(PLANNED, lambda run: math.inf if run.lr > 0.003 else -run.lr)
    assert plan.best_lr(cell, PLANNED, losses) == 2e-3


def test_the_first_stage_is_finished_first_and_seeds_grow_evenly():
    preset = PRESETS["cpu"]
    done, _ = finish(preset, lambda run: abs(math.log(run.lr / METHODS[run.name].lrs[2])))
    first = preset.stages[0].methods
    assert {run.name for run in done[: 10 * len(first)]} == set(first)
    assert [run.name for run in done[20:24]] == list(first)
    assert [run.seed for run in done[20:28]] == [1] * 4 + [2] * 4
    assert {run.training.vocab for run in done} == {2048, 8192}


def test_every_preset_can_be_planned_and_keys_differ():
    for preset in PRESETS.values():
        runs = plan.pending(preset, {})
        assert len({run.key for run in runs}) == len(runs)
    planned = {cell.name for preset in PRESETS.values() for cell in plan.cells(preset)}
    assert planned == set(METHODS), "a method that no preset runs"


def test_a_key_depends_on_everything_but_the_name():
    run = tiny()
    assert replace(run, name="other").key == run.key
    changes = [{"lr": 1.0}, {"seed": 9}, {"options": {"center": False}}, {"optimizer": "Muon"}]
    changes += [{"training": replace(TINY, steps=7)}, {"schedule": {"momentum": (0.9, 0.95)}}]
    assert len({run.key, *(replace(run, **change).key for change in changes)}) == 7


def test_only_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="no method adam here"):
        plan.cells(PLANNED, ("adam",))
