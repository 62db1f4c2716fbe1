"""Ends of the batched interior-point method satisfy the conditions of a local optimum."""

import math

import pytest
import torch

from rowsep.packing.exact.floors import Cosine, Decrease, Problem, unit_diameter
from rowsep.packing.exact.interior_point.clouds import solve_batch


def run(starts, floor=None, mu=1e-2, margin=0.05):
    return solve_batch(starts, starts.new_full((len(starts),), mu), margin, floor)


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def conditions(optima, k, gradient):
    """Largest violation of the conditions of first order, from the definitions."""
    x, u, w = optima.points[k], optima.near[k], optima.far[k]
    q = torch.cdist(x, x).square()
    off = ~torch.eye(len(x), dtype=torch.bool)
    s = q[off].min()
    pull = 2 * ((w - u)[..., None] * (x[:, None] - x[None])).sum(dim=1)
    return max(
        float((pull - optima.floor[k] * gradient).abs().max()),
        abs(float(u.sum()) / 2 - 1),
        float((u * (q - s))[off].abs().max()),
        float((w * (1 - q))[off].abs().max()),
        float((q[off] - 1).max()),
        -float(torch.minimum(u, w).min()),
        abs(float(optima.separation[k] - s)),
    )


@pytest.mark.parametrize(("n", "d"), [(2, 1), (5, 1), (7, 2), (9, 3)])
def test_conditions_of_first_order(generator, n, d):
    optima = run(normal(generator, 24, n, d))
    assert optima.converged.double().mean() > 0.5
    for k in optima.converged.nonzero()[:, 0].tolist():
        assert conditions(optima, k, torch.zeros(n, d, dtype=torch.float64)) < 1e-8


@pytest.mark.parametrize("kind", [Decrease, Cosine])
def test_conditions_with_a_floor(generator, kind):
    A = normal(generator, 3, 2).repeat(2, 1)  # twins, so that no separated cloud meets the floor
    A -= A.mean(dim=0)
    A /= A.norm(dim=1, keepdim=True)
    A -= A.mean(dim=0)
    anchor = unit_diameter(A.numpy())
    reached = float(kind(A, 0.0).value(torch.from_numpy(anchor).T[None]))
    size = float(torch.from_numpy(anchor).norm()) if kind is Cosine else 1.0
    problem = Problem(6, 2, kind(A, 0.97 * reached / size), anchor)
    margin = problem.margin
    clouds = [problem.inside(normal(generator, 6, 2).numpy(), margin) for _ in range(24)]
    optima = run(torch.stack([torch.from_numpy(c) for c in clouds]), problem.floor, 1e-3, margin)
    good = optima.converged.nonzero()[:, 0].tolist()
    assert len(good) >= 12
    x = optima.points.transpose(1, 2)
    gradients = problem.floor.gradient(x).transpose(1, 2)
    for k in good:
        assert conditions(optima, k, gradients[k]) < 1e-8
        assert float(problem.floor.value(x)[k]) > -1e-12
    assert float(optima.floor[good].max()) > 1e-3, "the floor should bind somewhere"


@pytest.mark.parametrize("kind", [Decrease, Cosine])
def test_derivatives_of_the_floors(generator, kind):
    A = normal(generator, 5, 3)
    floor = kind(A - A.mean(dim=0), 0.3)
    x = normal(generator, 1, 3, 5).requires_grad_()
    (gradient,) = torch.autograd.grad(floor.value(x).sum(), x)
    torch.testing.assert_close(floor.gradient(x.detach()), gradient)
    hessian = torch.autograd.functional.hessian(lambda y: floor.value(y).sum(), x.detach())
    assert isinstance(hessian, torch.Tensor)
    torch.testing.assert_close(floor.hessian(x.detach())[0], hessian.reshape(15, 15))
    value, normal_row = floor.exact(x.detach()[0].T.numpy().astype(object))
    assert float(value) == pytest.approx(float(floor.value(x.detach())))
    torch.testing.assert_close(
        torch.from_numpy(normal_row.astype(float)), gradient[0].T.contiguous(), atol=1e-12, rtol=0
    )
    turned = floor.turned(x.detach())
    assert float(floor.value(turned)) >= float(floor.value(x.detach())) - 1e-12
    torch.testing.assert_close(turned[0].T @ turned[0], x.detach()[0].T @ x.detach()[0])


def test_a_start_does_not_depend_on_its_neighbours(generator):
    starts = normal(generator, 8, 7, 2)
    alone = torch.cat([run(one[None]).separation for one in starts])
    torch.testing.assert_close(run(starts).separation, alone, rtol=1e-9, atol=0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_of_the_start(generator, scale):
    starts = normal(generator, 4, 6, 3)
    a, b = run(starts), run(scale * starts)
    torch.testing.assert_close(a.separation, b.separation, rtol=1e-9, atol=0)


def test_three_points_become_a_regular_triangle(generator):
    optima = run(normal(generator, 5, 3, 2))
    torch.testing.assert_close(optima.separation, torch.ones(5, dtype=torch.float64))


def test_a_small_barrier_stays_at_a_known_optimum():
    """The regular pentagon, squared ratio ((1 + sqrt 5)/2)^2, is found again from itself."""
    angles = 2 * math.pi * torch.arange(5, dtype=torch.float64) / 5
    pentagon = torch.stack([angles.cos(), angles.sin()], dim=1)
    found = run(pentagon[None], mu=1e-7, margin=1e-7)
    assert float(1 / found.separation) == pytest.approx((3 + math.sqrt(5)) / 2, rel=1e-12)
