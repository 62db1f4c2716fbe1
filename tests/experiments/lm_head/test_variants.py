"""The head optimisers of the ablation do what their names say."""

import copy

import pytest
import torch

from experiments.lm_head import variants
from rowsep import optim
from rowsep.optim import updates
from rowsep.packing import cloud


@pytest.mark.parametrize("optimizer", [variants.RowNormDiameter, variants.RowNormCode])
def test_variants_step_by_their_learning_rate_in_diameter(optimizer):
    options = {} if optimizer is variants.RowNormDiameter else {"alignment": 0.65}
    p = torch.nn.Parameter(torch.zeros(40, 6, dtype=torch.float64))
    p.grad = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    p.grad[1:5] = p.grad[0]
    opt = optimizer([p], lr=0.25, **options)
    opt.step()
    found = cloud.ratio(p.detach())
    assert found.diameter == pytest.approx(0.25)
    if options:  # the code parts rows that the momentum cannot
        assert found.delta > 0.001
        assert cloud.alignment(p.grad, -p.detach()) >= 0.65
    else:
        assert found.delta < 1e-12


def test_heavy_rows_leaves_the_light_ones_alone():
    p = torch.nn.Parameter(torch.zeros(40, 6))
    p.grad = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    p.grad[:30] -= p.grad[:30].mean(dim=0)
    p.grad[30:] *= 1e-6
    variants.HeavyRows([p], lr=1.0, threshold=0.01, alignment=0.5, passes=2).step()
    moved = p.detach().norm(dim=1)
    assert (moved[30:] == 0).all() and (moved[:30] > 0).all()


def step_of(optimizer, grad, **options):
    """The update of one step from zero weights at lr 1, floor 0.6, two passes."""
    p = torch.nn.Parameter(torch.zeros_like(grad))
    p.grad = grad
    optimizer = optimizer([p], lr=1.0, alignment=0.6, passes=2, **options)
    optimizer.step()
    return -p.detach()


def test_separation_after_rowwise_adam_keeps_to_its_update():
    generator = torch.Generator().manual_seed(5)
    grads = torch.randn(3, 70, 8, generator=generator)
    steps, report_floor = {}, {"plain": None, "separated": 0.9}
    for name, optimizer in (
        (
            "plain",
            optim.RowwiseAdam([torch.nn.Parameter(torch.zeros(70, 8))], lr=1.0, momentum=0.9),
        ),
        (
            "separated",
            variants.SeparatedRowwiseAdam(
                [torch.nn.Parameter(torch.zeros(70, 8))], lr=1.0, momentum=0.9, floor=0.9, passes=6
            ),
        ),
    ):
        (p,) = optimizer.param_groups[0]["params"]
        for grad in grads:
            before = p.detach().clone()
            p.grad = grad.clone()
            optimizer.step()
        steps[name] = before - p.detach()
        (report,) = optimizer.last_step.values()
        found = cloud.ratio(steps[name])
        assert found.diameter == pytest.approx(report.diameter, abs=1e-5)
        assert copy.deepcopy(optimizer).param_groups[0].get("floor") == report_floor[name]
    assert 0.9 - 1e-4 <= cloud.cosine(steps["plain"], steps["separated"]) < 0.999
    assert cloud.ratio(steps["separated"]).value > 1.2 * cloud.ratio(steps["plain"]).value


def test_a_cut_shortens_the_long_rows_and_no_other():
    generator = torch.Generator()
    generator.seed()
    grads = torch.randn(13, 80, 4, generator=generator)
    grads[:-1, :3] *= 1e-3  # rowwise Adam's rows are long where the gradients were small before
    updates = {}
    for name, cap in (("whole", 1e6), ("cut", 1.5)):
        p = torch.nn.Parameter(torch.zeros(80, 4))
        optimizer = variants.CutRowwiseAdam([p], lr=1.0, cap=cap, momentum=0.8)
        for grad in grads:
            before = p.detach().clone()
            p.grad = grad.clone()
            optimizer.step()
        updates[name] = before - p.detach()
        assert cloud.diameter(updates[name]).value == pytest.approx(1, abs=1e-5)
        (report,) = optimizer.last_step.values()
        assert report.diameter == pytest.approx(1, abs=1e-5)
    whole, cut = (one.norm(dim=1) for one in (updates["whole"], updates["cut"]))
    most = 1.5 * whole.square().mean().sqrt()
    long = whole > most
    assert 0 < long.sum() < 40
    torch.testing.assert_close(cut[~long] / whole[~long], (cut / whole).max().expand((~long).sum()))
    torch.testing.assert_close(cut[long], (cut / whole).max() * most.expand(long.sum()))


def heavy_tailed(seed, rows=60, dim=8):
    generator = torch.Generator().manual_seed(seed)
    grad = torch.randn(rows, dim, dtype=torch.float64, generator=generator)
    return grad * torch.logspace(-2, 0, rows, dtype=torch.float64)[:, None]


