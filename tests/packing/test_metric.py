"""The metric of hidden states: distances, bounds and solutions are those of `S Sigma^(1/2)`."""

import math
from fractions import Fraction

import pytest
import torch

from rowsep.packing import cloud, measure, solve, steepest_step
from rowsep.packing.metric import Metric, in_metric
from tests.packing.clouds import gaussian, rotation


def second_moment(d, generator, decades=2.0):
    """Of random axes, eigenvalues spread over powers of ten, float64."""
    axes = rotation(d, generator)
    values = 10 ** (-decades * torch.rand(d, generator=generator, dtype=torch.float64))
    made = axes * values @ axes.T
    return (made + made.T) / 2


def test_the_roots_are_roots(generator):
    sigma = second_moment(7, generator)
    metric = Metric(sigma, damping=0.1)
    damped = sigma + 0.1 * sigma.trace() / 7 * torch.eye(7, dtype=torch.float64)
    torch.testing.assert_close(metric.sigma, damped)
    torch.testing.assert_close(metric.root @ metric.inverse_root, torch.eye(7).double())
    torch.testing.assert_close(metric.root, metric.root.T)
    assert metric.condition == pytest.approx(float(torch.linalg.cond(metric.root)))


def test_damping_only_enlarges_the_ellipsoid(generator):
    """So a bound in the damped metric holds in the undamped one."""
    sigma, hidden = second_moment(6, generator), gaussian(50, 6, generator)
    assert (Metric(sigma, damping=0.3).norms(hidden) < Metric(sigma).norms(hidden)).all()


def test_norms_of_the_states_it_is_made_of_have_mean_square_d(generator):
    hidden = gaussian(90, 5, generator) @ gaussian(5, 5, generator)
    metric = Metric.of_hidden(hidden.view(9, 10, 5), damping=0.0)
    assert float(metric.norms(hidden).square().mean()) == pytest.approx(5.0)


def test_masked_states_count_nowhere(generator):
    hidden = gaussian(40, 4, generator).view(4, 10, 4)
    mask = torch.rand(4, 10, generator=generator) < 0.7
    mask[0, :6] = True
    made = Metric.of_hidden(hidden, mask=mask)
    torch.testing.assert_close(made.sigma, Metric.of_hidden(hidden[mask]).sigma)


def test_a_momentum_estimates_the_moment_it_was_drawn_from(generator):
    """Rows `sqrt(p_i) z_i Sigma^(1/2)` with white `z_i`, as softmax gradients have them."""
    sigma = second_moment(4, generator, decades=1.0)
    rows = gaussian(20_000, 4, generator).double() @ Metric(sigma).root
    rows *= torch.rand(20_000, 1, generator=generator, dtype=torch.float64).sqrt()
    made = Metric.of_momentum(rows, damping=0.0).sigma
    expected = sigma / sigma.trace() * 4
    assert float((made - expected).norm() / expected.norm()) < 0.1
    assert float(made.trace()) == pytest.approx(4.0)


def test_the_plain_metric_is_the_identity(generator):
    A, S, eye = gaussian(30, 5, generator), gaussian(30, 5, generator), torch.eye(5)
    plain, same = measure(S, momentum=A), measure(S, momentum=A, metric=eye)
    assert same.farthest == plain.farthest and same.closest == plain.closest
    for name in ("diameter", "delta", "rho", "alignment", "cosine"):
        assert getattr(same, name) == pytest.approx(getattr(plain, name), rel=1e-12)
    assert torch.equal(solve(A, metric=eye).update, solve(A).update)
    assert torch.equal(steepest_step(A, metric=eye).update, steepest_step(A).update)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_figures_are_those_of_the_stretched_rows(generator, dtype, masked):
    """By loops over the definition."""
    sigma = second_moment(4, generator)
    A, S = gaussian(17, 4, generator, dtype), gaussian(17, 4, generator, dtype)
    mask = torch.rand(17, generator=generator) < 0.8 if masked else torch.ones(17).bool()
    mask[:3] = True
    found = measure(S, momentum=A, mask=mask, metric=sigma)
    rows = [i for i in range(17) if mask[i]]
    distances = {}
    for i in rows:
        for j in rows:
            if i < j:
                x = S[i].double() - S[j].double()
                distances[i, j] = math.sqrt(float(x @ sigma @ x))
    a = A[mask].double() - A[mask].double().mean(dim=0)
    s = S[mask].double() - S[mask].double().mean(dim=0)
    inverse = torch.linalg.inv(sigma)
    lengths = [math.sqrt(float(x @ inverse @ x)) for x in a]
    inner = float((a * s).sum())
    size = math.sqrt(sum(float(x @ sigma @ x) for x in s))
    assert found.diameter == pytest.approx(max(distances.values()), rel=1e-10)
    assert found.delta == pytest.approx(min(distances.values()), rel=1e-10)
    assert distances[found.farthest] == pytest.approx(found.diameter, rel=1e-10)
    jung = math.sqrt(4 / 10)
    assert found.alignment == pytest.approx(inner / (found.diameter * jung * sum(lengths)))
    assert found.cosine == pytest.approx(inner / (math.hypot(*lengths) * size))
    assert cloud.diameter(S, mask, metric=sigma).value == pytest.approx(found.diameter)
    assert cloud.separation(S, mask, metric=sigma).value == pytest.approx(found.delta)


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_scale_of_sigma_scales_distances(generator, size):
    sigma, S, A = (
        second_moment(5, generator),
        gaussian(20, 5, generator),
        gaussian(20, 5, generator),
    )
    one, other = (
        measure(S, momentum=A, metric=sigma),
        measure(S, momentum=A, metric=size**2 * sigma),
    )
    assert other.diameter == pytest.approx(size * one.diameter)
    assert other.delta == pytest.approx(size * one.delta)
    for name in ("rho", "alignment", "cosine"):
        assert getattr(other, name) == pytest.approx(getattr(one, name))
    A = A.double()  # in which rounding has not grown to anything after 24 passes
    made, scaled = solve(A, metric=sigma), solve(A, metric=size**2 * sigma)
    torch.testing.assert_close(scaled.update * size, made.update, rtol=0, atol=1e-5)
    assert scaled.rho == pytest.approx(made.rho, rel=1e-5)


