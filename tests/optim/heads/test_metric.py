"""Optimisers in the metric of the hidden states: the same methods on the head `W Sigma^(1/2)`."""

from copy import deepcopy

import pytest
import torch
from torch.nn import Parameter

from examples.tiny import Decoder, loss_of, text
from rowsep import optim
from rowsep.packing import cloud, measure
from rowsep.packing.metric import Metric
from tests.optim.optimisers import stepped
from tests.packing.clouds import gaussian
from tests.packing.test_metric import exact_squared_diameter, second_moment

IN_METRIC = {
    "row norm": (optim.RowNormM, {}),
    "row norm, uncentred": (optim.RowNormM, {"center": False}),
    "rowwise adam": (optim.RowwiseAdam, {}),
    "rowwise adam, no polar": (optim.RowwiseAdam, {"polar": False}),
    "rowwise adam, averaged": (optim.RowwiseAdam, {"gram": "averaged"}),
    "separation": (optim.RowSeparation, {}),
    "separation, warm": (optim.RowSeparation, {"warm_start": True, "passes": 2}),
    "steepest": (optim.SteepestDescent, {}),
}


@pytest.fixture(params=IN_METRIC)
def make(request):
    """The optimiser with the options of one entry of the table."""
    return IN_METRIC[request.param]


def run(entry, weight, grads, **more):
    cls, options = entry
    return stepped(cls, weight, grads, lr=0.1, **options, **more)


def test_the_plain_metric_is_the_identity(make, generator):
    weight, grads = gaussian(30, 5, generator), [gaussian(30, 5, generator) for _ in range(2)]
    plain, _ = run(make, weight.double(), [g.double() for g in grads])
    same, optimiser = run(make, weight.double(), [g.double() for g in grads], metric=torch.eye(5))
    torch.testing.assert_close(same, plain, rtol=0, atol=1e-9)
    assert isinstance(optimiser.param_groups[0]["metric"], Metric)
    assert optimiser.state_dict()["param_groups"][0]["metric"] is None


@pytest.mark.parametrize("vocab_dim", [0, 1])
def test_it_is_the_method_on_the_transformed_head(make, generator, vocab_dim):
    """`W Sigma^(1/2)` has the gradient `G Sigma^(-1/2)`."""
    metric = Metric(second_moment(5, generator))
    weight = gaussian(40, 5, generator).double()
    grads = [gaussian(40, 5, generator).double() for _ in range(3)]

    def oriented(x):
        return x if vocab_dim == 0 else x.T.contiguous()

    p, _ = run(
        make, oriented(weight), [oriented(g) for g in grads], metric=metric, vocab_dim=vocab_dim
    )
    whitened = [metric.whitened(g) for g in grads]
    q, _ = run(make, metric.stretched(weight), whitened)
    found = metric.stretched(oriented(p.detach()))
    torch.testing.assert_close(found, q.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"gram": "averaged"}, {"gram": "hidden"}, {"polar": False}], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_of_rowwise_adam_keeps_its_bound_exactly(generator, dtype, options):
    metric = Metric(second_moment(4, generator, decades=4.0))
    grad = gaussian(20, 4, generator, dtype) * torch.logspace(-6, 2, 20, dtype=dtype)[:, None]
    p, optimiser = stepped(
        optim.RowwiseAdam,
        torch.zeros(20, 4, dtype=dtype),
        [grad],
        lr=1.0,
        radius=3.0,
        metric=metric,
        **options,
    )
    report = optimiser.last_step["0.0"]
    exact = float(exact_squared_diameter(p.detach(), metric)) ** 0.5
    assert exact <= report.diameter <= 1
    assert exact > 0.99
    assert report.log_odds == 3.0 * report.diameter
    found = measure(-p.detach(), momentum=grad, metric=metric)
    assert report.alignment == pytest.approx(found.alignment, abs=1e-3)
    assert report.cosine == pytest.approx(found.cosine, abs=1e-3)


