"""The committed benchmarks as Markdown tables.

python -m benchmarks.show
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.markdown import markdown_table

FOLDER = Path(__file__).parent
UNIT = "bare product"


def pairs(report: Mapping[str, Any]) -> str:
    """One pass over all pairs, as a ratio to the bare product of the same run."""
    lines = []
    for shape, methods in report.items():
        if shape == "facts":
            continue
        units = methods[UNIT]["seconds"]
        for name, found in methods.items():
            if name != UNIT:
                ratios = [own / unit for own, unit in zip(found["seconds"], units, strict=True)]
                extent = f"{min(ratios):.2f} - {max(ratios):.2f}"
                lines.append([shape, name, f"{found['ratio']:.2f}", extent])
    return markdown_table(("shape", "pass", "bare products", "range over rounds"), lines)


def large(report: Mapping[str, Any]) -> str:
    """Passes and a solve of a head of GPT-2's size."""
    lines = [
        [name, found["bare_products"], found["seconds"], found["peak_above_input_MiB"]]
        for name, found in report["figures"].items()
    ]
    return markdown_table(("", "bare products", "seconds", "MiB above the input"), lines)


def optimizers(report: Mapping[str, Any]) -> str:
    """A step of every optimiser of a head, in bare products and as a share of training."""
    names = dict.fromkeys(name for shape in report.values() for name in shape["figures"])
    lines = []
    for name in names:
        cells = []
        for shape in report.values():
            found = shape["figures"].get(name)
            cells += (
                ["", ""]
                if found is None
                else [
                    f"{found['bare_products']:.2g}",
                    f"{100 * found['share_of_training_step']:.2g} %",
                ]
            )
        lines.append([name, *cells])
    head = ["a step of"]
    for shape in report:
        head += [f"products, {shape}", "of a training step"]
    return markdown_table(head, lines)


def read(name: str) -> dict[str, Any]:
    """Return a committed report by its name."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def main() -> None:
    """Print the tables."""
    print(pairs(read("pairs")))
    print(large(read("large")))
    print(optimizers(read("optimizers")))


if __name__ == "__main__":
    main()
