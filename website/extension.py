"""What Sphinx is told: formulas as MathML, docstrings and pages typeset, results put in."""

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

from website import results, typeset

logger = logging.getLogger(__name__)

MADE = "Create new instance of "
"""How Python documents what makes a named tuple."""
GENERATED = "generated"
"""Folder of the figures beside the pages; git ignores it."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", _figures)
    app.connect("source-read", _page)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="formula">{_mathml(node)}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.math | nodes.math_block) -> str:
    """Return a formula as MathML, "" with a warning if it cannot be read."""
    try:
        return tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        logger.warning("formula %s: %s", node.astext(), error, location=node)
        return ""


def _figures(app: Sphinx) -> None:
    folder = Path(app.srcdir) / GENERATED
    folder.mkdir(exist_ok=True)
    for name in results.FIGURES:
        path, drawn = folder / f"{name}.svg", results.figure(name)
        if not path.exists() or path.read_text() != drawn:
            path.write_text(drawn)


def _page(_app: Sphinx, _name: str, source: list[str]) -> None:
    source[0] = typeset.page(results.filled(source[0]))


def _docstring(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    written = (line for line in lines if not line.startswith(MADE))
    lines[:] = typeset.docstring("\n".join(written)).split("\n")
