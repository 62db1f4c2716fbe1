"""How large the updates are for one momentum: what an lr has to be multiplied by.

    python -m benchmarks.update_scale [MOMENTUM]

For each update on the shipped momentum, or one in a file with one row per token: its diameter, the
root mean square of its row norms, and the alignment. The last two columns say by what the lr that
goes with it is multiplied for `RowSeparation`, so that pairs' log-odds move at most as far
(diameters), or tokens as far on average (row norms).
"""

from collections.abc import Callable
from pathlib import Path

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from rowsep.optim import updates
from rowsep.packing import cloud
from rowsep.packing.baselines import polar
from rowsep.packing.io import demo_momentum, load_matrix


def first_rowwise_step(M: Tensor) -> Tensor:
    """The update of `RowwiseAdam` when no gradient came before: row-then-polar at diameter one."""
    S = updates.rowwise_adam(M, cloud.centre(M).norm(dim=1))
    return S / cloud.diameter(S).value


UPDATES: dict[str, Callable[[Tensor], Tensor]] = {
    "RowSeparation": lambda M: updates.row_separation(M)[0],
    "RowNormM": updates.row_norm,
    "Muon, adjust_lr_fn original": lambda M: polar(cloud.centre(M)) * (len(M) / M.shape[1]) ** 0.5,
    "HybridPolarGradM": lambda M: updates.hybrid(M, order="polar_then_row"),
    "HybridPolarGradM, row_then_polar": lambda M: updates.hybrid(M, order="row_then_polar"),
    "Signum": updates.sign,
    "RowwiseAdam, first step": first_rowwise_step,
}


def main(momentum: Path | None = None) -> None:
    """Print the table."""
    M = (demo_momentum() if momentum is None else load_matrix(momentum)[0]).float()
    table = Table(title=f"{M.shape[0]} x {M.shape[1]}, torch {torch.__version__}")
    for heading in ("update", "diameter", "rms row", "alignment", "by diameter", "by rows"):
        table.add_column(heading, justify="left" if heading == "update" else "right")
    own: tuple[float, float] | None = None
    for name, update in UPDATES.items():
        S = update(M)
        diameter = cloud.diameter(S).value
        rows = float(S.double().norm(dim=1).square().mean().sqrt())
        own = own or (diameter, rows)
        agreement = cloud.alignment(M, S, diameter=diameter)
        figures = (diameter, rows, agreement, diameter / own[0], rows / own[1])
        table.add_row(name, *(f"{x:.3g}" for x in figures))
    Console(width=100).print(table)


if __name__ == "__main__":
    torch.set_num_threads(1)
    typer.run(main)