def test_turning_everything_changes_no_figure(generator):
    sigma, S, A = (
        second_moment(5, generator),
        gaussian(20, 5, generator),
        gaussian(20, 5, generator),
    )
    turn = rotation(5, generator)
    S, A = S.double(), A.double()
    one = measure(S, momentum=A, metric=sigma)
    other = measure(S @ turn, momentum=A @ turn, metric=turn.T @ sigma @ turn)
    for name in ("diameter", "delta", "rho", "alignment", "cosine"):
        assert getattr(other, name) == pytest.approx(getattr(one, name))
    step, turned = (
        steepest_step(A, metric=sigma),
        steepest_step(A @ turn, metric=turn.T @ sigma @ turn),
    )
    assert turned.value == pytest.approx(step.value, rel=1e-5)


@pytest.mark.parametrize("measured", ["decrease", "cosine"])
@pytest.mark.parametrize("solver", ["projected_gradient", "smoothed", "guttman"])
def test_a_solution_in_the_metric_is_one_of_the_transformed_problem(generator, solver, measured):
    metric = Metric(second_moment(5, generator))
    A = gaussian(40, 5, generator).double()
    made = solve(A, metric=metric, solver=solver, measure=measured)
    plain = solve(metric.whitened(A), solver=solver, measure=measured)
    torch.testing.assert_close(metric.stretched(made.update), plain.update, rtol=0, atol=1e-6)
    assert made.rho == pytest.approx(plain.rho, rel=1e-5)
    assert made.alignment == pytest.approx(plain.alignment, rel=1e-5)
    assert made.met and made.passes == plain.passes


def test_the_exact_solver_takes_a_metric(generator):
    metric = Metric(second_moment(2, generator, decades=1.0))
    A = gaussian(6, 2, generator).double()
    made = solve(A, metric=metric, solver="exact", starts=64, alignment=-1.0)
    assert made.rho == pytest.approx(solve(A, solver="exact", starts=64, alignment=-1.0).rho)
    assert measure(made.update, metric=metric).rho == pytest.approx(made.rho)


@pytest.mark.parametrize("solver", ["first_order", "interior_point"])
def test_the_steepest_step_in_the_metric_is_that_of_the_transformed_problem(generator, solver):
    metric = Metric(second_moment(4, generator))
    A = 1e-5 * gaussian(40, 4, generator).double() + 3
    mask = torch.arange(40) < 33
    made = steepest_step(A, metric=metric, mask=mask, solver=solver, diameter=2.0)
    centred = cloud.centre(A, mask)
    plain = steepest_step(metric.whitened(centred), mask=mask, solver=solver, diameter=2.0)
    assert made.value == pytest.approx(plain.value, rel=1e-3)
    assert made.value <= made.upper and plain.value <= made.upper * (1 + 1e-9)
    assert made.value == pytest.approx(float((centred * made.update).sum()))
    assert measure(made.update, mask=mask, metric=metric).diameter == pytest.approx(made.diameter)
    assert made.flow.divergence()[mask].sum(dim=0).abs().max() < 1e-10
    assert not made.update[~mask].any()


