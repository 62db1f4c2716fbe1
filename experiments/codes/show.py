"""The results of the codes as Markdown tables.

python -m experiments.codes.show
"""

import typer

from experiments.codes import front, polish, random_start, table
from experiments.markdown import markdown_table
from experiments.table import read

Rows = list[dict[str, str]]
COUNTS = (8192, 50257, 131072, 262144)
FLOORS = ("0.3", "0.5", "0.6", "0.7")


def ratios(rows: Rows) -> str:
    """`best_code` over the bound, a line a dimension."""
    cells = {(int(r["dim"]), int(r["rows"])): r["ratio"] for r in rows if r["what"] == "size"}
    lines = []
    for worst in (r for r in rows if r["what"] != "size"):
        dim = int(worst["dim"])
        counts = (dim + 32, 2 * dim, *COUNTS, dim * dim // 2)
        line = [_short(cells.get((dim, count), "")) for count in counts]
        lines.append([dim, *line, f"{_short(worst['ratio'])} at {worst['rows']}"])
    head = ("d", "V = d+32", "2d", *map(str, COUNTS), "d^2/2", "least up to d^2/2")
    return markdown_table(head, lines)


def fronts(rows: Rows) -> str:
    """`rho` by floor, on every fourth row of each momentum; the best start in bold."""
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for r in rows:
        if r["momentum"].endswith("::4") and r["passes"] != "0":
            case = r["momentum"], r["passes"]
            cells.setdefault(case, {})[r["start"], r["floor"]] = f"{float(r['rho']):.3f}"
    lines = []
    for (momentum, passes), found in cells.items():
        for start in dict.fromkeys(start for start, _ in found):
            line = []
            for floor in FLOORS:
                own = found.get((start, floor), "")
                best = max(rho for (_, its), rho in found.items() if its == floor)
                line.append(f"**{own}**" if own == best else own)
            lines.append([momentum, passes, start, *line])
    return markdown_table(("momentum", "passes", "start", *FLOORS), lines)


def polished(rows: Rows) -> str:
    """What polishing adds to a code."""
    head = ("V, d", "code", "best_code, measured", "polished", "bound")
    lines = [
        [
            f"{r['rows']}, {r['dim']}",
            r["origin"].split(", the first")[0],
            *(_short(r[name]) for name in ("code", "polished", "bound")),
        ]
        for r in rows
    ]
    return markdown_table(head, lines)


def random_starts(rows: Rows) -> str:
    """Where L-BFGS from Gaussian rows ends, and how the cosines lie there."""
    last = {(r["rows"], r["dim"], r["seed"]): r for r in rows}
    lines = []
    for (V, d, seed), r in last.items():
        f, m = float(r["ends"]), float(r["inside"])
        numbers = (float(r["rho"]), float(r["bound"]), f, float(r["freedom"]), m, f + (1 - f) * m)
        lines.append([f"{V}, {d}", seed, *(f"{x:.3f}" for x in numbers)])
    head = ("V, d", "seed", "rho", "bound", "f", "freedom", "m", "f + (1-f) m")
    return markdown_table(head, lines)


def _short(number: str) -> str:
    return f"{float(number):.4f}" if number else ""


def main() -> None:
    """Print the tables."""
    print(ratios(read(table.RESULTS)))
    print(fronts(read(front.RESULTS)))
    print(polished(read(polish.RESULTS)))
    print(random_starts(read(random_start.RESULTS)))


if __name__ == "__main__":
    typer.run(main)
