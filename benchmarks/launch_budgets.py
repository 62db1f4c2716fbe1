"""Ceilings on what calls launch and wait for on a CUDA device, at two small sizes.

They are what the code does today, not what it should: a launch or a wait that is added fails a
test, and so does one that comes to grow with the number of rows. What the project aims for stands
beside each. Whoever lowers a count lowers its ceiling too:

    python -m benchmarks.launch_budgets    # prints what is counted now
"""

from typing import NamedTuple

import torch

from benchmarks.launches import CALLS, count, small_tiles
from benchmarks.simulated_cuda import KINDS, SimulatedCuda

SIDE, DIM = 256, 16
"""Rows of a tile and of a block, and dimension."""
ROWS = (600, 1100)
"""Numbers of rows: 6 tiles and 15."""


class Budget(NamedTuple):
    """Ceilings at either number of rows, and the aim in words."""

    kernels: tuple[int, int]
    waits: tuple[int, int]
    copies: tuple[int, int]
    aim: str


ALIKE = "no step waits or copies"
BUDGETS = {
    "pairs.extremes": Budget(
        (777, 636), (49, 30), (0, 0), "40 kernels and 4 a tile, 12 with kernels in Triton"
    ),
    "solve(passes=4)": Budget(
        (3597, 5464), (267, 387), (1, 2), "1 wait, no copy, 40 kernels and 4 a tile for each pass"
    ),
    "RowSeparation": Budget((3610, 7149), (269, 391), (1, 2), f"{ALIKE}; kernels as in solve"),
    "RowwiseAdam": Budget((1051, 1406), (73, 86), (0, 0), f"{ALIKE}; 60 kernels"),
    "RowNormM": Budget((37, 37), (4, 4), (0, 0), f"{ALIKE}; 20 kernels"),
    "NorMuon": Budget((121, 121), (6, 6), (0, 0), ALIKE),
    "RightPolarGradM": Budget((107, 107), (6, 6), (0, 0), ALIKE),
    "torch.optim.AdamW": Budget((8, 8), (0, 0), (0, 0), "not ours: to compare with"),
    "torch.optim.Muon": Budget((23, 23), (0, 0), (0, 0), "not ours: to compare with"),
}


def counted(name: str) -> list[SimulatedCuda]:
    """Count a call at both sizes, on a momentum of random directions and moderate row lengths."""
    found = []
    for n in ROWS:
        generator = torch.Generator().manual_seed(0)
        lengths = (0.5 * torch.randn(n, 1, generator=generator)).exp()
        momentum = torch.randn(n, DIM, generator=generator) * lengths
        with small_tiles(SIDE, DIM):
            found.append(count(CALLS[name], momentum))
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for call in BUDGETS:
        small, large = counted(call)
        both = {kind: (getattr(small, kind), getattr(large, kind)) for kind in KINDS}
        print(f"{call}: {both}")
