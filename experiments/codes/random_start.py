"""How far smoothing alone comes from random rows, and how many pairs then stand at the ends.

    python -m experiments.codes.random_start [--num-rows 1024] [--dim 64] [--seeds 0]

`F_beta` is minimised by L-BFGS without any constraint, beta doubled from 4 to 1024. After each
stage one line is written: `rho`, and the share of pairs within one part in a thousand of the
separation or the diameter. Seeds already in the results are not run again.
"""

import csv
import datetime
from pathlib import Path
from typing import Annotated

import torch
import typer

from packing import cloud
from packing.bounds import rho_upper_bound
from packing.codes.polish import minimise_smoothed

RESULTS = Path(__file__).parent / "random_start.csv"
BETAS = [4.0 * 2**k for k in range(9)]
ENDS = 1e-3
FIELDS = ("rows", "dim", "seed", "beta", "evaluations", "rho", "bound", "ends", "torch", "date")


def main(
    num_rows: int = 1024,
    dim: int = 64,
    seeds: Annotated[list[int], typer.Option()] = [0],  # noqa: B006
    iterations: int = 200,
    results: Path = RESULTS,
) -> None:
    """Run the continuation once for each seed."""
    for seed in seeds:
        key = (str(num_rows), str(dim), str(seed))
        if key in {(row["rows"], row["dim"], row["seed"]) for row in read(results)}:
            continue
        generator = torch.Generator().manual_seed(seed)
        S = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
        made, evaluations = [], 0
        for beta in BETAS:
            S, spent = minimise_smoothed(S, beta, iterations)
            evaluations += spent
            row = (num_rows, dim, seed, beta, evaluations, *figures(S))
            made.append((*row, torch.__version__, datetime.date.today().isoformat()))
            typer.echo(f"beta {beta:g}: rho {row[5]}, share of pairs at the ends {row[7]}")
        append(results, made)


def figures(S: torch.Tensor) -> tuple[str, str, str]:
    """`rho`, the bound on it and the share of pairs at either end, as text."""
    found = cloud.ratio(S)
    q = torch.pdist(S)
    ends = (q <= found.delta * (1 + ENDS)) | (q >= found.diameter * (1 - ENDS))
    return f"{found.value:.6f}", f"{rho_upper_bound(*S.shape):.6f}", f"{ends.double().mean():.6f}"


def read(results: Path) -> list[dict[str, str]]:
    """Rows of the results so far."""
    if not results.exists():
        return []
    with results.open(newline="") as file:
        return list(csv.DictReader(file))


def append(results: Path, rows: list[tuple]) -> None:
    """Write rows at the end, with the header before the first."""
    new = not results.exists()
    with results.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerows(rows)


if __name__ == "__main__":
    typer.run(main)
