"""What a step does around the update: momentum, decay, precision, state, what it leaves alone."""

import itertools
import multiprocessing
import os
from functools import partial

import pytest
import torch
from torch.nn import Parameter

from rowsep import optim
from rowsep.optim import updates
from rowsep.optim.heads.polar_grad import PolarGradM
from rowsep.packing.pairs import forces
from rowsep.packing.solvers import projected_gradient
from tests.optim.optimisers import ALL, CLASSES, stepped
from tests.packing.clouds import DTYPES, gaussian


@pytest.fixture(params=CLASSES)
def cls(request):
    return CLASSES[request.param][0]


def gradients(shape, generator, count=3, dtype=torch.float32):
    return [gaussian(*shape, generator, dtype) for _ in range(count)]


def test_a_step_is_the_formula(generator):
    """An average of the gradients, Nesterov's look ahead, decoupled decay, then the update."""
    weight, grads = gaussian(12, 5, generator), gradients((12, 5), generator)
    for nesterov in (False, True):
        options = {"lr": 0.1, "momentum": 0.8, "nesterov": nesterov, "weight_decay": 0.3}
        p, optimiser = stepped(optim.RowNormM, weight, grads, **options)
        expected, m = weight.double(), torch.zeros(12, 5, dtype=torch.float64)
        for grad in grads:
            m = 0.8 * m + 0.2 * grad
            n = 0.8 * m + 0.2 * grad if nesterov else m
            expected = expected * (1 - 0.1 * 0.3) - 0.1 * updates.row_norm(n)
        torch.testing.assert_close(p.double(), expected, rtol=0, atol=1e-5)
        buffer = optimiser.state[p]["momentum_buffer"]
        torch.testing.assert_close(buffer.double(), m, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_the_classes_apply_their_updates(name, generator):
    cls, options = ALL[name]
    weight, grad = gaussian(14, 5, generator), gaussian(14, 5, generator)
    options = options | {"momentum": 0.0, "lr": 1.0}
    p, _ = stepped(cls, weight, [grad], **options)
    keep = {k: v for k, v in options.items() if k in ("center", "alpha", "measure", "alignment")}
    keep |= {k: v for k, v in options.items() if k in ("precondition", "passes")}
    function = {
        optim.RowNormM: updates.row_norm,
        optim.RightPolarGradM: updates.right_polar,
        optim.LeftPolarGradM: updates.left_polar,
        optim.HybridPolarGradM: lambda M: updates.hybrid(
            M, order=options.get("order", "polar_then_row")
        ),
        optim.Signum: updates.sign,
        # in the first step the RMS of a row of the polar factor is its own
        optim.NorMuon: first_normuon,
        # in the first step the RMS of a row's gradients is the length of its momentum
        optim.RowwiseAdam: lambda M: at_diameter_one(
            updates.hybrid(M, order="row_then_polar", alpha=0.0)
            if options.get("polar", True)
            else updates.row_norm(M)
        ),
        optim.SteepestDescent: lambda M, **k: updates.steepest(M, **k)[0],
        optim.RowSeparation: lambda M, **k: updates.row_separation(M, **k)[0],
    }[cls]
    # the polar factor multiplies roundings, which fall differently on the way of RowwiseAdam
    atol = 1e-5 if cls is optim.RowwiseAdam else 1e-6
    torch.testing.assert_close(p.detach(), weight - function(grad, **keep), rtol=0, atol=atol)


def first_normuon(M, center=True):
    rows = torch.nn.functional.normalize(updates.right_polar(M, alpha=0.0, center=center))
    rows = rows - rows.mean(dim=0) if center else rows
    return 0.2 * M.numel() ** 0.5 * rows / rows.norm()


def at_diameter_one(update):
    return update / torch.pdist(update).max()


def test_gradients_and_global_state_are_left_alone(cls, generator):
    p = Parameter(gaussian(9, 4, generator))
    p.grad = gaussian(9, 4, generator)
    before = p.grad.clone()
    around = (
        torch.get_rng_state(),
        torch.get_float32_matmul_precision(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )
    cls([p]).step()
    assert torch.equal(p.grad, before)
    after = torch.get_rng_state(), torch.get_float32_matmul_precision(), torch.get_default_dtype()
    assert torch.equal(around[0], after[0]) and around[1:3] == after[1:]
    assert around[3] == torch.is_grad_enabled()
    assert around[4] == torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_scale_of_the_gradients_does_not_matter(cls, generator, size):
    """But for the polar gradients, which keep it by design unless alpha is 0."""
    options = {"alpha": 0.0} if issubclass(cls, PolarGradM) else {}
    # the left Gram matrix of a tall matrix is singular: see left_polar
    shape = (5, 12) if cls is optim.LeftPolarGradM else (12, 5)
    weight, grads = gaussian(*shape, generator), gradients(shape, generator)
    p, _ = stepped(cls, weight, grads, lr=0.1, **options)
    scaled, _ = stepped(cls, weight, [size * g for g in grads], lr=0.1, **options)
    torch.testing.assert_close(scaled, p, rtol=0, atol=1e-5)


def test_equal_gradient_rows_move_nothing(cls, generator):
    """The momentum is then rounding noise, which must not be amplified."""
    weight = gaussian(40, 8, generator)
    rows = gaussian(3, 8, generator)
    noise = 1 + 1e-7 * gaussian(40, 1, generator)
    p, _ = stepped(cls, weight, [row * noise for row in rows])
    assert torch.equal(p.detach(), weight)


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (1, 1), (2, 1), (0, 4)])
def test_few_rows_step(cls, generator, shape):
    p, _ = stepped(cls, gaussian(*shape, generator), gradients(shape, generator))
    assert p.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_buffer_is_kept_in_float32(cls, generator, dtype):
    p, optimiser = stepped(
        cls, gaussian(9, 4, generator, dtype), gradients((9, 4), generator, 2, dtype)
    )
    buffer = optimiser.state[p]["momentum_buffer"]
    assert p.dtype == dtype
    assert buffer.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    loaded = cls([Parameter(p.detach().clone())])
    loaded.load_state_dict(optimiser.state_dict())
    again = next(iter(loaded.state.values()))["momentum_buffer"]
    assert again.dtype == buffer.dtype and torch.equal(again, buffer)


