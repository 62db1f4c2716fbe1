"""What the device computes, held against float64 on the CPU."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from experiments.device_check.inputs import clouds, natural, reach_of
from experiments.device_check.record import Stage
from rowsep.packing import cloud
from rowsep.packing.io import demo_momentum
from rowsep.packing.pairs import PairList, extremes, forces, soft_extremes
from rowsep.packing.solution import Solution
from rowsep.packing.solve import SOLVERS, solve
from rowsep.packing.solvers.projected_gradient import hinge

EXACT = 1e-12
"""Relative error allowed of the separation and the diameter."""
FIGURES = 1e-9
"""Error allowed of the figures that a solution reports."""
RHO_MARGIN = 0.02
"""Relative difference allowed between the `rho` of a solve here and on the CPU."""
FLOOR = 0.5
DIAMETER = 1.0
FORCE_ERROR = {torch.float64: 1e-10, torch.float32: 1e-3}
"""Relative error allowed of forces and gradients, Frobenius norm."""
SQUARE_ERROR = {torch.float64: 1e-10, torch.float32: 1e-3}
"""Relative error allowed of a squared distance: float32 products keep that much of the digits
down to 0.001 of the norms."""


def reference(S: Tensor) -> tuple[Tensor, str]:
    """The entries of `S` in float64 on the CPU, and the implementation to trust there."""
    return S.cpu().double(), "naive" if len(S) <= 1000 else "blocked"


def apart(found: Tensor, true: Tensor) -> float:
    """`||found - true|| / ||true||`, 0.0 where both are zero."""
    difference, size = float((found.cpu().double() - true).norm()), float(true.norm())
    return difference / size if size > 0 else difference


def off(found: float, true: float) -> float:
    """Relative error of a number."""
    return abs(found - true) / abs(true) if true else abs(found)


def check_extremes(stage: Stage) -> None:
    """Separation and diameter in every dtype, with the pairs that attain them."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                true, found = extremes(given, impl=impl), extremes(here, impl="blocked")
                name = f"{shape}, {kind}, {dtype}"
                stage.at_most(f"separation, {name}", off(found.delta, true.delta), EXACT)
                stage.at_most(f"diameter, {name}", off(found.diameter, true.diameter), EXACT)
                for figure, pair in ((true.delta, found.closest), (true.diameter, found.farthest)):
                    distance = float((given[pair[0]] - given[pair[1]]).norm())
                    stage.at_most(f"pair {pair}, {name}", off(distance, figure), EXACT)
        mask = torch.arange(shape[0]) % 3 > 0
        S = natural(*shape).float()
        given, impl = reference(S)
        true = extremes(given, mask=mask, impl=impl)
        found = extremes(S.to(stage.device), mask=mask.to(stage.device), impl="blocked")
        stage.at_most(f"separation, {shape}, mask", off(found.delta, true.delta), EXACT)
        stage.at_most(f"diameter, {shape}, mask", off(found.diameter, true.diameter), EXACT)


