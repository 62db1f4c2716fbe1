r"""Formulas in plain text, which a terminal shows as they are, as LaTeX.

    <A,S> / (D(S) sqrt(d/(2(d+1))) sum_i ||a_i||)

becomes `\langle A,S\rangle/(D(S)\sqrt{d/(2(d+1))}\sum_{i}\lVert a_{i}\rVert)`. The notation:
`||x||` or `norm(x)` a norm, `<a,b>` an inner product, `x_ij` and `x_{i<j}` subscripts, `x^T` and
`x^(1/d)` powers, `sqrt(x)` and `sqrt 2` roots, Greek letters by name, `<=`, `>=`, `!=`, `<-`, `->`,
`~` (about), `+-`; two spaces are a gap, and other words of two letters and more are text.
"""

import re

GREEK = frozenset(
    "alpha beta gamma delta eta kappa lambda mu nu phi pi rho sigma tau theta".split()
) | {"Sigma"}
FUNCTIONS = frozenset("argmax cos det exp log max min sup".split())
OPERATORS = {
    "<=": r"\le ",
    ">=": r"\ge ",
    "!=": r"\ne ",
    "<-": r"\leftarrow ",
    "->": r"\to ",
    "+-": r"\pm ",
    "-+": r"\mp ",
    "..": r"\ldots ",
    "~": r"\approx ",
    "*": r"\cdot ",
    "<": "<",
    ">": ">",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
}
NAMES = {"eps": r"\varepsilon ", "sum": r"\sum ", "tr": r"\operatorname{tr}", "in": r"\in "}
PRODUCTS = frozenset(("dV", "dF", "dx", "PEP", "PQP"))
"""Letters that stand side by side without being a word."""
OPENING = {"(": ")", "{": "}", "[": "]"}
TOKEN = re.compile(
    r"(?P<gap>\s{2,})|(?P<times>(?<=\w) x (?=\w))|(?P<space>\s)"
    r"|(?P<product><[^<>{}=]*,[^<>{}=]*>)|(?P<norm>\|\|)|(?P<bar>\|)|(?P<word>[A-Za-z]+(?:_[A-Za-z]{2,}[A-Za-z_]*)?)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<operator><=|>=|!=|<-|->|\+-|-\+|\.{2,}|[~*<>{}&%#])"
    r"|(?P<script>[_^])|(?P<other>.)"
)
SCRIPT = re.compile(r"[-+]?[A-Za-z0-9]+'*|[-+*]")
SPACE = re.compile(r"\^[d\d({]")
"""`R^d`: a space, not the power of a matrix."""
PRIME = re.compile(r"[+-](?=_[a-z])")
"""`w+_ij`: a sign that belongs to the name before it."""


def latex(formula: str) -> str:
    """Return a formula in plain text as LaTeX."""
    return _translate(formula.strip().replace("\n", " "))


def _translate(text: str) -> str:
    made: list[str] = []
    open_bars: list[str] = []
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        assert token is not None  # `other` takes any character
        kind, value = token.lastgroup, token.group()
        at = token.end()
        match kind:
            case "gap":
                made.append(r"\qquad ")
            case "times":
                made.append(r"\times ")
            case "space":
                made.append(r"\ " if _between_words(text, token.start(), at) else " ")
            case "product":
                made.append(rf"\langle {_translate(value[1:-1])}\rangle ")
            case "norm" | "bar":
                made.append(_bar(value, open_bars))
            case "word":
                word, at = _word(value, text, at)
                made.append(word)
            case "script":
                script, at = _script(text, at)
                made.append(f"{value}{{{script}}}")
            case "operator":
                made.append(OPERATORS[".." if value.startswith("..") else value])
            case _:
                made.append(value)
    return "".join(made).strip()


def _bar(value: str, opened: list[str]) -> str:
    name = "Vert" if value == "||" else "vert"
    if opened and opened[-1] == value:
        opened.pop()
        return rf"\r{name} "
    opened.append(value)
    return rf"\l{name} "


def _word(word: str, text: str, at: int) -> tuple[str, int]:
    if word == "sqrt":
        return _root(text, at)
    if word == "norm" and text[at : at + 1] == "(":
        end = _closing(text, at)
        return rf"\lVert {_translate(text[at + 1 : end - 1])}\rVert ", end
    if word == "R" and SPACE.match(text, at):
        return r"\mathbb{R}", at
    base, _, subscript = word.partition("_")
    if subscript and (base in NAMES or base in FUNCTIONS or len(base) == 1):
        below = _script_text(subscript)
        return f"{_name(base)}_{{{below}}}", at
    if subscript and not set(word) <= set("_ij"):
        return r"\text{" + word.replace("_", r"\_") + "}", at
    digits = re.compile(r"\d+").match(text, at)
    if digits and word in GREEK:
        return rf"\{word}_{{{digits.group()}}}", digits.end()
    sign = PRIME.match(text, at)
    if sign and len(word) == 1:
        return f"{word}^{{{sign.group()}}}", sign.end()
    return _name(word), at


def _name(word: str) -> str:
    if len(word) == 1:
        return word
    if word in GREEK or word in FUNCTIONS - {"argmax"}:
        return rf"\{word} "
    if word == "argmax":
        return r"\operatorname{argmax}"
    if word in PRODUCTS:
        return " ".join(word)
    return NAMES.get(word, rf"\text{{{word}}}")


def _root(text: str, at: int) -> tuple[str, int]:
    if at < len(text) and text[at] == "(":
        end = _closing(text, at)
        return rf"\sqrt{{{_translate(text[at + 1 : end - 1])}}}", end
    follows = re.compile(r" ?(\w+)").match(text, at)
    if follows is None:
        return r"\text{sqrt}", at
    return rf"\sqrt{{{_translate(follows.group(1))}}}", follows.end()


def _script(text: str, at: int) -> tuple[str, int]:
    """Read what is below or above the line from `at` on; return it and where it ends."""
    if at < len(text) and text[at] in "({":
        end = _closing(text, at)
        return _translate(text[at + 1 : end - 1]), end
    found = SCRIPT.match(text, at)
    if found is None:
        return "", at
    return _script_text(found.group()), found.end()


def _script_text(script: str) -> str:
    if script == "T":
        return r"\top "
    if re.fullmatch(r"[-+]?[A-Za-z]{2,}", script) and not _known(script.lstrip("+-")):
        sign = script[: -len(script.lstrip("+-"))] if script[0] in "+-" else ""
        word = script.lstrip("+-")
        return sign + (" ".join(word) if len(word) <= 3 else rf"\text{{{word}}}")
    return _translate(script)


def _known(word: str) -> bool:
    return word in GREEK or word in FUNCTIONS or word in NAMES


def _closing(text: str, at: int) -> int:
    """Return the place behind the bracket that closes the one at `at`, or the end."""
    opening = text[at]
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == OPENING[opening])
        if depth == 0:
            return place + 1
    return len(text)


def _between_words(text: str, start: int, end: int) -> bool:
    """Say whether a space parts a word of two letters and more from what it stands beside."""
    before = re.search(r"(?:(\w+)|[>|)\]])$", text[:start])
    after = re.match(r"(\w+)|[<|(]", text[end:])
    if before is None or after is None:
        return False
    words = (before.group(1) or "", after.group(1) or "")
    return any(len(w) > 1 and w.isalpha() and not _known(w) and w != "sqrt" for w in words)