def test_a_buffer_of_another_dtype_is_loaded_as_float32(generator):
    """As saved by an optimiser that keeps momentum in the dtype of the parameter."""
    p = Parameter(gaussian(5, 3, generator))
    optimiser = optim.RowNormM([p])
    saved = optimiser.state_dict()
    state = {0: {"momentum_buffer": torch.ones(5, 3, dtype=torch.bfloat16)}}
    optimiser.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
    assert optimiser.state[p]["momentum_buffer"].dtype == torch.float32


def test_padding_and_transposed_storage(cls, generator):
    weight, grads = gaussian(10, 4, generator), gradients((10, 4), generator)
    real, _ = stepped(cls, weight[:7], [g[:7] for g in grads])
    padded, _ = stepped(cls, weight, grads, num_real_rows=7)
    assert torch.equal(padded[7:], weight[7:])
    torch.testing.assert_close(padded[:7], real, rtol=0, atol=1e-6)
    turned, _ = stepped(cls, weight.T, [g.T for g in grads], num_real_rows=7, vocab_dim=1)
    torch.testing.assert_close(turned.T, padded, rtol=0, atol=1e-6)


def test_a_nan_gradient_is_refused_and_changes_nothing(cls, generator):
    p = Parameter(gaussian(6, 3, generator))
    optimiser = cls([p])
    p.grad = gaussian(6, 3, generator)
    optimiser.step()
    weight, state = p.detach().clone(), {k: v for k, v in optimiser.state[p].items()}
    buffer = state["momentum_buffer"].clone()
    p.grad = gaussian(6, 3, generator)
    p.grad[2, 1] = float("nan")
    with pytest.raises(ValueError, match="1 of 18 entries NaN.*skip this step"):
        optimiser.step()
    assert torch.equal(p, weight)
    assert torch.equal(optimiser.state[p]["momentum_buffer"], buffer)
    assert optimiser.state[p].get("step") == state.get("step")


