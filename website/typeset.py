"""Which parts of docstrings and pages are formulas.

A code span is a formula if it holds a sign of mathematics that is no Python: a norm, a root, a
power, a subscript of one letter, a relation. So is a power in the text. An indented block of a
docstring is one if it holds a relation.
"""

import re
import textwrap

from website.ascii_formulas import GREEK, latex

FORMULA = re.compile(
    r"\|\||\bsqrt\b|\^|\b(?:sum|max|min|sup)_|<[^<>=]+,[^<>=]+>|[<>]=|<-|\b\w_(?:[ij]{1,2}|\d)\b"
    rf"|^[\w() +-]+ ?[/<>] ?[\w() +-]+$|^(?:\w|{'|'.join(GREEK)})(?:\(\w\))? = \w"
)
CODE = re.compile(r"\"|\w\.\w*[A-Za-z]|\*\*|\w=\w|->|\w\(\)|^\w+/\w+\.|\[\d|impl|__|^[\w-]+/$")
POWER = r"\b\w+\^(?:\([^()]*\)|-?\w+(?:\.\d+)?)"
SPAN = re.compile(
    rf"`(?P<code>[^`]+)`(?=(?P<next>\w?))|(?P<power>{POWER})|docs/(?P<page>[\w/-]+)\.md"
)
BLOCK = re.compile(r"(?<=\n\n)(?: {4}.*(?:\n|$))+")
RELATION = re.compile(r"=|<-|\|\||<\w+, ?\w+>")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def is_formula(span: str) -> bool:
    """Say whether a code span is a formula rather than code."""
    return bool(FORMULA.search(span)) and not CODE.search(span)


def page(markdown: str) -> str:
    """Return a page of Markdown with the code spans that are formulas between dollars."""
    parts = FENCED.split(markdown)
    parts[::2] = (SPAN.sub(_dollars, part) for part in parts[::2])
    return "".join(parts)


def docstring(text: str) -> str:
    """Return a docstring as reStructuredText, with its formulas in the role and directive `math`.

    Other code spans get the two backticks of that language, other blocks stay as they are, and
    pages of the docs become links.
    """
    parts: list[str] = []
    end = 0
    for block in BLOCK.finditer(text):
        parts += [SPAN.sub(_role, text[end : block.start()]), _directive(block.group())]
        end = block.end()
    return "".join([*parts, SPAN.sub(_role, text[end:])])


def _dollars(span: re.Match[str]) -> str:
    formula = _formula(span)
    return span[0] if formula is None else f"${latex(formula)}$"


def _role(span: re.Match[str]) -> str:
    if span["page"]:
        return f":doc:`/{span['page']}`"
    formula = _formula(span)
    markup = f"``{span['code']}``" if formula is None else f":math:`{latex(formula)}`"
    return markup + "\\ " * bool(span["next"])  # markup ends before a letter only with a glue


def _formula(span: re.Match[str]) -> str | None:
    if span["power"] or span["page"]:
        return span["power"]
    return span["code"] if is_formula(span["code"]) else None


def _directive(block: str) -> str:
    lines = textwrap.dedent(block).rstrip("\n").split("\n")
    if not any(map(RELATION.search, lines)):
        return ".. code-block:: text\n\n" + block + "\n"
    rows = (r"\qquad " * line.startswith(" ") + latex(line) for line in lines)
    aligned = " \\\\\n".join(f"    & {row}" for row in rows)
    return ".. math::\n\n    \\begin{aligned}\n" + aligned + "\n    \\end{aligned}\n\n"