def exact_squared_diameter(rows, metric):
    """In rational arithmetic, of the binary fractions that update and root are."""
    root = [[Fraction(x) for x in row] for row in metric.root.tolist()]
    columns = list(zip(*root, strict=True))
    made = [
        [sum(Fraction(x) * y for x, y in zip(row, column, strict=True)) for column in columns]
        for row in rows.double().tolist()
    ]
    return max(
        sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        for k, a in enumerate(made)
        for b in made[:k]
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_diameter_in_the_metric_is_not_exceeded(generator, dtype):
    """By the update as returned, whose rounding the root may stretch a thousandfold."""
    metric = Metric(second_moment(4, generator, decades=6.0))
    A = gaussian(14, 4, generator, dtype)
    for made in (solve(A, metric=metric, passes=4), steepest_step(A, metric=metric)):
        exact = exact_squared_diameter(made.update, metric)
        assert exact <= 1
        assert float(exact) ** 0.5 == pytest.approx(made.diameter, rel=1e-9)
        assert made.diameter > (0.99 if dtype in (torch.float32, torch.float64) else 0.3)


def test_the_worst_state_lies_on_the_ellipsoid_and_attains_the_bound(generator):
    metric = Metric(second_moment(5, generator))
    S, U = gaussian(12, 5, generator).double(), gaussian(12, 5, generator).double()
    worst = cloud.worst_hidden_state(S, 3.0, metric=metric)
    assert float(metric.norms(worst.hidden)) == pytest.approx(3.0)
    p, q = (torch.softmax(W @ worst.hidden, dim=0) for W in (U, U + S))
    assert cloud.hilbert_distance(p, q) == pytest.approx(worst.distance)
    assert worst.distance == pytest.approx(3.0 * measure(S, metric=metric).diameter)
    others = gaussian(500, 5, generator).double()
    others *= 3.0 / metric.norms(others)[:, None]
    logits = others @ S.T
    changes = logits.max(dim=1).values - logits.min(dim=1).values
    assert changes.max() <= worst.distance * (1 + 1e-12)


def test_a_gain_is_a_diagonal_metric(generator):
    S, gain = gaussian(12, 5, generator), torch.rand(5, generator=generator) + 0.1
    by_gain = cloud.worst_hidden_state(S, 2.0, gain)
    by_metric = cloud.worst_hidden_state(S, 2.0, metric=torch.diag(gain.double() ** 2))
    assert by_metric.distance == pytest.approx(by_gain.distance)
    torch.testing.assert_close(by_metric.hidden, by_gain.hidden)
    with pytest.raises(ValueError, match="gain and metric are both given"):
        cloud.worst_hidden_state(S, 2.0, gain, metric=torch.eye(5))


def test_rows_left_out_come_back_as_zero(generator):
    S, metric = gaussian(9, 3, generator), Metric(second_moment(3, generator))
    mask = torch.arange(9) < 6
    made, exponent = in_metric(S, metric, mask)
    assert not made[mask.logical_not()].any()
    found = measure(made[mask] * 2.0**exponent).diameter
    assert found == pytest.approx(measure(S[mask], metric=metric).diameter)


def test_equal_rows_give_zero_in_any_metric(generator):
    metric = Metric(second_moment(3, generator))
    A = torch.ones(8, 3) * gaussian(1, 3, generator)
    assert not solve(A, metric=metric).update.any()
    assert not steepest_step(A, metric=metric).update.any()
    assert measure(A, momentum=A, metric=metric).alignment == 0.0


@pytest.mark.parametrize(
    "bad, error, said",
    [
        ([[1.0]], TypeError, "metric is a list"),
        (torch.eye(3).half(), TypeError, "metric has dtype torch.float16"),
        (torch.ones(3, 4), ValueError, r"metric has shape \(3, 4\), expected \(d, d\)"),
        (torch.ones(3), ValueError, r"metric has shape \(3,\)"),
        (torch.zeros(0, 0), ValueError, r"metric has shape \(0, 0\)"),
        (torch.eye(3) * math.nan, ValueError, "entries NaN or infinite"),
        (torch.zeros(3, 3), ValueError, "metric is zero"),
        (torch.eye(3) + torch.ones(3, 3).triu(1), ValueError, "not symmetric"),
        (torch.diag(torch.tensor([1.0, 1.0, -0.1])), ValueError, "smallest eigenvalue is -0.1"),
        (torch.diag(torch.tensor([1.0, 1.0, 0.0])), ValueError, "1 of 3 directions without"),
        (1e32 * torch.eye(3), ValueError, "mean eigenvalue 1e.32"),
        (torch.eye(4), ValueError, "metric is of 4 dimensions, the rows of 3"),
    ],
    ids=lambda x: str(x)[:20] if isinstance(x, str) else "",
)
def test_a_bad_metric_is_refused(generator, bad, error, said):
    A = gaussian(8, 3, generator)
    for function in (solve, steepest_step, measure, cloud.ratio, cloud.diameter):
        with pytest.raises(error, match=said):
            function(A, metric=bad)


def test_directions_without_data_ask_for_damping(generator):
    hidden = gaussian(3, 8, generator)
    with pytest.raises(ValueError, match=r"5 of 8 directions .* damping=0.01"):
        Metric(hidden.T @ hidden / 3)
    assert Metric(hidden.T @ hidden / 3, damping=0.01).condition < math.sqrt(8 / 0.01) + 1
    with pytest.raises(ValueError, match="damping is -1"):
        Metric(torch.eye(3), damping=-1.0)
    with pytest.raises(ValueError, match="no state counts"):
        Metric.of_hidden(torch.ones(0, 3))
    with pytest.raises(ValueError, match="equal rows"):
        Metric.of_momentum(torch.ones(4, 3))


def test_an_update_beyond_its_dtype_is_refused(generator):
    A = gaussian(8, 3, generator, torch.float16)
    with pytest.raises(ValueError, match="exceeds .* the largest torch.float16"):
        solve(A, metric=1e-12 * torch.eye(3))
