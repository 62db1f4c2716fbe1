"""What the device check runs on: sizes, clouds that are hard in different ways, a momentum."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize


@dataclass(frozen=True)
class Sizes:
    """What is run on."""

    clouds: tuple[tuple[int, int], ...]
    """Shapes of the clouds of the stages of correctness."""
    rows: int
    """Rows of the shipped momentum that are solved for."""
    passes: int
    timed: tuple[tuple[int, int], ...]
    """Shapes of the timed passes."""
    solved: tuple[int, int]
    """Shape of the timed solve."""
    rounds: int
    """Most rounds of timing."""


FULL = Sizes(
    ((600, 48), (9000, 96)), 4096, 12, ((50257, 768), (151936, 1024)), (50257, 768), rounds=7
)
SMALL = Sizes(((300, 12),), 256, 6, ((600, 16), (700, 24)), (320, 12), rounds=2)


def natural(V: int, d: int) -> Tensor:
    """Random directions, norms one give or take 5 %, float64."""
    g = torch.Generator().manual_seed(0)
    size = 1 + 0.05 * torch.randn(V, 1, generator=g, dtype=torch.float64)
    return normalize(torch.randn(V, d, generator=g, dtype=torch.float64)) * size


def uneven(V: int, d: int) -> Tensor:
    """Falling spectrum, row norms over decades, some rows with a near twin, float64."""
    g = torch.Generator().manual_seed(1)
    S = torch.randn(V, d, generator=g, dtype=torch.float64) / torch.arange(1, d + 1).sqrt()
    S[1::40] = S[::40][: len(S[1::40])] * (1 + 1e-3)
    return S * torch.exp(0.5 * torch.randn(V, 1, generator=g, dtype=torch.float64))


def clouds(V: int, d: int) -> dict[str, Tensor]:
    """Clouds that are hard in different ways, by name, shape (V, d), float64, on the CPU."""
    random = natural(V, d)
    equal = random.clone()
    equal[V // 2] = equal[V // 3]
    return {
        "natural": random,
        "uneven": uneven(V, d),
        "shifted": random + 30,
        "equal rows": equal,
    }


def momentum(V: int, d: int, device: torch.device) -> Tensor:
    """A random momentum: falling spectrum, row norms over decades, float32, on the device."""
    g = torch.Generator(device).manual_seed(2)
    A = torch.randn(V, d, generator=g, device=device)
    A /= torch.arange(1, d + 1, device=device).sqrt()
    return A.mul_(torch.randn(V, 1, generator=g, device=device).mul_(1.2).exp_())


def reach_of(S: Tensor, share: float) -> float:
    """The distance below which about this share of the pairs of a float64 cloud lie."""
    r = torch.cdist(S[:256], S).flatten()
    r = r[r > 1e-9].sort().values
    return float(r[int(share * len(r))]) * (1 + 1e-10)  # on no pair, so that counts agree
