"""The spherical codes that were found as a Markdown table for the docs.

    python -m experiments.spherical_codes.show

Reads `codes.csv`; the largest cosine is rounded up in the last digit shown.
"""

from decimal import ROUND_CEILING, Decimal

from experiments.spherical_codes.run import FOLDER, Row, read


def line(row: Row) -> str:
    """One code as a row of the table."""
    cosine = Decimal(row["max_cosine"]).quantize(Decimal("1e-12"), ROUND_CEILING)
    kind = "isolated" if row["isolated"] == "True" else "not isolated"
    if row["loose"] != "0":
        kind += f", {row['loose']} loose"
    return (
        f"| {row['dim']} | {row['points']} | {cosine:f} | {row['difference']} | {row['status']} "
        f"| {float(row['bound']):.6f} | {row['agreeing']} of {row['starts']} | {row['active']} "
        f"| {kind} |"
    )


def table() -> list[str]:
    """The lines of the table."""
    head = "| d | N | largest cosine | - published | status | bound | agree | active | kind |"
    return [head, "|---" * 9 + "|", *map(line, read(FOLDER / "codes.csv").values())]


def main() -> None:
    """Print the table."""
    print("\n".join(table()))


if __name__ == "__main__":
    main()
