"""The store loses nothing: what is finished stays, what is damaged is named and never guessed."""

import gzip
import hashlib
import json
import math
import os
from dataclasses import fields, replace

import pytest

from experiments.lm_head import __main__ as command
from experiments.lm_head import results
from experiments.lm_head.record import Record
from experiments.lm_head.results import Results, ResultsError
from tests.experiments.lm_head.tiny import TINY, record, tiny

HISTORY = {
    "train": [{"step": 10, "loss": 7.5}],
    "evaluations": [{"step": 5, "loss": math.inf, "band_losses": [1.0, 2.5]}],
    "measures": [{"step": 1, "rho": 0.25, "row_norms": [0.1, 0.2], "head": {"rank": 3.5}}],
}
MIGRATED = {2048: 478, 8192: 150}
"""How many runs each vocabulary size had when a run was a row of CSV and a file of JSON."""


def test_a_record_comes_back_as_it_was():
    run = replace(tiny("separation_falling_floor"), options={"betas": [0.9, 0.99], "eps": 1e-10})
    kept = record(run, math.inf, diverged=True, band_losses=(), history=HISTORY)
    back = Record.read(kept.line())
    assert back.line() == kept.line() and back.key == run.key
    assert replace(back, run=run) == kept
    for one in fields(Record)[1:]:
        assert type(getattr(back, one.name)) is type(getattr(kept, one.name)), one.name


def test_runs_come_back_in_the_order_in_which_they_were_finished(tmp_path):
    store, wide = Results(tmp_path / "new"), replace(TINY, d=32)
    small = [record(tiny(seed=seed), 1.0 + seed) for seed in (3, 1, 2)]
    large = record(tiny(training=wide), 0.5)
    assert store.records() == [] and store.files() == []
    for one in (small[0], large, *small[1:]):
        store.add(one)
    assert [path.name for path in store.files()] == ["docs-320x16.jsonl.gz", "docs-320x32.jsonl.gz"]
    assert [one.key for one in store.records()] == [one.key for one in (*small, large)]
    assert store.losses() == {one.key: one.val_loss for one in (*small, large)}
    with gzip.open(store.files()[0], "rt") as file:
        assert [json.loads(line)["seed"] for line in file] == [3, 1, 2]


def test_files_grow_at_their_end_alone_and_equal_runs_make_equal_bytes(tmp_path):
    runs = [record(tiny(seed=seed), 1.0) for seed in range(3)]
    stores = Results(tmp_path / "one"), Results(tmp_path / "two")
    before = b""
    for one in runs:
        for store in stores:
            store.add(one)
        now = stores[0].files()[0].read_bytes()
        assert now.startswith(before) and now == stores[1].files()[0].read_bytes()
        before = now


def test_a_run_is_written_once(tmp_path):
    store = Results(tmp_path)
    store.add(record(tiny(), 1.0))
    before = store.files()[0].read_bytes()
    with pytest.raises(ResultsError, match=f"run {tiny().key} .row_norm. is in .* already"):
        store.add(record(tiny(), 2.0))
    assert store.files()[0].read_bytes() == before


def test_a_run_in_two_files_is_refused_with_both_named(tmp_path):
    store = Results(tmp_path)
    store.add(record(tiny(), 1.0))
    (tmp_path / "other.jsonl.gz").write_bytes(store.files()[0].read_bytes())
    with pytest.raises(ResultsError, match=r"other.jsonl.gz, line 1: .*docs-320x16.* already"):
        store.records()


@pytest.mark.parametrize("dying", ["write", "os.fsync", "os.replace"])
def test_a_kill_while_writing_leaves_what_was_there_and_the_checkpoint(
    dying, tmp_path, monkeypatch
):
    store = Results(tmp_path)
    first, second = tiny(seed=1), tiny(seed=2)
    store.add(record(first, 1.0))
    store.checkpoint(second).parent.mkdir()
    store.checkpoint(second).write_text("a state")

    def die(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if dying == "write":
            patch.setattr(results.os, "fsync", lambda file: os.ftruncate(file, 7) or die())
        else:
            patch.setattr(results.os, dying.removeprefix("os."), die)
        with pytest.raises(KeyboardInterrupt):
            store.add(record(second, 2.0))
    assert store.losses() == {first.key: 1.0} and store.checkpoint(second).exists()
    store.add(record(second, 2.0))
    assert store.losses() == {first.key: 1.0, second.key: 2.0}
    assert not store.checkpoint(second).exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        store.files()[0].name,
    ]


