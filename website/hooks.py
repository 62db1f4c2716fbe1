"""The hooks of MkDocs: formulas, results and the pages that come from elsewhere."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from website import mathml, results

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog and the figures, drawn from the committed results."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    files.append(File.generated(config, "changelog.md", content=changelog))
    for name in results.FIGURES:
        files.append(File.generated(config, f"results/{name}.svg", content=results.figure(name)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the tables of results where a page asks for them."""
    return results.filled(markdown)


def on_page_content(html: str, **_: object) -> str:
    """Draw the formulas."""
    return mathml.rendered(html)
