"""Print what the shipped momentum is like: `python -m experiments.demo_momentum.describe`."""

from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from experiments.demo_momentum import store
from rowsep.packing.cli.report import equal_rows

QUANTILES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
SINGULAR_VALUES = (1, 2, 3, 5, 10, 20, 50, 128)
TWIN_COSINES = (0.9, 0.99, 0.999)


def best_cosines(momentum: Tensor) -> Tensor:
    """Return, for every row, the largest cosine with another row: float64, shape (V,).

    A zero row has cosine 0 with all others.

    Args:
        momentum: shape (V, d), V >= 2.
    """
    rows = torch.nn.functional.normalize(momentum.double(), dim=1)
    cosines = rows @ rows.T
    return cosines.fill_diagonal_(-1.0).amax(dim=1)


def describe(momentum: Tensor) -> dict[str, str]:
    """Return the figures of `momentum`, shape (V, d) with V >= 2, each under a title.

    Row norms are those at RMS 1; singular values are relative to the largest.
    """
    exact = store.normalise(momentum)
    norms = exact.norm(dim=1)
    quantiles = norms.quantile(torch.tensor(QUANTILES, dtype=torch.float64)).tolist()
    spectrum = torch.linalg.svdvals(exact)
    spectrum = spectrum / spectrum[0]
    shown = [i for i in SINGULAR_VALUES if i <= len(spectrum)]
    cosines = best_cosines(exact)
    mean_row = exact.mean(dim=0).norm().item()
    return {
        "row norm at quantile": _pairs(QUANTILES, quantiles),
        "share of squared norm in the heaviest row": f"{(norms.max() / norms.norm()) ** 2:.3f}",
        "singular value at rank": _pairs(shown, [spectrum[i - 1].item() for i in shown]),
        "share of rows with a partner above cosine": _pairs(
            TWIN_COSINES, [(cosines > c).double().mean().item() for c in TWIN_COSINES]
        ),
        "median cosine with the nearest partner": f"{cosines.median():.4f}",
        "rows exactly equal to another": str(equal_rows(momentum)),
        "zero entries": str(int((momentum == 0).sum())),
        "norm of the mean row / median row norm": f"{mean_row / norms.median().item():.1e}",
    }


def _pairs(keys: tuple[float, ...] | list[int], values: list[float]) -> str:
    return ", ".join(f"{key:g}: {value:.3g}" for key, value in zip(keys, values, strict=True))


def main(path: Annotated[Path, typer.Argument(help="safetensors file")] = store.SHIPPED) -> None:
    """Print the metadata and the figures of a momentum file."""
    momentum, metadata = store.read(path)
    for title, value in [*sorted(metadata.items()), *describe(momentum).items()]:
        typer.echo(f"{title}: {value}")


if __name__ == "__main__":
    typer.run(main)
