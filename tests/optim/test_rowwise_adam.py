"""RowwiseAdam: lengths of rows from their gradients, one scale for the space, a bounded step."""

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import optim
from optim.updates.right_polar import right_polar
from optim.updates.rowwise_adam import followed_row_rms, rowwise_adam
from packing import cloud
from tests.optim.optimisers import stepped
from tests.packing.clouds import gaussian


def naive(weight: Tensor, grads: list[Tensor], lr, beta, beta2, nesterov, polar) -> Tensor:
    """The formulas in float64, by loops over rows."""
    w, m = weight.double(), torch.zeros_like(weight, dtype=torch.float64)
    squares = [0.0] * len(w)
    for g in (g.double() for g in grads):
        m = beta * m + (1 - beta) * g
        n = beta * m + (1 - beta) * g if nesterov else m
        centre, mean = n.mean(dim=0), g.mean(dim=0)
        rows = []
        for i in range(len(w)):
            squares[i] = beta2 * squares[i] + (1 - beta2) * float((g[i] - mean) @ (g[i] - mean))
            rows.append((n[i] - centre) / squares[i] ** 0.5)
        x = torch.stack(rows)
        x = x - x.mean(dim=0)
        u = right_polar(x, alpha=0.0) if polar else x
        u = u - u.mean(dim=0)
        w = w - lr * u / torch.pdist(u).max()
    return w


@pytest.mark.parametrize("polar", [True, False])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", [(19, 5), (7, 1), (70, 13)], ids=str)
def test_it_computes_its_formulas(generator, shape, nesterov, polar):
    weight = gaussian(*shape, generator)
    grads = [gaussian(*shape, generator) * 10.0**k for k in (0, -2, 1, 0)]
    p, _ = stepped(
        optim.RowwiseAdam, weight, grads, lr=0.3, beta2=0.9, nesterov=nesterov, polar=polar
    )
    expected = naive(weight, grads, 0.3, 0.9, 0.9, nesterov, polar)
    torch.testing.assert_close(p.detach().double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_keeps_its_bound(generator, dtype):
    """Exactly: the diameter of what is reported and, but for one rounding, of what has moved."""
    weight = torch.zeros(200, 16, dtype=dtype)
    lengths = torch.logspace(-12, 3, 200, dtype=dtype)[:, None]
    grads = [gaussian(200, 16, generator, dtype) * lengths for _ in range(3)]
    p, optimiser = stepped(optim.RowwiseAdam, weight, grads[:2], lr=1.0, radius=4.0)
    before = p.detach().clone()
    p.grad = grads[2]
    optimiser.step()
    report = optimiser.last_step["0.0"]
    assert 1 - 1e-5 <= report.diameter <= 1
    assert report.log_odds == 4.0 * report.diameter
    moved = cloud.ratio(before - p.detach())
    eps = torch.finfo(dtype).eps
    assert moved.diameter == pytest.approx(report.diameter, abs=16 * eps)
    assert moved.delta == pytest.approx(report.delta, abs=16 * eps)
    assert report.cosine > 0


def test_a_single_token_and_equal_rows_report_no_distance(generator):
    for rows, delta in ((1, float("inf")), (5, 0.0)):
        grad = gaussian(1, 4, generator).expand(rows, 4).clone()
        p, optimiser = stepped(optim.RowwiseAdam, torch.ones(rows, 4), [grad], lr=1.0)
        assert torch.equal(p.detach(), torch.ones(rows, 4))
        report = optimiser.last_step["0.0"]
        assert (report.diameter, report.rho, report.delta) == (0.0, 0.0, delta)


def test_rows_that_cancel_stay_short(generator):
    """A row whose gradient changes its sign in every step moves less than one that keeps it."""
    signs = torch.ones(40, 1)
    signs[:20] = -1
    direction = gaussian(40, 8, generator)
    p = Parameter(torch.zeros(40, 8))
    optimiser = optim.RowwiseAdam([p], lr=1.0, polar=False, nesterov=False)
    for k in range(60):
        before = p.detach().clone()
        p.grad = direction * signs**k
        optimiser.step()
    moved = (p.detach() - before).norm(dim=1)
    # (1 - beta)/(1 + beta) = 1/19 of the length, but for the mean that is subtracted
    assert moved[:20].mean() < 0.4 * moved[20:].mean()


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e20])
def test_gradients_of_any_scale_give_one_step(generator, size):
    weight = gaussian(30, 6, generator)
    grads = [gaussian(30, 6, generator) for _ in range(3)]
    p, _ = stepped(optim.RowwiseAdam, weight, grads, lr=0.1)
    scaled, _ = stepped(optim.RowwiseAdam, weight, [size * g for g in grads], lr=0.1)
    torch.testing.assert_close(scaled, p, rtol=0, atol=1e-5)