def test_rows_weighed_by_their_norm_are_plain_row_separation():
    grad = heavy_tailed(0)
    plain = step_of(optim.RowSeparation, grad, nesterov=False)
    assert torch.allclose(step_of(variants.WeighedRows, grad, power=1.0), plain, atol=1e-6)


def test_the_power_says_which_rows_follow_the_momentum():
    grad = heavy_tailed(1)
    centred = grad - grad.mean(dim=0)
    light = centred.norm(dim=1) < centred.norm(dim=1).median()
    along = {}
    for power in (0.0, 2.0):
        update = step_of(variants.WeighedRows, grad, power=power)
        along[power] = torch.cosine_similarity(update, centred, dim=1)
    assert along[0.0][light].mean() > along[2.0][light].mean() + 0.05
    assert along[0.0].mean() >= 0.5  # the floor is about the mean cosine


def test_the_share_of_signal_tells_steady_rows_from_noise():
    """Of independent noise it is 0 on average, of steady rows nearly 1, whatever their scale."""
    generator = torch.Generator().manual_seed(2)
    steady = torch.randn(40, 64, generator=generator)
    p = torch.nn.Parameter(torch.zeros(80, 64))
    optimizer = variants.SignalRows([p], lr=1.0, alignment=0.6, passes=2)
    for _ in range(120):
        noise = torch.randn(40, 64, generator=generator)
        p.grad = torch.cat([steady, 1e3 * noise])
        p.grad -= p.grad.mean(dim=0)
        optimizer.step()
    state = optimizer.state[p]
    share = variants.signal_share(state["momentum_buffer"], state["squares"], 0.95)[:, 0]
    assert abs(float(share[40:].mean())) < 0.1
    still = torch.zeros(80, 64)
    still[:40], still[40:] = steady, -steady
    assert float(variants.signal_share(still, still.square().sum(1, True), 0.95).min()) > 0.95


def test_rows_count_by_their_signal():
    generator = torch.Generator().manual_seed(3)
    p = torch.nn.Parameter(torch.zeros(60, 8, dtype=torch.float64))
    optimizer = variants.SignalRows([p], lr=1.0, alignment=0.6, passes=2)
    momentum, squares = torch.zeros(60, 8), torch.zeros(60)
    for _ in range(5):
        p.grad = torch.randn(60, 8, dtype=torch.float64, generator=generator)
        before = p.detach().clone()
        optimizer.step()
        momentum = 0.95 * momentum + 0.05 * p.grad
        squares = 0.95 * squares + 0.05 * (p.grad - p.grad.mean(dim=0)).square().sum(dim=1)
    rows = momentum - momentum.mean(dim=0)
    noise = squares * 0.05 / 1.95
    share = 1 - noise / rows.square().sum(dim=1)
    assert share.min() < 0.5 < share.max()
    towards = rows * share.clamp(min=1e-6)[:, None]
    expected, _ = updates.row_separation(towards, alignment=0.6, passes=2, seed=4)
    assert torch.allclose(before - p.detach(), expected, atol=1e-9)


class TestHiddenMetric:
    def stepped(self, hidden, grad, **options):
        head = torch.nn.Linear(8, 60, bias=False, dtype=torch.float64)
        optimizer = variants.HiddenMetric(
            head.parameters(), lr=1.0, alignment=0.6, passes=2, damping=0.0, **options
        )
        optimizer.watch(head)
        head(hidden)
        with torch.no_grad():
            head(100 * hidden)  # an evaluation, which does not count
        before = head.weight.detach().clone()
        head.weight.grad = grad
        optimizer.step()
        return before - head.weight.detach()

    def test_white_hidden_states_make_it_row_separation(self):
        hidden = torch.linalg.qr(heavy_tailed(4, 40))[0]
        grad = heavy_tailed(5)
        plain = step_of(optim.RowSeparation, grad, nesterov=False)
        assert torch.allclose(self.stepped(hidden, grad), plain, atol=1e-6)

    def test_a_change_of_basis_changes_nothing_but_the_basis(self):
        """h -> h B, W -> W B^-T leaves logits as they are: so must the step, up to its scale."""
        hidden, grad = heavy_tailed(6, 40), heavy_tailed(7)
        B = torch.eye(8, dtype=torch.float64) + heavy_tailed(8, 8) / 4
        step = self.stepped(hidden, grad)
        other = self.stepped(hidden @ B, grad @ B)
        assert cloud.diameter(other).value == pytest.approx(1.0)
        logits, others = hidden @ step.T, hidden @ B @ other.T
        logits = logits - logits.mean(dim=1, keepdim=True)
        others = others - others.mean(dim=1, keepdim=True)
        assert torch.allclose(others / others.norm(), logits / logits.norm(), atol=1e-4)
