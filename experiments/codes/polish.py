"""Where smoothing raises the `rho` of `best_code`: small sizes between simplex and Kerdock set.

    python -m experiments.codes.polish [SIZE ...]

A size is `VxD`, 83x64. Sizes already in the results are not run again.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from experiments.table import Table
from rowsep.packing.codes import best_code, polish

RESULTS = Path(__file__).parent / "polish.csv"
SIZES = ["19x12", "20x8", "20x16", "40x16", "100x16", "72x64", "83x64", "96x64", "128x64", "192x64"]
KEY = ("rows", "dim")
FIELDS = (*KEY, "code", "polished", "bound", "origin", "torch", "date")


def main(
    sizes: Annotated[list[str], typer.Argument()] = SIZES,  # noqa: B006
    iterations: int = 200,
    results: Path = RESULTS,
) -> None:
    """Polish each size with seed 0 and append its figures."""
    table = Table(results, KEY, FIELDS)
    left = table.left([tuple(map(int, size.split("x"))) for size in sizes])
    for rows, dim in track(left, description="polishing"):
        code = best_code(rows, dim)
        figures = {
            "code": code.measured_rho(),
            "polished": polish(code, iterations).rho,
            "bound": code.bound,
        }
        texts = {name: f"{value:.6f}" for name, value in figures.items()}
        table.append({"rows": rows, "dim": dim, "origin": code.origin} | texts)


if __name__ == "__main__":
    typer.run(main)