@pytest.mark.parametrize("vocab_dim", [0, 1])
def test_padding_counts_nowhere(generator, vocab_dim):
    def oriented(x):
        return x if vocab_dim == 0 else x.T.contiguous()

    weight = gaussian(23, 4, generator)
    grads = [gaussian(23, 4, generator) for _ in range(3)]
    padded = [torch.cat([g, 1e6 * gaussian(5, 4, generator)]) for g in grads]
    p, _ = stepped(optim.RowwiseAdam, weight, grads, lr=0.1)
    wide, optimiser = stepped(
        optim.RowwiseAdam,
        oriented(torch.cat([weight, torch.ones(5, 4)])),
        [oriented(g) for g in padded],
        lr=0.1,
        vocab_dim=vocab_dim,
        num_real_rows=23,
    )
    wide = oriented(wide.detach()) if vocab_dim else wide.detach()
    torch.testing.assert_close(wide[:23], p.detach(), rtol=0, atol=1e-6)
    assert torch.equal(wide[23:], torch.ones(5, 4))
    assert not optimiser.state[optimiser.param_groups[0]["params"][0]]["row_rms"][23:].any()


def test_a_refused_gradient_changes_nothing(generator):
    p, optimiser = stepped(
        optim.RowwiseAdam, gaussian(9, 4, generator), [gaussian(9, 4, generator)], lr=0.1
    )
    weight = p.detach().clone()
    state = {k: v.clone() for k, v in optimiser.state[p].items()}
    for bad in (float("nan"), float("inf")):
        p.grad = gaussian(9, 4, generator)
        p.grad[3, 1] = bad
        with pytest.raises(ValueError, match="finite"):
            optimiser.step()
        assert torch.equal(p.detach(), weight)
        assert all(torch.equal(optimiser.state[p][k], v) for k, v in state.items())


def test_the_update_is_equivariant(generator):
    rows, rms = gaussian(31, 6, generator), torch.rand(31, generator=generator) + 0.1
    order = torch.randperm(31, generator=generator)
    turn = torch.linalg.qr(gaussian(6, 6, generator).double()).Q.float()
    made = rowwise_adam(rows, rms)
    torch.testing.assert_close(rowwise_adam(rows[order], rms[order]), made[order])
    torch.testing.assert_close(rowwise_adam(rows @ turn, rms), made @ turn, rtol=0, atol=1e-5)


def test_rows_without_a_gradient_count_as_zero(generator):
    rows = gaussian(12, 4, generator)
    rms = torch.ones(12)
    rms[[2, 5]] = 0
    made = rowwise_adam(rows, rms, polar=False)
    assert torch.equal(made[2], made[5])
    kept = rows - rows.mean(dim=0)
    kept[[2, 5]] = 0
    expected = kept - kept.mean(dim=0)
    torch.testing.assert_close(made / made.norm(), expected / expected.norm())


def test_row_rms_follows_its_formula(generator):
    rms = torch.zeros(11, dtype=torch.float64)
    squares = torch.zeros(11, dtype=torch.float64)
    for _ in range(5):
        grad = gaussian(11, 3, generator).double()
        rms = followed_row_rms(rms, grad, 0.7)
        squares = 0.7 * squares + 0.3 * (grad - grad.mean(dim=0)).square().sum(dim=1)
    torch.testing.assert_close(rms, squares.sqrt())


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"beta2": 1.0}, ValueError, "beta2 is 1.0"),
        ({"beta2": -0.1}, ValueError, "beta2"),
        ({"polar": 1}, TypeError, "polar is 1"),
        ({"num_steps": 0}, ValueError, "num_steps"),
        ({"radius": -1.0}, ValueError, "radius"),
    ],
)
def test_bad_options_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        optim.RowwiseAdam([Parameter(torch.zeros(4, 2))], **options)
