"""The site that `make docs` has built, opened from disk in a headless Chromium."""

import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

from rowsep import optim, packing
from rowsep.optim import updates
from rowsep.packing import bounds, codes, pairs

pytestmark = pytest.mark.site

MODULES = (packing, bounds, codes, pairs, optim, updates)
ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (1280, 390)
TEXT = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = []
  while (walk.nextNode()) {
    const inside = walk.currentNode.parentElement.closest("code, pre, math, script, style, .sig")
    if (!inside) found.push(walk.currentNode.data)
  }
  return found.join("\\n")
}"""
RAW = ("$", "\\(", "\\[", "\\frac", "\\sum", "`", "^", "||", ":math:", "_{")
"""What is left of a formula that was not drawn."""


@pytest.fixture(scope="module")
def site():
    """The folder with the pages, as `make docs` has just built it."""
    folder = ROOT / "site"
    assert (folder / "index.html").exists(), "there is no site/: run make docs, which runs this too"
    return folder


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


def test_the_site_opens_from_disk(site, browser):
    """One test for one build: every page at both widths, every link, and the search."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    wrong, links, anchors = [], {}, {}
    tab = browser.new_page()
    listen(tab, wrong)
    for number, page in enumerate(pages):
        tab.goto(page.as_uri())
        for width in WIDTHS if number % 2 else reversed(WIDTHS):  # begin with that of the last page
            tab.set_viewport_size({"width": width, "height": 800})
            wide = tab.evaluate("document.documentElement.scrollWidth")
            wrong += [(page.name, f"{wide} pixels wide at {width}")] * (wide > width)
        text = tab.evaluate(TEXT).split("\n")
        wrong += [(page.name, f"raw: {line}") for line in text if any(s in line for s in RAW)]
        links[page] = tab.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        anchors[page] = set(tab.eval_on_selector_all("[id]", "all => all.map(e => e.id)"))
    tab.close()
    wrong += [(page.name, one) for page in pages for one in links[page] if not leads(one, anchors)]
    assert wrong == []
    assert public() <= {anchor for found in anchors.values() for anchor in found}
    assert "Padded vocabularies" in searched(site, browser, "padding")


def public():
    """The public names, which the reference has as anchors."""
    return {f"{module.__name__}.{name}" for module in MODULES for name in module.__all__}


def listen(tab, wrong):
    """Note what the console says and whatever is not read from disk."""
    tab.on("console", lambda message: wrong.append((tab.url, message.text)))
    tab.on("pageerror", lambda error: wrong.append((tab.url, str(error))))
    tab.on("requestfailed", lambda request: wrong.append((tab.url, request.url)))
    tab.on("request", lambda r: r.url.startswith("file:") or wrong.append((tab.url, r.url)))


def leads(link, anchors):
    """Say whether a link leads to a file of the site and an anchor in it, or elsewhere."""
    parts = urlsplit(link)
    if parts.scheme != "file":
        return parts.scheme in ("http", "https", "mailto")
    path = Path(unquote(parts.path))
    return path.is_file() and (
        not parts.fragment or unquote(parts.fragment) in anchors.get(path, ())
    )


def searched(site, browser, word):
    """What the search finds."""
    tab = browser.new_page()
    tab.goto((site / "index.html").as_uri())
    tab.get_by_role("textbox", name="Search").first.fill(word)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("ul.search li")
    found = tab.locator("ul.search").inner_text()
    tab.close()
    return found