def check_forces(stage: Stage) -> None:
    """Forces of all pairs, of few and of very few, on both sides."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            ranges = {"every pair": (math.inf, 0.0)}
            for share in (0.3, 0.02, 0.001):
                ranges[f"{share:.1%} near"] = reach_of(S, share), math.inf
            ranges["both sides"] = reach_of(S, 0.01), reach_of(S, 0.99)
            for dtype in (torch.float64, torch.float32):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                for which, (near, far) in ranges.items():
                    weight = torch.reciprocal if near == math.inf else hinge(near, far)
                    ends: dict[str, Any] = {"near": near**2, "far": far**2}
                    true = forces(given, weight, **ends, impl=impl)
                    found = forces(here, weight, **ends, impl="blocked")
                    name = f"{shape}, {kind}, {dtype}, {which}"
                    error = apart(found.force, true.force)
                    stage.at_most(f"force, {name}", error, FORCE_ERROR[dtype])
                    for side in ("nearest", "farthest"):
                        error = apart(getattr(found, side), getattr(true, side))
                        stage.at_most(f"{side}, {name}", error, SQUARE_ERROR[dtype])
                    if dtype == torch.float64:
                        stage.holds(f"pairs, {name}", found.pairs == true.pairs)


def check_soft_extremes(stage: Stage) -> None:
    """The smoothed condition number and its gradient, blunt and sharp."""
    for shape in stage.sizes.clouds:
        for kind, S in clouds(*shape).items():
            for dtype in (torch.float64, torch.float32):
                here = S.to(dtype).to(stage.device)
                given, impl = reference(here)
                for beta in (2.0, 20.0, 200.0):
                    true = soft_extremes(given, beta, impl=impl)
                    found = soft_extremes(here, beta, impl="blocked")
                    name = f"{shape}, {kind}, {dtype}, beta {beta:g}"
                    if math.isinf(true.value):
                        stage.holds(f"value, {name}", found.value == true.value)
                        stage.holds(f"gradient, {name}", not bool(found.gradient.any()))
                        continue
                    limit = FORCE_ERROR[dtype]
                    stage.at_most(f"value, {name}", off(found.value, true.value), limit)
                    stage.at_most(f"gradient, {name}", apart(found.gradient, true.gradient), limit)
                    stage.at_most(f"separation, {name}", off(found.delta, true.delta), EXACT)


def check_pair_list(stage: Stage) -> None:
    """Forces from a list, where it was made and after rows have moved."""
    for shape in stage.sizes.clouds:
        S = natural(*shape)
        near, far = reach_of(S, 0.01), reach_of(S, 0.999)
        for dtype in (torch.float64, torch.float32):
            here = S.to(dtype).to(stage.device)
            listed = PairList(here, near=near**2, far=far**2, skin=0.01)
            g = torch.Generator().manual_seed(3)
            move = normalize(torch.randn(shape, generator=g, dtype=dtype)).to(here)
            for way, rows in (("at rest", here), ("moved", here + 0.49 * listed.reach * move)):
                given, impl = reference(rows)
                weight = hinge(near, far)
                true = forces(given, weight, near=near**2, far=far**2, impl=impl)
                found = listed.forces(rows, weight)
                name = f"{shape}, {dtype}, {way}"
                stage.holds(f"covered, {name}", listed.covers(rows))
                stage.at_most(f"force, {name}", apart(found.force, true.force), FORCE_ERROR[dtype])
                if dtype == torch.float64:
                    stage.holds(f"pairs, {name}", found.pairs == true.pairs)
            stage.holds(f"a far move is not covered, {dtype}", not listed.covers(here + move))
            empty = PairList(here, near=0.0, far=math.inf, skin=0.01)
            none = empty.forces(here, torch.zeros_like)
            stage.holds(f"no force from an empty list, {dtype}", not bool(none.force.any()))


def check_solvers(stage: Stage) -> None:
    """Every solver on the shipped momentum: feasible, honest, as far as on the CPU."""
    A = demo_momentum()[: stage.sizes.rows].float()
    here = A.to(stage.device)
    cases = [(solver, "decrease") for solver in SOLVERS] + [("smoothed", "cosine")]
    for solver, measure in cases:
        options: dict[str, Any] = {
            "solver": solver,
            "measure": measure,
            "alignment": FLOOR,
            "diameter": DIAMETER,
            "passes": stage.sizes.passes,
        }
        found, true = solve(here, **options), solve(A, **options)
        name = f"{solver}, {measure}"
        check_solution(stage, name, A, found, measure)
        stage.at_most(f"rho against the CPU, {name}", off(found.rho, true.rho), RHO_MARGIN)
        stage.figures[name] = {"rho": found.rho, "rho_cpu": true.rho, "passes": found.passes}
    half = here.half()
    found = solve(half, mask=torch.arange(len(A), device=here.device) > 8, passes=2)
    stage.at_most("diameter, float16 with a mask", found.diameter, DIAMETER)


def check_solution(stage: Stage, name: str, A: Tensor, found: Solution, measure: str) -> None:
    """A solution is on the device, feasible, and its figures are those of its update."""
    update = found.update.cpu().double()
    ends = extremes(update, impl="naive" if len(update) <= 1000 else "blocked")
    alignment = cloud.alignment(A.double(), update, diameter=ends.diameter)
    cosine = cloud.cosine(A.double(), update)
    held = alignment if measure == "decrease" else cosine
    stage.holds(f"device, {name}", found.update.device.type == stage.device.type)
    stage.at_most(f"diameter, {name}", ends.diameter, DIAMETER)
    stage.at_most(f"missing to the floor, {name}", max(0.0, FLOOR - held), FIGURES)
    for figure, value in (
        ("delta", ends.delta),
        ("diameter", ends.diameter),
        ("rho", ends.delta / ends.diameter),
        ("alignment", alignment),
        ("cosine", cosine),
    ):
        error = abs(getattr(found, figure) - value)
        stage.at_most(f"reported {figure}, {name}", error, FIGURES)
