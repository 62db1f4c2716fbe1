r"""LaTeX as MathML, which browsers draw by themselves: no script, no font, no network.

`pymdownx.arithmatex` marks formulas, `\(..\)` in a line and `\[..\]` in a block of its own;
`rendered` replaces them in a page.
"""

import html
import re

from latex2mathml.converter import convert

MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def rendered(page: str) -> str:
    """Return a page of HTML with its formulas as MathML."""
    return MARKED.sub(_formula, page)


def _formula(found: re.Match[str]) -> str:
    tag, bracket, latex = found.groups()
    display = "inline" if bracket == "(" else "block"
    return f'<{tag} class="formula">{convert(html.unescape(latex).strip(), display=display)}</{tag}>'
