"""How far smoothing alone comes from random rows, and how many pairs then stand at the ends.

    python -m experiments.codes.random_start [--num-rows 1024] [--dim 64] [--seeds 0]

`F_beta` is minimised by L-BFGS without any constraint, beta doubled from 4 to 16384. After each
stage one line is written: `rho`; `ends`, the share of pairs within one part in a thousand of the
separation or the diameter; `freedom`, the degrees of freedom `V(d-1) - d(d-1)/2` of unit rows up to
rotation over the number of pairs, which `ends` comes to at a local optimum in general position; and
`inside`, the mean of `t^2` over the other pairs, where squared distances run from t = -1 (the
separation) to t = 1 (the diameter): 1/3 if they are spread evenly. Seeds already in the results are
not run again.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer

from experiments.table import Table
from rowsep.packing import cloud
from rowsep.packing.bounds import rho_upper_bound
from rowsep.packing.codes.polish import minimise_smoothed

RESULTS = Path(__file__).parent / "random_start.csv"
BETAS = [4.0 * 2**k for k in range(13)]
ENDS = 1e-3
KEY = ("rows", "dim", "seed", "beta")
FIELDS = (*KEY, "evaluations", "rho", "bound", "ends", "freedom", "inside", "torch", "date")


def main(
    num_rows: int = 1024,
    dim: int = 64,
    seeds: Annotated[list[int], typer.Option()] = [0],  # noqa: B006
    iterations: int = 400,
    results: Path = RESULTS,
) -> None:
    """Run the continuation once for each seed."""
    table = Table(results, KEY, FIELDS)
    for _, _, seed, _ in table.left([(num_rows, dim, seed, BETAS[-1]) for seed in seeds]):
        generator = torch.Generator().manual_seed(seed)
        S = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
        made, evaluations = [], 0
        for beta in BETAS:
            S, spent = minimise_smoothed(S, beta, iterations)
            evaluations += spent
            case = dict(zip(KEY, (num_rows, dim, seed, beta), strict=True))
            made.append(case | {"evaluations": evaluations} | figures(S))
            typer.echo(
                f"beta {beta:g}: rho {made[-1]['rho']}, share of pairs at the ends "
                f"{made[-1]['ends']}"
            )
        table.append(*made)


def figures(S: torch.Tensor) -> dict[str, str]:
    """`rho`, the bound on it and the figures of the pairs, as text."""
    (V, d), found, q = S.shape, cloud.ratio(S), torch.pdist(S)
    ends = (q <= found.delta * (1 + ENDS)) | (q >= found.diameter * (1 - ENDS))
    low, high = found.delta**2, found.diameter**2
    t = (2 * q.square() - low - high) / (high - low)
    shares = {
        "rho": found.value,
        "bound": rho_upper_bound(V, d),
        "ends": ends.double().mean(),
        "freedom": (V * (d - 1) - d * (d - 1) / 2) / len(q),
        "inside": t[~ends].square().mean(),
    }
    return {name: f"{value:.6f}" for name, value in shares.items()}


if __name__ == "__main__":
    typer.run(main)
