"""A few thousand rows can be moved off their algebraic places where that raises `rho`."""

import torch

from packing.codes.code import Code, Stored
from packing.solve import solve


def polish(code: Code, passes: int = 100) -> Code:
    """Return `code` after the solver, or `code` itself if that has no larger `rho`.

    The solver starts at the rows of the code, without a floor on the alignment. It pays for a
    few rows more than dimensions and for cut codes; a whole Kerdock or Paley set is stuck already.
    Costs `passes * V^2 d` operations and O(V d) memory, in float64.

    Args:
        code: at least 2 rows.
        passes: all-pairs passes, at least 1.

    Returns:
        A code of the same size, its rows held in memory and its `rho` measured.

    Raises:
        TypeError, ValueError: `passes` is not as above.
    """
    rows = code.rows(dtype=torch.float64)
    solution = solve(rows, alignment=-1.0, passes=passes, state=rows)
    if solution.rho <= code.rho:
        return code
    return Stored(solution.update, f"{code.origin}, polished in {passes} passes")
