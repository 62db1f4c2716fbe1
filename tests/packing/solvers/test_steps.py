"""Steps of the solvers by their formulas."""

import math

import pytest
import torch

from rowsep.packing import solve
from rowsep.packing.solve import SOLVERS
from rowsep.packing.solvers.geometry import Onion, Shell
from rowsep.packing.solvers.guttman import Guttman
from rowsep.packing.solvers.projected_gradient import ProjectedGradient
from rowsep.packing.solvers.smoothed import Smoothed
from tests.packing.clouds import gaussian, momenta


def test_the_guttman_transform_lowers_the_stress(generator):
    x = gaussian(40, 6, generator, torch.float64)
    x = x - x.mean(dim=0)
    method, geometry = Guttman(), None
    pairs = torch.ones(40, 40, dtype=torch.bool).triu(1)
    stresses = []
    for _ in range(20):
        stresses.append(float(((torch.cdist(x, x)[pairs] - 1) ** 2).sum()))
        assert stresses[-1] <= stresses[max(0, len(stresses) - 2)] * (1 + 1e-12)
        found = method.visit(x, 1.0, math.inf, 0.0)
        moved = x + method.step_(geometry, x, found.force, x.new_ones(40))
        naive = torch.stack([_unit_vectors(x, i).sum(dim=0) / 40 for i in range(40)])
        torch.testing.assert_close(moved, naive, rtol=0, atol=1e-12)
        x = moved
    assert stresses[-1] < 0.9 * stresses[1]


def _unit_vectors(x, i):
    away = x[i] - torch.cat([x[:i], x[i + 1 :]])
    return away / away.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("far", [math.inf, 1.4])
def test_the_hinge_force_is_minus_the_gradient(far, generator):
    x = gaussian(30, 4, generator, torch.float64) / 2
    near = 0.9
    y = x.clone().requires_grad_()
    i, j = torch.triu_indices(30, 30, 1)
    d = (y[i] - y[j]).norm(dim=1)
    energy = ((near - d).clamp_min(0) ** 2 + (d - far).clamp_min(0) ** 2).sum() / 2
    energy.backward()
    found = ProjectedGradient().visit(x, near, far, 0.0)
    torch.testing.assert_close(found.force, -y.grad, rtol=0, atol=1e-12)
    assert found.pairs == int(((d <= near) | (d >= far)).sum())


@pytest.mark.parametrize("far", [math.inf, 1.6])
@pytest.mark.parametrize("part, beta", [(0.0, 2.0), (1.0, 20.0)])
def test_the_smoothed_force_is_the_softmax_over_wrong_pairs(far, part, beta, generator):
    x = gaussian(30, 4, generator, torch.float64) / 2
    near, most = 0.9, math.exp(60)
    force = torch.zeros_like(x)
    for i in range(30):
        for j in range(30):
            q = float((x[i] - x[j]) @ (x[i] - x[j]))
            if i == j:
                continue
            w = min((near**2 / q) ** beta / q, most) if q <= near**2 else 0.0
            w -= min((q / far**2) ** beta / q, most) if q >= far**2 else 0.0
            force[i] += w * (x[i] - x[j])
    found = Smoothed().visit(x, near, far, part)
    torch.testing.assert_close(found.force, force, rtol=1e-9, atol=1e-9 * float(force.abs().max()))


NEAR_TIES = ["rank 1", "heavy row", "nine decades"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", NEAR_TIES)
def test_rows_that_nearly_coincide_are_separated(solver, name):
    """Row directions equal up to rounding, or light rows all at one place, in float32."""
    A = dict(momenta(torch.Generator().manual_seed(1)))[name]
    assert solve(A, solver=solver, passes=12).rho >= 0.02


@pytest.mark.parametrize("geometry", [Shell, lambda A: Onion(A, 0.6)])
def test_tangent_steps_keep_norms_to_first_order(geometry, generator):
    A = gaussian(40, 5, generator, torch.float64)
    where = geometry(A)
    rows = where.start()
    step = where.tangent_(rows, gaussian(40, 5, generator, torch.float64))
    assert float((step * rows).sum(dim=1).abs().max()) < 1e-12
    small = (rows + 1e-6 * step).norm(dim=1) - rows.norm(dim=1)
    assert float(small.abs().max()) < 1e-9
