"""The report, opened from disk in a headless Chromium: no errors, no network, working controls."""

import os
import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright
from typer.testing import CliRunner

from experiments.lm_head import statements
from experiments.lm_head.presets import METHODS, PRESETS
from experiments.lm_head.results import Results
from experiments.report import __main__ as command
from experiments.report import committed, page
from experiments.table import read
from tests.experiments.report.runs import NAMES, PRESET

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    """The page in a file."""
    output = tmp_path_factory.mktemp("page") / "new" / "report.html"
    page.write(output, PRESET, "fixture", results)
    return output


@pytest.fixture(scope="module")
def committed_runs(tmp_path_factory):
    """The page of the runs that are kept with the experiment."""
    output = tmp_path_factory.mktemp("committed") / "report.html"
    page.write(output, PRESETS["cpu"], "cpu", command.RESULTS)
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
    contexts, messages, requests, files = [], [], [], set()

    def open_(width=1200, scheme="light", page=report):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        files.add(page.as_uri())
        tab.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri())
        tab.wait_for_selector("[data-figure=minimal-diameter] .scatterlayer .trace")
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert messages == []
    assert {url for url in requests if not url.startswith("data:")} <= files


def visible_rows(tab):
    """The words of each row that is shown, by the key of its method, in their order."""
    rows = tab.locator("#board tbody tr:visible").all()
    return {row.get_attribute("data-method"): row.inner_text().split() for row in rows}


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
    reference = "the best AdamW (AdamW, beta2 0.95)"
    assert f"Lower loss than {reference}: Row separation, floor 0.65." in said
    assert f"Higher loss than {reference}: Row normalisation." in said
    assert "Muon (sweep: 1 of at least 2 learning rates)" in said
    rows = visible_rows(tab)
    assert list(rows) == ["separation_65", "adamw_95", "row_norm", "muon"], "best first"
    assert "better" in rows["separation_65"] and "worse" in rows["row_norm"]
    assert "sweep: 1 of at least 2" in " ".join(rows["muon"])
    assert not re.search(r"\d\.\d", " ".join(rows["muon"])), "no numbers of what is not finished"


def test_the_answer_is_the_first_thing_said(opened, results):
    said = statements.answer(PRESET, Results(results).records())
    assert said.startswith("Row separation, floor 0.65 beats the best-tuned AdamW")
    tab = opened()
    assert tab.locator("h1 + #answer").inner_text() == said
    assert tab.evaluate("document.querySelector('#answer').getBoundingClientRect().bottom") < 300


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
    assert "not begun" in " ".join(visible_rows(tab)["muon"])
    assert traces(tab, "rare") == 1, "row_norm has no loss by bands on the way"
    assert tab.get_by_role("button", name="Muon").count() == 0
    assert "Muon (not begun)" in tab.get_by_label("What the intervals support").inner_text()


def test_methods_can_be_hidden_in_all_figures(opened):
    tab = opened()
    before = traces(tab, "sensitivity"), traces(tab, "frequency")
    chip = tab.get_by_role("button", name="Row separation, floor 0.65")
    chip.click()
    assert (traces(tab, "sensitivity"), traces(tab, "frequency")) == tuple(n - 1 for n in before)
    chip.click()
    assert (traces(tab, "sensitivity"), traces(tab, "frequency")) == before


def marks_shown(tab, figure):
    """Colour and symbol of every method that a figure shows."""
    return tab.evaluate(
        """(name) => document.querySelector(`[data-figure=${name}]`).data
            .filter((trace) => trace.meta && trace.visible)
            .map((trace) => [trace.meta, trace.marker.color, trace.marker.symbol])""",
        figure,
    )


def test_of_many_methods_eight_are_shown_and_the_rest_are_one_click_away(opened, committed_runs):
    tab = opened(page=committed_runs)
    button = tab.get_by_role("button", name="All methods")
    figures = ("leaderboard", "curves", "differences", "sensitivity", "rho", "frequency", "rare")
    for pressed, methods in (("false", 8), ("true", 18), ("false", 8)):
        expect(button).to_have_attribute("aria-pressed", pressed)
        assert len(visible_rows(tab)) == methods
        for figure in figures:
            shown = {tuple(one) for one in marks_shown(tab, figure)}
            assert methods - 1 <= len({name for name, *_ in shown}) <= methods, "AdamW is zero"
            assert len({(colour, symbol) for _, colour, symbol in shown}) == len(shown)
        button.click()
    tab.get_by_role("button", name="Steepest step").click()
    assert len(visible_rows(tab)) == 18 - 1


def test_leaderboard_sorts_both_ways_with_blanks_last(opened):
    tab = opened()
    header = tab.get_by_role("columnheader", name="loss minus the best AdamW's")
    for order, names in (
        ("ascending", ["separation_65", "adamw_95", "row_norm", "muon"]),
        ("descending", ["row_norm", "adamw_95", "separation_65", "muon"]),
    ):
        header.get_by_role("button").click()
        expect(header).to_have_attribute("aria-sort", order)
        assert list(visible_rows(tab)) == names
    tab.get_by_role("columnheader", name="method").get_by_role("button").click()
    assert list(visible_rows(tab)) == sorted(NAMES, key=lambda name: METHODS[name].title)
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
