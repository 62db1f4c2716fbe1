"""Formulas in plain text are told from code and become LaTeX."""

import ast
import re
from pathlib import Path

import pytest
from docutils.utils.math.latex2mathml import tex2mathml

from website import typeset
from website.ascii_formulas import latex

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("||x_i - x_j||^2", r"\lVert x_{i} - x_{j}\rVert^{2}"),
        ("norm(A)_F", r"\lVert A\rVert_{F}"),
        ("<A,S> / (||A|| ||S||)", r"\langle A,S\rangle / (\lVert A\rVert \lVert S\rVert)"),
        ("max_{i<j} q_ij", r"\max_{i<j} q_{i j}"),
        ("sqrt(d/(2(d+1)))", r"\sqrt{d/(2(d+1))}"),
        ("1/sqrt d", r"1/\sqrt{d}"),
        ("V^(1/d) >= 2^-k", r"V^{1/d} \ge 2^{-k}"),
        ("A^T A != 0", r"A^{\top} A \ne 0"),
        ("w+_ij - w-_ij", r"w^{+}_{i j} - w^{-}_{i j}"),
        ("R^d", r"\mathbb{R}^{d}"),
        ("R^T", r"R^{\top}"),
        ("W <- (1 - lr weight_decay) W", r"W \leftarrow (1 -\text{lr}\ \text{weight\_decay}) W"),
        ("sum_j w(q_ij) x_j,  n > 1", r"\sum_{j} w(q_{i j}) x_{j},\qquad n > 1"),
        ("beta2 r_i", r"\beta_{2} r_{i}"),
        ("c_max", r"c_{\max}"),
    ],
)
def test_a_formula_becomes_latex(plain, expected):
    assert re.sub(r" +", "", latex(plain)) == re.sub(r" +", "", expected)


@pytest.mark.parametrize(
    "span",
    ["s_i", "rho = delta / D", "<A,S>", "sqrt(d)", "lr * ||h||", "q_ij >= far", "2^r / sqrt d"],
)
def test_mathematics_is_a_formula(span):
    assert typeset.is_formula(span)


@pytest.mark.parametrize(
    "span",
    [
        "Solution.state",
        'solver="exact"',
        "num_real_rows=50257",
        "packing/cloud.py: centre",
        "S",
        "rho",
        "2**exponent",
        "Code",
        "rows(dtype=torch.int8)",
        "rowsep-out/",
        "torch.load(weights_only=True)",
        "(V, d)",
        "--alignment",
    ],
)
def test_code_is_no_formula(span):
    assert not typeset.is_formula(span)


def test_a_docstring_becomes_restructured_text():
    found = typeset.docstring(
        "Return `S` of `s_i`s.\n\n    D(S) = max_{i<j} q_ij\n      >= 0\n\nThen:\n\n    a  b\n"
    )
    assert found == (
        "Return ``S`` of :math:`s_{i}`\\ s.\n\n"
        ".. math::\n\n    \\begin{aligned}\n"
        "    & D(S) = \\max _{i<j} q_{i j} \\\\\n    & \\qquad \\ge  0\n"
        "    \\end{aligned}\n\n\nThen:\n\n.. code-block:: text\n\n    a  b\n\n"
    )


def test_fences_of_a_page_stay_as_they_are():
    page = "`x_i`\n\n```python\n`x_i`\n```\n\n`x_j`\n"
    assert typeset.page(page) == "$x_{i}$\n\n```python\n`x_i`\n```\n\n$x_{j}$\n"


def spans():
    """Every code span of the docstrings of the package that is a formula."""
    files = [*(ROOT / "packing").rglob("*.py"), *(ROOT / "optim").rglob("*.py")]
    assert files
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found |= set(re.findall(r"`([^`]+)`", ast.get_docstring(node) or ""))
    return sorted(filter(typeset.is_formula, found))


def test_every_formula_of_the_docstrings_can_be_drawn():
    drawn = {span: tex2mathml(latex(span)) for span in spans()}
    assert len(drawn) > 100 and all("<math" in one for one in drawn.values())
