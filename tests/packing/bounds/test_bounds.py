"""No cloud exceeds the bounds on rho, no update those on the step; both are tight where claimed.

Configurations with known exact values, optimised small clouds and, for the step, the convex
problem solved by an independent solver.
"""

import itertools
import math

import cvxpy as cp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rowsep.packing import bounds, cloud

EXACT = 1e-12
seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(1, 24), st.integers(1, 6))
properties = settings(max_examples=60)


def gaussian(seed, *size):
    """Standard normal entries."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator, dtype=torch.float64)


def simplex(vertices):
    """A regular simplex of edge 1 about the origin, shape (vertices, vertices - 1)."""
    corners = cloud.centre(torch.eye(vertices, dtype=torch.float64)) / math.sqrt(2.0)
    return corners @ torch.linalg.svd(corners).Vh[: vertices - 1].T


def two_simplices(dim):
    """d+2 points: two regular simplices of edge 1, one centre, orthogonal subspaces."""
    return torch.block_diag(simplex((dim + 2) // 2), simplex((dim + 3) // 2))


def edge_midpoints():
    """The 10 edge midpoints of the simplex of R^4 (two distances, the graph T(5))."""
    return torch.stack([sum(pair) for pair in itertools.combinations(simplex(5), 2)])


def clebsch():
    """The 16 even-weight vertices of a cube of R^5 (two distances, the Clebsch graph)."""
    corners = torch.tensor(list(itertools.product([0.0, 1.0], repeat=5)))
    return corners[corners.sum(1) % 2 == 0]


def optimised(seeds, num_rows, dim):
    """Clouds of large rho: gradient descent on the smoothed ratio of squared distances."""
    S = torch.stack([gaussian(seed, num_rows, dim) for seed in seeds]).requires_grad_()
    optimizer = torch.optim.Adam([S], lr=0.05)
    i, j = torch.triu_indices(num_rows, num_rows, 1)
    for step in range(300):
        squared = (S[:, i] - S[:, j]).square().sum(dim=2)
        beta = 4 * 1.02**step
        loss = (beta * squared.log()).logsumexp(1) + (-beta * squared.log()).logsumexp(1)
        optimizer.zero_grad()
        (loss.sum() / beta).backward()
        optimizer.step()
    return S.detach()


@properties
@given(seeds, sizes)
def test_random_clouds_stay_below(seed, size):
    rho = cloud.ratio(gaussian(seed, *size)).value
    for bound in (bounds.closed_form_bound, bounds.volume_bound, bounds.rho_upper_bound):
        assert rho <= bound(*size) + EXACT


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("extra", [0, 1, 2, 3, 5, 9])
def test_optimised_clouds_stay_below(dim, extra):
    num_rows = dim + 1 + extra
    best = max(cloud.ratio(S).value for S in optimised(range(2), num_rows, dim))
    assert best <= bounds.rho_upper_bound(num_rows, dim) + EXACT
    if dim > 1:
        assert best >= 0.75 * bounds.rho_upper_bound(num_rows, dim)


@pytest.mark.parametrize("dim", range(1, 12))
def test_attained_by_simplices(dim):
    for num_rows in range(2, dim + 2):
        assert bounds.rho_upper_bound(num_rows, dim) == 1.0
    assert cloud.ratio(simplex(dim + 1)).value == pytest.approx(1.0, rel=EXACT)
    rho = cloud.ratio(two_simplices(dim)).value
    assert two_simplices(dim).shape == (dim + 2, dim)
    assert rho == pytest.approx(bounds.rho_upper_bound(dim + 2, dim), rel=EXACT)
    assert rho == pytest.approx(bounds.radon_bound(dim), rel=EXACT)
    closed = bounds.closed_form_bound(dim + 2, dim)
    assert rho == pytest.approx(closed, rel=EXACT) if dim % 2 == 0 else rho < closed


@pytest.mark.parametrize("points", [edge_midpoints(), clebsch()])
def test_attained_by_two_distance_sets(points):
    rho = cloud.ratio(points).value
    assert rho == pytest.approx(math.sqrt(0.5), rel=1e-7)
    assert bounds.closed_form_bound(*points.shape) == pytest.approx(math.sqrt(0.5), rel=EXACT)


@pytest.mark.parametrize("num_rows", [2, 3, 4, 10, 1000, 10**9])
def test_attained_on_a_line(num_rows):
    bound = bounds.rho_upper_bound(num_rows, 1)
    assert bound == pytest.approx(1 / (num_rows - 1), rel=EXACT)
    assert bound >= 1 / (num_rows - 1)


@pytest.mark.parametrize(
    ("num_rows", "dim", "squared_ratio"),
    [
        (4, 2, 2.0),
        (5, 2, ((1 + math.sqrt(5)) / 2) ** 2),
        (7, 2, 4.0),
        (16, 2, 12.88926611203),
        (5, 3, 1 + 10 / 14),
        (14, 3, 4.16584976723),
    ],
)
def test_published_clouds_stay_below(num_rows, dim, squared_ratio):
    bound = bounds.rho_upper_bound(num_rows, dim)
    assert 0.6 * bound < 1 / math.sqrt(squared_ratio) <= bound + EXACT


@given(st.integers(0, 10**9), st.integers(1, 10**5))
@properties
def test_the_bounds_fall_with_rows_and_stay_in_range(num_rows, dim):
    for bound in (bounds.closed_form_bound, bounds.volume_bound, bounds.rho_upper_bound):
        value = bound(num_rows, dim)
        assert 0.0 < value <= 1.0
        assert bound(num_rows + 1, dim) <= value
        assert bound(2 * num_rows, dim) <= value
    assert bounds.rho_upper_bound(num_rows, dim) <= bounds.rho_upper_bound(num_rows, dim + 1)


def test_the_least_bound_is_taken():
    least = bounds.rho_upper_bound(2112, 64)
    assert least == pytest.approx(bounds.closed_form_bound(2112, 64), rel=EXACT)
    assert bounds.rho_upper_bound(2112, 64) == pytest.approx(0.88448, abs=5e-6)
    assert bounds.rho_upper_bound(525312, 1024) == pytest.approx(0.96927, abs=5e-6)
    least = bounds.rho_upper_bound(10**6, 3)
    assert least == pytest.approx(bounds.volume_bound(10**6, 3), rel=EXACT)
    assert bounds.volume_bound(10**6, 3) == pytest.approx(1 / 99, rel=1e-12)
    assert bounds.volume_bound(2**20, 20) == 1.0
    assert bounds.rho_upper_bound(16, 2) == pytest.approx(bounds.planar_bound(16), rel=EXACT)
    assert bounds.planar_bound(16) < bounds.volume_bound(16, 2)
    assert [bounds.rho_upper_bound(n, 3) for n in (0, 1, 2, 4)] == [1.0] * 4


@pytest.mark.parametrize("dim", [2, 1000, 10**9])
def test_the_closed_form_does_not_cancel(dim):
    """`1/b - b = 2 sqrt(k)` in exact terms, whatever the size of k."""
    b = bounds.closed_form_bound(10**9 + 3, dim)
    kappa = max(0, 10**9 + 2 - dim) / (dim * (10**9 + 3))
    assert (1 - b) * (1 + b) / b == pytest.approx(2 * math.sqrt(kappa), rel=1e-6)
    assert b == pytest.approx(math.exp(-math.asinh(math.sqrt(kappa))), rel=1e-14)


def steepest(A):
    """`max <A,S> subject to D(S) <= 1` by a cone solver."""
    S = cp.Variable(A.shape)
    pairs = list(itertools.combinations(range(len(A)), 2))
    left, right = zip(*pairs, strict=True)
    constraint = cp.norm(S[list(left)] - S[list(right)], axis=1) <= 1
    centred = (A - A.mean(0)).numpy()
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(centred, S))), [constraint])
    return problem.solve(solver=cp.CLARABEL)


STEPS = {
    "gaussian": gaussian(0, 9, 3),
    "wide": gaussian(1, 5, 8),
    "heavy rows": gaussian(2, 10, 3) * torch.logspace(0, 3, 10, dtype=torch.float64)[:, None],
    "low rank and noise": gaussian(3, 10, 1) @ gaussian(4, 1, 6) + 0.05 * gaussian(5, 10, 6),
    "one column": gaussian(6, 9, 1),
    "two rows": gaussian(7, 2, 4),
    "one row out": torch.eye(8, dtype=torch.float64)[:, :1] @ gaussian(9, 1, 4),
    "shifted": gaussian(0, 9, 3) + 5.0,
}


@pytest.mark.parametrize("name", STEPS)
def test_the_steepest_step_lies_between(name):
    A = STEPS[name]
    value = steepest(A)
    lower, upper = bounds.steepest_lower_bound(A), bounds.steepest_upper_bound(A)
    assert lower.value <= value * (1 + 1e-6)
    assert value <= upper.value * (1 + 1e-6)
    assert upper.value <= math.sqrt(2.0) * lower.value * (1 + 1e-12)
    low, high = bounds.max_alignment_bounds(A)
    jung = cloud.jung_radius(A.shape[1]) * cloud.centre(A).norm(dim=1).sum().item()
    assert low == pytest.approx(lower.value / jung, rel=1e-12)
    assert high == pytest.approx(min(1.0, upper.value / jung), rel=1e-12)


def two_clusters(num_rows):
    """Rows +1 and -1 along one axis of R^3."""
    return torch.tensor([[(-1.0) ** i, 0.0, 0.0] for i in range(num_rows)])


@pytest.mark.parametrize(
    ("A", "upper_source"),
    [
        (simplex(5), None),
        (gaussian(7, 2, 4), None),
        (two_clusters(8), "Jung on each of 3"),
        (torch.block_diag(two_clusters(8)[:, :1], 3 * two_clusters(6)), "Jung on each of 4"),
        (gaussian(8, 30, 1), None),
    ],
)
def test_where_the_step_is_known(A, upper_source):
    lower, upper = bounds.steepest_lower_bound(A, 3.0), bounds.steepest_upper_bound(A, 3.0)
    assert lower.value == pytest.approx(upper.value, rel=1e-9)
    assert upper_source in (None, upper.source)


@properties
@given(seeds, sizes, st.sampled_from([0.0, 1e-3, 1.0, 7.5]))
def test_no_update_of_the_diameter_exceeds_the_step(seed, size, diameter):
    A, S = gaussian(seed, *size), gaussian(seed + 1, *size)
    a = cloud.centre(A)
    upper = bounds.steepest_upper_bound(A, diameter).value
    jung = diameter * cloud.jung_radius(size[1]) * a.norm(dim=1).sum().item()
    frobenius = diameter * math.sqrt(max(0, size[0] - 1) / 2) * a.norm().item()
    spectral = math.sqrt(size[0] // 2 * (size[0] - size[0] // 2) / size[0])
    nuclear = diameter * spectral * torch.linalg.svdvals(a).sum().item()
    assert upper <= min(jung, frobenius, nuclear) * (1 + 1e-9)
    attained = {"row-normalised": torch.nn.functional.normalize(a, dim=1) / 2, "scaled": a}
    for update in (S, a, attained["row-normalised"]):
        spread = cloud.diameter(update).value
        if spread > 0.0:
            assert (a * update).sum().item() * diameter / spread <= upper * (1 + 1e-9)
    lower = bounds.steepest_lower_bound(A, diameter)
    if size[0] > 1:
        best = attained[lower.source]
        scale = 1.0 if lower.source == "row-normalised" else 1 / cloud.diameter(a).value
        assert lower.value == pytest.approx(diameter * scale * (a * best).sum().item(), rel=1e-9)
        low, high = bounds.max_alignment_bounds(A)
        assert math.sqrt((size[1] + 1) / (2 * size[1])) - EXACT <= low <= high + EXACT
        assert high <= 1.0


def test_the_step_of_extreme_and_masked_momenta():
    A = gaussian(1, 12, 3)
    mask = torch.arange(12) % 4 > 0
    for function in (bounds.steepest_lower_bound, bounds.steepest_upper_bound):
        value = function(A).value
        assert function(A * 2.0**900).value == pytest.approx(value * 2.0**900, rel=EXACT)
        assert function(A * 2.0**-900).value == pytest.approx(value * 2.0**-900, rel=EXACT)
        assert function(A, mask=mask).value == pytest.approx(function(A[mask]).value, rel=EXACT)
        assert function(A, 0.0).value == 0.0
        assert function(torch.ones(4, 2)).value == function(A[:1]).value == 0.0
        assert function(A.half()).value == pytest.approx(function(A.half().double()).value)
    whole = bounds.max_alignment_bounds(A[mask])
    assert bounds.max_alignment_bounds(A, mask) == pytest.approx(whole, rel=EXACT)
    assert bounds.max_alignment_bounds(A * 2.0**1020) == pytest.approx(
        bounds.max_alignment_bounds(A), rel=EXACT
    )
    assert bounds.max_alignment_bounds(torch.ones(4, 2)) == (0.0, 0.0)
    assert bounds.max_alignment_bounds(A[:1]) == (0.0, 0.0)