@pytest.mark.parametrize("end", [-1, -9, 40, 1])
def test_a_file_cut_short_is_refused_and_left_alone(end, tmp_path):
    store = Results(tmp_path)
    for seed in (1, 2):
        store.add(record(tiny(seed=seed), 1.0))
    (path,) = store.files()
    path.write_bytes(path.read_bytes()[:end])
    cut = path.read_bytes()
    with pytest.raises(ResultsError, match="cut short or damaged .*git checkout -- .*docs-320x16"):
        store.records()
    with pytest.raises(ResultsError, match="cut short"):
        store.add(record(tiny(seed=3), 1.0))
    assert path.read_bytes() == cut


def damaged(**changes):
    content = json.loads(record(tiny(), 1.0).line()) | changes
    return json.dumps({k: v for k, v in content.items() if v is not None}) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (damaged(version=2), "version is 2, expected 1: take a later commit"),
        (damaged(version=None), "no record of a run"),
        ("[1, 2]\n", "no record of a run"),
        ("nonsense\n", "'nonsense' is no record of a run"),
        (damaged(val_loss="4.2"), "val_loss is '4.2', expected a number"),
        (damaged(seconds=None), "not a whole record of version 1: .*seconds"),
        (damaged(lr=None), "not a whole record of version 1: 'lr'"),
        (damaged(colour="red"), "not a whole record of version 1: .*colour"),
        (damaged(training={"width": 3}), "not a whole record of version 1: .*width"),
        (damaged().strip(), "the last line has no end"),
    ],
)
def test_what_is_no_record_of_this_version_is_refused_with_its_place(text, said, tmp_path):
    store = Results(tmp_path)
    store.add(record(tiny(seed=1), 1.0))
    path = store.files()[0]
    path.write_bytes(path.read_bytes() + gzip.compress(text.encode()))
    with pytest.raises(ResultsError, match=rf"docs-320x16.jsonl.gz.*{said}"):
        store.records()


def test_settings_that_came_up_later_have_their_defaults():
    """So a run stays finished when `Training` gets an option: it has the key of today's run."""
    content = json.loads(record(tiny(training=TINY), 1.0).line())
    del content["training"]["tied"], content["training"]["precision"]
    assert Record.read(json.dumps(content)).key == tiny(training=TINY).key


def test_results_are_written_by_one_process_at_a_time(tmp_path):
    store = Results(tmp_path)
    with store.locked(), pytest.raises(RuntimeError, match="another process"):
        with Results(tmp_path).locked():
            pass


def test_the_first_runs_are_kept_to_the_last_digit():
    """Count and digest of all rows and histories as commit 468f13f has them, made from them by

    import csv, hashlib, io, json, subprocess

    def old(name):
        path = f"468f13f:experiments/lm_head/results/{name}"
        return subprocess.check_output(["git", "show", path], text=True)

    digest = hashlib.sha256()
    rows = list(csv.DictReader(io.StringIO(old("runs.csv"))))
    for row in sorted(rows, key=lambda row: row["key"]):
        history = json.loads(old(f"history/{row['key']}.json"))
        digest.update(json.dumps([row, history], sort_keys=True).encode())
    print(len(rows), digest.hexdigest())
    """
    found, records = [], Results(command.HERE / "results").records()
    for vocab, count in MIGRATED.items():
        found += [one for one in records if vocab == one.run.training.vocab][:count]
    digest = hashlib.sha256()
    for one in sorted(found, key=lambda one: one.key):
        digest.update(json.dumps(as_before(one), sort_keys=True).encode())
    assert len(found) == 628
    assert digest.hexdigest() == "9d096aef192a0218aaf5b7ae2fc32cf360d55b1434d4b4f788271bb411cb3eb6"


def as_before(one):
    """The row of text and the history that a run had."""
    settings = {k: v for k, v in one.run.settings().items() if k in SETTINGS}
    plain = ("val_loss", "bits_per_byte", "diverged", "seconds", "head_share", "corpus", "rowsep")
    plain += ("torch", "python", "machine", "commit", "date", "command")
    row = {name: str(value) for name, value in settings.items()}
    row |= {name: json.dumps(settings[name]) for name in ("options", "schedule")}
    row |= {name: str(getattr(one, name)) for name in plain}
    ends = ("0.01", "0.1", "0.5", "1")
    row |= {f"val_loss_top_{e}": str(x) for e, x in zip(ends, one.band_losses, strict=True)}
    return row | {"key": one.key}, {"key": one.key} | settings | one.history


SETTINGS = {
    *("name", "optimizer", "options", "schedule", "lr", "seed", "text", "tokenizer", "vocab", "d"),
    *("layers", "heads", "context", "batch", "steps", "warmup", "cooldown", "hidden_lr"),
    *("embed_lr", "tied", "validation_tokens", "evaluate_tokens", "evaluate_every"),
    *("measure_every", "device", "precision"),
}
"""Of the runs of that commit."""