def test_a_nan_in_the_second_gradient_moves_not_the_first_either(cls, generator):
    heads = [(f"head.{k}", Parameter(gaussian(6, 3, generator))) for k in range(2)]
    optimiser = cls(heads)
    before = [p.detach().clone() for _, p in heads]
    for bad in (float("nan"), float("inf")):
        for _, p in heads:
            p.grad = gaussian(6, 3, generator)
        p.grad[2, 1] = bad
        with pytest.raises(
            ValueError, match=r"gradient of parameter head\.1 has 1 of 18 entries NaN"
        ):
            optimiser.step()
        for (_, p), weight in zip(heads, before, strict=True):
            assert torch.equal(p, weight)
            assert not optimiser.state[p]["momentum_buffer"].any()


def test_two_parameters_of_one_memory_are_refused(cls, generator):
    first, second = Parameter(gaussian(6, 3, generator)), Parameter(torch.empty(6, 3))
    second.data = first.data
    with pytest.raises(ValueError, match=r"parameter embed and parameter head share their memory"):
        cls([("embed", first), ("head", second)])
    optimiser = cls([first])
    with pytest.raises(ValueError, match="share their memory"):
        optimiser.add_param_group({"params": [second]})
    assert len(optimiser.param_groups) == 1
    halves = gaussian(12, 3, generator)
    cls([Parameter(halves[:6]), Parameter(halves[6:])])  # of one buffer, but apart
    freed = [Parameter(gaussian(6, 3, generator)) for _ in range(2)]
    optimiser = cls(freed[:1])
    for p in freed:
        p.untyped_storage().resize_(0)  # as of shards that are not gathered
    optimiser.add_param_group({"params": freed[1:]})


def test_parameters_step_apart(cls, generator):
    """Two heads of one optimiser move as they would alone."""
    shapes, alone = ((9, 4), (5, 3)), []
    weights = [gaussian(*shape, generator) for shape in shapes]
    grads = [gaussian(*shape, generator) for shape in shapes]
    for weight, grad in zip(weights, grads, strict=True):
        alone.append(stepped(cls, weight, [grad], lr=0.1)[0])
    params = [Parameter(w.clone()) for w in weights]
    optimiser = cls([{"params": params[0]}, {"params": params[1], "lr": 0.2}], lr=0.1)
    for p, grad in zip(params, grads, strict=True):
        p.grad = grad
    optimiser.step()
    assert torch.equal(params[0], alone[0])
    torch.testing.assert_close(params[1] - weights[1], 2 * (alone[1] - weights[1]))


def dying(calls, *args, **kwargs):
    """`forces`, but the process is killed in its third call."""
    return os._exit(9) if next(calls) == 3 else forces(*args, **kwargs)


def train(path, dies_in=None):
    """Eight steps, each saved to `path`, going on from it if it exists; a kill in mid-solve."""
    generator = torch.Generator().manual_seed(5)
    grads = [torch.randn(30, 6, generator=generator).bfloat16() for _ in range(8)]
    p = Parameter(torch.randn(30, 6, generator=generator).bfloat16())
    optimiser = optim.RowSeparation([p], warm_start=True, weight_decay=0.1)
    begin = 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        begin = saved["k"]
        p.data.copy_(saved["p"])
        optimiser.load_state_dict(saved["optimiser"])
    for k in range(begin, 8):
        if k == dies_in:
            projected_gradient.forces = partial(dying, itertools.count(1))
        p.grad = grads[k]
        optimiser.step()
        torch.save({"k": k + 1, "p": p.data, "optimiser": optimiser.state_dict()}, path)


def test_resume_after_a_kill_in_mid_step_is_bit_for_bit(tmp_path, forked):
    doomed = multiprocessing.get_context().Process(target=train, args=(tmp_path / "a", 5))
    doomed.start()
    doomed.join()
    assert doomed.exitcode == 9
    assert torch.load(tmp_path / "a")["k"] == 5
    train(tmp_path / "a")
    train(tmp_path / "whole")
    killed, whole = (torch.load(tmp_path / name) for name in ("a", "whole"))
    assert torch.equal(whole["p"], killed["p"])
    a, b = (x["optimiser"]["state"][0] for x in (whole, killed))
    assert a.keys() == b.keys() == {"momentum_buffer", "step", "separated"}
    assert all(torch.equal(torch.as_tensor(a[k]), torch.as_tensor(b[k])) for k in a)
