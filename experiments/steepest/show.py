"""The steepest steps that were found as a Markdown table.

python -m experiments.steepest.show
"""

import typer

from experiments.markdown import markdown_table
from experiments.steepest.run import RESULTS
from experiments.table import read


def table(rows: list[dict[str, str]]) -> str:
    """A line a case: the alignment reached and what the certificate leaves to any update."""
    head = ("momentum", "V x d", "solver", "passes", "row norm", "alignment", "no more than")
    lines = [
        [
            r["momentum"],
            f"{r['rows']} x {r['dim']}",
            r["solver"],
            r["passes"],
            f"{float(r['row_normalised']):.3f}",
            f"{float(r['alignment']):.4f}",
            f"{float(r['upper']):.4f}",
            f"{float(r['gap']):.2g}",
            r["pairs"],
            f"{float(r['seconds']):.0f}",
        ]
        for r in rows
    ]
    return markdown_table((*head, "gap", "pairs", "seconds"), lines)


def main() -> None:
    """Print the table."""
    print(table(read(RESULTS)))


if __name__ == "__main__":
    typer.run(main)
