"""RowwiseAdam: lengths of rows from their gradients, one scale for the space, a bounded step."""

from fractions import Fraction
from itertools import combinations

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

from rowsep import optim
from rowsep.optim.updates.rowwise_adam import followed_row_rms, rowwise_adam
from rowsep.packing import cloud
from tests.optim.optimisers import stepped
from tests.packing.clouds import gaussian


def naive(weight: Tensor, grads: list[Tensor], lr, beta, beta2, nesterov, polar) -> Tensor:
    """The formulas in float64, by loops over rows and a singular value decomposition."""
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
        if polar:
            left, _, right = torch.linalg.svd(x, full_matrices=False)
            x = left @ right
        w = w - lr * x / torch.pdist(x).max()
    return w


@pytest.mark.parametrize("polar", [True, False])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", [(19, 5), (7, 1), (70, 13)], ids=str)
def test_it_computes_its_formulas(generator, shape, nesterov, polar):
    """With eight polynomials, as five leave a damped polar factor."""
    weight = gaussian(*shape, generator)
    grads = [gaussian(*shape, generator) * 10.0**k for k in (0, -2, 1, 0)]
    options = dict(lr=0.3, momentum=0.7, beta2=0.9, nesterov=nesterov, polar=polar, num_steps=8)
    p, _ = stepped(optim.RowwiseAdam, weight, grads, **options)
    expected = naive(weight, grads, 0.3, 0.7, 0.9, nesterov, polar)
    torch.testing.assert_close(p.detach().double(), expected, rtol=0, atol=5e-5)


def squared_diameter(rows: Tensor) -> Fraction:
    """Exactly, of the binary fractions that the entries are."""
    exact = [[Fraction(x) for x in row] for row in rows.double().tolist()]
    return max(
        sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) for a, b in combinations(exact, 2)
    )


@pytest.mark.parametrize("polar", [True, False])
@pytest.mark.parametrize("rank", [1, 6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_keeps_its_bound_exactly(generator, dtype, rank, polar):
    """From zero weights at lr 1 the update itself is left; of rank one many pairs are tied."""
    grad = gaussian(30, rank, generator, dtype) @ gaussian(rank, 6, generator, dtype)
    grad *= torch.logspace(-12, 3, 30, dtype=dtype)[:, None]
    p, optimiser = stepped(
        optim.RowwiseAdam, torch.zeros(30, 6, dtype=dtype), [grad], lr=1.0, polar=polar, radius=4.0
    )
    report = optimiser.last_step["0.0"]
    exact = squared_diameter(p.detach())
    assert exact <= Fraction(report.diameter) ** 2 <= 1
    assert float(exact) >= 1 - 1e-5
    assert report.log_odds == 4.0 * report.diameter
    assert report.alignment == pytest.approx(cloud.alignment(grad, -p.detach()), abs=1e-5)
    assert report.cosine == pytest.approx(cloud.cosine(grad, -p.detach()), abs=1e-5)
    assert optimiser.state[p]["row_rms"].dtype == dtype


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
    p, plain = stepped(optim.RowwiseAdam, weight, grads, lr=0.1)
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
    mine, theirs = plain.last_step["0.0"], optimiser.last_step["0.0"]
    assert mine._asdict() == pytest.approx(theirs._asdict(), abs=1e-5)
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


def test_a_row_that_overflows_is_refused(generator):
    """Its length does, while its entries do not; silently, no row would move again."""
    grad = gaussian(9, 64, generator).clamp(-1, 1)
    p, optimiser = stepped(optim.RowwiseAdam, torch.zeros(9, 64), [grad], lr=0.1)
    p.grad = 3e38 * grad.sign()
    before = optimiser.state[p]["row_rms"].clone()
    with pytest.raises(ValueError, match="beyond torch.float32"):
        optimiser.step()
    assert torch.equal(optimiser.state[p]["row_rms"], before)


def test_state_that_is_missing_is_added_to_what_is_there(generator):
    """As when the state of another optimiser was loaded."""
    p, other = stepped(optim.RowNormM, gaussian(9, 4, generator), [gaussian(9, 4, generator)])
    momentum = other.state[p]["momentum_buffer"].clone()
    q = Parameter(p.detach().clone())
    optimiser = optim.RowwiseAdam([q], lr=0.1, momentum=0.9)
    optimiser.load_state_dict({**optimiser.state_dict(), "state": other.state_dict()["state"]})
    q.grad = gaussian(9, 4, generator)
    optimiser.step()
    expected = 0.9 * momentum + 0.1 * q.grad
    torch.testing.assert_close(optimiser.state[q]["momentum_buffer"], expected)
    rms = optimiser.state[q]["row_rms"].clone()
    del optimiser.state[q]["momentum_buffer"]
    optimiser.step()
    assert (optimiser.state[q]["row_rms"] > 0.9 * rms).all()


def test_a_short_dtype_keeps_its_state_in_float32(generator):
    weight = gaussian(9, 4, generator, torch.bfloat16)
    p, optimiser = stepped(optim.RowwiseAdam, weight, [gaussian(9, 4, generator).bfloat16()])
    q = Parameter(p.detach().clone())
    loaded = optim.RowwiseAdam([q])
    loaded.load_state_dict(optimiser.state_dict())
    mine, theirs = optimiser.state[p]["row_rms"], loaded.state[q]["row_rms"]
    assert theirs.dtype == torch.float32 and torch.equal(mine, theirs)


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


@pytest.mark.parametrize(
    "rms, said",
    [
        (torch.ones(11), r"row_rms has shape \(11,\)"),
        (torch.full((12,), -1.0), "negative"),
        (torch.full((12,), torch.nan), "NaN"),
    ],
    ids=["shape", "negative", "nan"],
)
def test_bad_lengths_are_refused(generator, rms, said):
    with pytest.raises(ValueError, match=said):
        rowwise_adam(gaussian(12, 4, generator), rms)


def test_rows_left_out_keep_their_length(generator):
    mask = torch.arange(8) < 5
    rms = torch.rand(8, generator=generator)
    for grad in (torch.zeros(8, 3), gaussian(8, 3, generator)):
        made = followed_row_rms(rms, grad, 0.5, mask=mask)
        assert torch.equal(made[5:], rms[5:]) and not torch.equal(made[:5], rms[:5])


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
        ({"beta2": 0.5}, ValueError, "at least momentum"),
        ({"polar": 1}, TypeError, "polar is 1"),
        ({"num_steps": 0}, ValueError, "num_steps"),
        ({"radius": -1.0}, ValueError, "radius"),
    ],
)
def test_bad_options_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        optim.RowwiseAdam([Parameter(torch.zeros(4, 2))], **options)