def test_row_norm_moves_rows_by_one_length_in_the_metric(generator):
    metric = Metric(second_moment(4, generator))
    p, _ = stepped(
        optim.RowNormM,
        torch.zeros(9, 4),
        [gaussian(9, 4, generator)],
        lr=1.0,
        center=False,
        metric=metric,
    )
    lengths = metric.stretched(p.detach()).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(9).double(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("gram", ["averaged", "hidden"])
def test_rowwise_adam_with_another_gram_matrix_computes_its_formulas(generator, gram):
    """By loops over rows and eigendecompositions; eight polynomials come near the exact root."""
    beta, beta2, beta3, sigma = 0.7, 0.9, 0.6, second_moment(5, generator, decades=1.0)
    grads = [gaussian(23, 5, generator).double() * 10.0**k for k in (0, -2, 1)]
    w, m = torch.zeros(23, 5).double(), torch.zeros(23, 5).double()
    squares, c = torch.zeros(23).double(), torch.zeros(5, 5).double()
    for g in grads:
        m = beta * m + (1 - beta) * g
        n = beta * m + (1 - beta) * g
        z, x = [], []
        for i in range(23):
            centred = g[i] - g.mean(dim=0)
            squares[i] = beta2 * squares[i] + (1 - beta2) * centred @ centred
            z.append(centred / squares[i].sqrt())
            x.append((n[i] - n.mean(dim=0)) / squares[i].sqrt())
        z, x = torch.stack(z), torch.stack(x)
        z = z - z.mean(dim=0)
        c = beta3 * c + (1 - beta3) * z.T @ z / z.square().sum()
        values, vectors = torch.linalg.eigh(c if gram == "averaged" else sigma)
        u = (x - x.mean(dim=0)) @ (vectors * values.rsqrt()) @ vectors.T
        seen = Metric(sigma).stretched(u) if gram == "hidden" else u
        w = w - 0.3 * u / torch.pdist(seen).max()
    more = {"metric": sigma} if gram == "hidden" else {"beta3": beta3, "num_steps": 10}
    p, optimiser = stepped(
        optim.RowwiseAdam,
        torch.zeros(23, 5).double(),
        grads,
        lr=0.3,
        momentum=beta,
        beta2=beta2,
        gram=gram,
        **more,
    )
    torch.testing.assert_close(p.detach(), w, rtol=0, atol=1e-5)
    if gram == "averaged":
        torch.testing.assert_close(optimiser.state[p]["gram"], c)


def test_a_refused_gradient_leaves_the_average_as_it_was(generator):
    p, optimiser = stepped(
        optim.RowwiseAdam, gaussian(9, 4, generator), [gaussian(9, 4, generator)], gram="averaged"
    )
    optimiser.state[p]["momentum_buffer"][2, 1] = torch.inf  # found after both were followed
    state = {k: v.clone() for k, v in optimiser.state[p].items()}
    p.grad = gaussian(9, 4, generator)
    with pytest.raises(ValueError, match="momentum"):
        optimiser.step()
    assert all(torch.equal(optimiser.state[p][k], v) for k, v in state.items())


def test_a_combined_optimiser_saves_no_metric(generator):
    p, q = Parameter(gaussian(9, 4, generator)), Parameter(gaussian(3, 4, generator))
    head = optim.RowNormM([("head", p)], metric=torch.eye(4))
    both = optim.Combined({"head": head, "rest": torch.optim.SGD([("rest", q)], lr=0.1)})
    saved, metric = both.state_dict(), head.param_groups[0]["metric"]
    assert [group.get("metric") for group in saved["param_groups"]] == [None, None]
    both.load_state_dict(deepcopy(saved))
    assert head.param_groups[0]["metric"] is both.param_groups[0]["metric"] is metric


def test_groups_have_their_own_metric(generator):
    p, q = Parameter(torch.zeros(9, 4)), Parameter(torch.zeros(9, 3))
    optimiser = optim.RowNormM([{"params": [p], "metric": torch.eye(4)}, {"params": [q]}], lr=1.0)
    with pytest.raises(ValueError, match="metric is of 4 dimensions, but rows .* have 3"):
        optimiser.add_param_group(
            {"params": [Parameter(torch.zeros(9, 3))], "metric": torch.eye(4)}
        )
    assert len(optimiser.param_groups) == 2
    p.grad, q.grad = gaussian(9, 4, generator), gaussian(9, 3, generator)
    optimiser.step()
    assert p.any() and q.any()


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"gram": "hidden"}, ValueError, "metric is None"),
        ({"gram": "polar"}, ValueError, "gram is 'polar', expected one of"),
        ({"gram": "averaged", "polar": False}, ValueError, "polar is False"),
        ({"beta3": 1.0}, ValueError, "beta3 is 1.0"),
        ({"metric": "hidden"}, TypeError, "metric is a str"),
        ({"metric": -torch.eye(2)}, ValueError, "not positive semidefinite"),
        ({"metric": torch.eye(3)}, ValueError, "3 dimensions, but rows"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        optim.RowwiseAdam([Parameter(torch.zeros(4, 2))], **options)


@pytest.mark.parametrize(
    "entry",
    [
        (optim.RowwiseAdam, {}),
        (optim.RowwiseAdam, {"gram": "hidden"}),
        (optim.RowSeparation, {}),
    ],
    ids=str,
)
def test_no_log_odds_of_real_hidden_states_change_by_more_than_the_bound(generator, entry):
    """Of a small model in training; at the worst state of the ellipsoid the bound is attained."""
    cls, options = entry
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())
        model = Decoder()
    metric = optim.HiddenMetric(32)
    metric.follow(model.head)
    head = cls([("head", model.head.weight)], lr=0.05, radius=1.0, metric=metric, **options)
    body = [p for p in model.parameters() if p is not model.head.weight]
    rest = torch.optim.AdamW(body, lr=3e-3)
    seen = []
    handle = model.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    used = []
    for step in range(12):
        tokens = text(16, seed=step)
        loss = loss_of(model(tokens), tokens)
        loss.backward()
        before = model.head.weight.detach().double().clone()
        head.step()
        rest.step()
        change = model.head.weight.detach().double() - before
        now = metric.current()
        report = head.last_step["head"]
        hidden = seen.pop().detach().double().flatten(0, 1)
        logits = hidden @ change.T
        largest = logits.max(dim=1).values - logits.min(dim=1).values
        # float32 weights round what is added to them
        bound = report.log_odds * now.norms(hidden) + 1e-6 * hidden.norm(dim=1)
        assert (largest <= bound).all()
        used.append(float((largest / bound).max()))
        worst = cloud.worst_hidden_state(change, 1.0, metric=now)
        assert float(now.norms(worst.hidden)) == pytest.approx(1.0)
        i, j = worst.pair
        assert abs(float((change[i] - change[j]) @ worst.hidden)) == pytest.approx(worst.distance)
        assert worst.distance == pytest.approx(report.log_odds, rel=1e-3)
        model.zero_grad()
    handle.remove()
    assert 0.05 < max(used) <= 1
