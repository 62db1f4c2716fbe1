"""The report, opened from disk in a headless Chromium: no errors, no network, working controls."""

import math
import os
import shutil
from dataclasses import replace

import pytest
from playwright.sync_api import expect, sync_playwright
from typer.testing import CliRunner

from experiments.lm_head import plan
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.presets import METHODS, PRESETS, SMOKE, Preset, Stage
from experiments.lm_head.results import Results
from experiments.report import __main__ as command
from experiments.report import committed, details, page, style
from experiments.report.head import Experiment, MissingResultsError
from experiments.table import read

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NAMES = ("adamw_95", "row_norm", "separation_65", "muon")
SMALL, LARGE = (replace(SMOKE, vocab=vocab) for vocab in (320, 512))
PRESET = Preset(
    stages=tuple(Stage(training=training, methods=NAMES) for training in (SMALL, LARGE)),
    seeds=(1, 2),
    lrs=2,
    extensions=0,
)
BETTER = {"adamw_95": 0.0, "row_norm": -0.3, "separation_65": 0.2, "muon": 0.0}
"""By how much each loss is below AdamW's, which the page must find out from the runs."""


def outcome(run):
    """What `train` would return of a run, from a formula."""
    best = METHODS[run.name].lrs[1]
    loss = 4.0 - BETTER[run.name] + 0.01 * run.seed + abs(math.log(run.lr / best)) / 10
    loss += 0.001 * run.seed * (run.name != "adamw_95")
    diverged = run.name == "row_norm" and run.lr > 1.5 * best
    evaluations = [{"step": 6, "loss": loss + 1, "band_losses": [loss] * len(BANDS)}]
    if run.name == "row_norm":
        del evaluations[0]["band_losses"]
    return {
        "val_loss": math.inf if diverged else loss,
        "bits_per_byte": math.inf if diverged else loss / 2,
        "band_losses": [] if diverged else [loss + band for band in BANDS],
        "diverged": diverged,
        "seconds": 1.0,
        "head_share": 0.25,
        "history": {
            "train": [{"step": step, "loss": loss + 1 / step} for step in (4, 8, 12)],
            "evaluations": evaluations,
            "measures": [
                {"step": step, "rho": step / 8, "alignment": 0.7, "backward_rank": step + run.seed}
                | {"logit_rms_centred": 2.0, "log_odds": 0.1 * step, "log_odds_bound": 0.5 + step}
                for step in (1, 3, 4)
            ],
        },
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with all runs of three methods, and of Muon one run of the sweep at SMALL."""
    folder = tmp_path_factory.mktemp("results")
    store, losses = Results(folder), {}
    while runs := plan.pending(PRESET, losses, NAMES[:3]):
        for run in runs:
            found = outcome(run)
            store.add(run, found, corpus="none", command="python -m <fixture>")
            losses[run.key] = found["val_loss"]
    muon = plan.pending(PRESET, losses, ("muon",))[0]
    store.add(muon, outcome(muon), corpus="none", command="python -m <fixture>")
    return folder


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    """The page in a file."""
    output = tmp_path_factory.mktemp("page") / "new" / "report.html"
    page.write(output, PRESET, "fixture", results)
    return output


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium of the system."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = f"no browser here ({', '.join(BROWSERS)}): apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=found)
        yield launched
        launched.close()


@pytest.fixture
def opened(browser, report):
    """Opens the page at a size in a colour scheme; at the end nothing may have gone wrong."""
    contexts, messages, requests = [], [], []

    def open_(width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(report.as_uri())
        tab.wait_for_selector("[data-figure=minimal-diameter] .scatterlayer .trace")
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert messages == []
    assert {url for url in requests if not url.startswith("data:")} <= {report.as_uri()}


def visible_rows(tab):
    return [row.inner_text().split() for row in tab.locator("#board tbody tr:visible").all()]


def traces(tab, figure):
    return tab.locator(f"[data-figure={figure}] .scatterlayer .trace").count()


def test_every_section_has_its_figure_and_source(opened):
    tab = opened()
    sections = tab.locator("main section")
    assert sections.count() == 12
    for section in sections.all():
        name = section.locator("h2").inner_text()
        assert section.locator(".main-svg").count() > 0, name
        assert section.locator(".plot").get_attribute("aria-label") == name
        assert "python -m " in section.locator(".source").inner_text()


def test_what_the_intervals_support_comes_from_the_runs(opened):
    tab = opened()
    said = tab.get_by_label("What the intervals support").inner_text()
    assert "Lower loss than AdamW [adamw_95]: separation_65." in said
    assert "Higher loss than AdamW [adamw_95]: row_norm." in said
    assert "muon (sweep: 1 of at least 2 learning rates)" in said
    rows = {row[0]: row for row in visible_rows(tab)}
    assert list(rows) == ["separation_65", "adamw_95", "row_norm", "muon"], "best first"
    assert "better" in rows["separation_65"] and "worse" in rows["row_norm"]
    assert rows["muon"][1:3] == ["sweep:", "1"], "no numbers of what is not finished"


def test_theme_follows_the_system_and_the_button(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('[data-figure=curves] .xtick text')).fill"
    tab = opened(scheme="dark")
    button = tab.get_by_role("button", name="Dark theme")
    expect(button).to_have_attribute("aria-pressed", "true")
    dark = tab.evaluate(background), tab.evaluate(ink)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    light = tab.evaluate(background), tab.evaluate(ink)
    assert light[0] != dark[0] and light[1] != dark[1]
    # the browser tells of a change at the next frame, and of two within one frame not at all
    tab.evaluate(
        "matchMedia('(prefers-color-scheme: dark)')"
        ".addEventListener('change', () => { window.told = true })"
    )
    tab.emulate_media(color_scheme="light")
    tab.wait_for_function("window.told")
    tab.emulate_media(color_scheme="dark")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert (tab.evaluate(background), tab.evaluate(ink)) == dark


def test_vocabulary_selects_rows_sentences_and_figures(opened):
    tab = opened()
    assert traces(tab, "sensitivity") == 4
    tab.get_by_label("Vocabulary").select_option("512")
    assert traces(tab, "sensitivity") == 3, "Muon has no run at 512"
    assert ["muon", "not", "begun"] in visible_rows(tab)
    assert traces(tab, "rare") == 1, "row_norm has no loss by bands on the way"
    assert tab.get_by_role("button", name="muon").count() == 0
    assert "muon (not begun)" in tab.get_by_label("What the intervals support").inner_text()


def test_methods_can_be_hidden_in_all_figures(opened):
    tab = opened()
    before = traces(tab, "sensitivity"), traces(tab, "frequency")
    chip = tab.get_by_role("button", name="separation_65")
    chip.click()
    assert (traces(tab, "sensitivity"), traces(tab, "frequency")) == tuple(n - 1 for n in before)
    chip.click()
    assert (traces(tab, "sensitivity"), traces(tab, "frequency")) == before


def test_leaderboard_sorts_both_ways_with_blanks_last(opened):
    tab = opened()
    header = tab.get_by_role("columnheader", name="less AdamW's")
    for order, names in (
        ("ascending", ["separation_65", "adamw_95", "row_norm", "muon"]),
        ("descending", ["row_norm", "adamw_95", "separation_65", "muon"]),
    ):
        header.get_by_role("button").click()
        expect(header).to_have_attribute("aria-sort", order)
        assert [row[0] for row in visible_rows(tab)] == names
    tab.get_by_role("columnheader", name="method").get_by_role("button").click()
    assert [row[0] for row in visible_rows(tab)] == sorted(NAMES)
    expect(header).not_to_have_attribute("aria-sort", "descending")


@pytest.mark.parametrize("vocab", ["320", "512"])
def test_nothing_is_wider_than_a_phone(opened, vocab):
    tab = opened(width=375, scheme="dark")
    tab.get_by_label("Vocabulary").select_option(vocab)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    widths = tab.eval_on_selector_all(".plot .main-svg", "all => all.map(e => e.clientWidth)")
    assert max(widths) <= 375


def test_text_of_the_results_cannot_become_markup(report):
    html = report.read_text()
    assert "python -m &lt;fixture&gt;" in html and "<fixture>" not in html


def test_without_other_results_the_page_is_still_made(results, tmp_path, monkeypatch):
    for name in ("SEPARATION", "STEEPEST", "CODES", "FRONT", "QUALITY"):
        monkeypatch.setattr(committed, name, tmp_path / "none.csv")
    assert "Packing quality" in page.build(PRESET, "fixture", results)


def test_a_missing_history_is_named(results, tmp_path):
    (tmp_path / "runs.csv").write_text((results / "runs.csv").read_text())
    with pytest.raises(MissingResultsError, match=r"history.*json is missing, .*restore"):
        page.build(PRESET, "fixture", tmp_path)


def test_details_are_of_the_finished_seeds(results):
    lines = details.details(Experiment(PRESET, results))
    assert [(one.vocab, one.name) for one in lines] == [
        (vocab, name) for vocab in (320, 512) for name in ("separation_65", "adamw_95", "row_norm")
    ], "lowest loss first, Muon has no seed"
    best = lines[0]
    losses = [outcome(run)["val_loss"] for run in finished_runs("separation_65")]
    assert best.bands == pytest.approx([sum(losses) / 2 + band for band in BANDS])
    assert (best.rho, best.alignment) == (3 / 8, 0.7)
    assert best.rank == pytest.approx(4 + 1.5), "of the last logged step, over seeds 1 and 2"
    assert (best.logits, best.log_odds) == (2.0, pytest.approx(0.3))
    assert best.of_bound == pytest.approx(0.4 / 4.5)


def finished_runs(name):
    cell = plan.Cell(SMALL, name)
    return [cell.run(METHODS[name].lrs[1], seed) for seed in PRESET.seeds]


def test_details_are_printed_with_the_bound(results, monkeypatch):
    app = command.typer.Typer()
    app.command()(details.main)
    for arguments, named in (
        (["--preset", "bogus"], "bogus"),
        (["--preset", "gpu", "--results", str(results)], "no finished seed"),
    ):
        refused = CliRunner().invoke(app, arguments)
        said = " ".join(refused.output.replace("│", " ").split())  # within a frame
        assert refused.exit_code == 2 and named in said
    shown = details.markdown(details.details(Experiment(PRESET, results))).splitlines()
    assert len({row.count("|") for row in shown}) == 1 and len(shown) == 2 + 6
    runs = 3 * 2 * (2 + 2) + 1
    said = details.bound_sentence(Experiment(PRESET, results))
    assert said.startswith(f"In {3 * runs} logged steps of {runs} runs")
    assert "more than 0.089 of the bound" in said  # 0.4 / 4.5, rounded up
    monkeypatch.setitem(PRESETS, "fixture", PRESET)
    printed = CliRunner().invoke(app, ["--preset", "fixture", "--results", str(results)]).output
    assert printed.splitlines() == [*shown, "", said]


def luminance(colour):
    """Relative luminance of #rrggbb by WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_method_has_a_look_of_its_own_that_both_themes_show():
    looks = [style.look(name) for name in METHODS]
    assert len({(one["colour"], one["dash"]) for one in looks}) == len(METHODS)
    for colour in (*style.PALETTE, style.GREY):
        for background in style.BACKGROUNDS.values():
            dark, light = sorted((luminance(colour), luminance(background)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (colour, background)


def test_measured_packings_are_drawn_beside_the_codes():
    measured = [{"rows": "64", "dim": "16", "method": "gaussian", "rho": "0.3", "bound": "0.6"}]
    made = committed.quality(read(committed.CODES), measured)
    assert made is not None
    assert (made.data[1].name, made.data[1].x[0], made.data[1].y[0]) == (
        "gaussian, measured",
        4.0,
        0.5,
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (
            ["--preset", "smoke"],
            ["no finished run of preset smoke", "python -m experiments.lm_head"],
        ),
        (["--preset", "large"], ["'large'", "cpu, ablation, gpu"]),
    ],
)
def test_missing_results_are_named_with_their_remedy(tmp_path, arguments, named):
    app = command.typer.Typer()
    app.command()(command.main)
    output = tmp_path / "report.html"
    arguments = [*arguments, "--results", str(tmp_path), "--output", str(output)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 and not output.exists()
    assert all(text in done.output for text in named), done.output
