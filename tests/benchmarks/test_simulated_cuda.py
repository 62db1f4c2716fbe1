"""The simulated device counts known cases right, names their lines, computes as the CPU."""

import pytest
import torch
from torch.nn import Parameter

from benchmarks.simulated_cuda import SimulatedCuda, on_device, on_host
from rowsep.packing import pairs, rows

MATRIX = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def select(x):
    return x[x[:, 0] > 0]


def assign_number(x):
    x[x > 0] = 1.0
    return x


def assign_tensor(x):
    x[x > 0] = x.new_zeros(())
    return x


def assign_rows(x):
    x[torch.tensor([0, 2])] = 1.0
    return x


def add_to_rows(x):
    x[1:3] += 1.0
    return x


CASES = {
    # name: call, kernels, waits, copies
    "views alone": (
        lambda x: x.T[1:].unsqueeze(0).expand(2, 3, 6).detach().view(2, 3, 2, 3),
        0,
        0,
        0,
    ),
    "a reshape that copies": (lambda x: x.T.reshape(-1), 1, 0, 0),
    "empty": (lambda x: torch.empty_like(x).zero_(), 1, 0, 0),
    "arithmetic with numbers": (lambda x: (2.0 * x + 1.0).exp_(), 3, 0, 0),
    "a number of the host": (lambda x: x * torch.tensor(2.0), 1, 0, 0),
    "mm": (lambda x: x @ x.T, 1, 0, 0),
    "mm from half to single": (
        lambda x: torch.mm(x.half(), x.half().T, out_dtype=torch.float32),
        3,
        0,
        0,
    ),
    "lerp_": (lambda x: x.lerp_(x + 1, 0.5), 2, 0, 0),
    "item": (lambda x: x.sum().item(), 1, 1, 0),
    "float": (lambda x: float(x.sum()), 1, 1, 0),
    "bool": (lambda x: bool((x > 0).any()), 2, 1, 0),
    "tolist": (lambda x: x.tolist(), 0, 1, 0),
    "a branch": (lambda x: 1 if x.max() > 0 else 0, 2, 1, 0),
    "an index in a tensor": (lambda x: x[x[:, 0].argmax()], 1, 1, 0),
    "cpu": (lambda x: x.cpu(), 0, 1, 0),
    "to the host, converted": (lambda x: x.to("cpu", torch.float64), 1, 1, 0),
    "converted": (lambda x: x.to(torch.float64), 1, 0, 0),
    "nonzero": (lambda x: x.nonzero(), 1, 1, 0),
    "unique": (lambda x: x.unique(), 1, 1, 0),
    "masked_select": (lambda x: x.masked_select(x > 0), 2, 1, 0),
    "an index by a mask": (select, 3, 1, 0),
    "an index by rows": (lambda x: x[x[:, 0].argsort()], 2, 0, 0),
    "an index from the host": (lambda x: x[torch.tensor([0, 1])], 1, 0, 1),
    "numbers at a mask": (assign_number, 2, 0, 0),
    "a tensor at a mask": (assign_tensor, 4, 1, 0),
    "numbers at rows of the host": (assign_rows, 1, 0, 2),
    "a part in place": (add_to_rows, 1, 0, 0),
    "where": (lambda x: torch.where(x > 0, x, -x), 3, 0, 0),
    "where with a number": (lambda x: torch.where(x > 0, x, 0.0), 3, 0, 0),
    "equal": (lambda x: torch.equal(x, x + 1), 2, 1, 0),
    "topk": (lambda x: x.topk(2).values, 1, 0, 0),
    "stack": (lambda x: torch.stack([x.min(), x.max()]), 3, 0, 0),
    "made on the device": (lambda x: torch.arange(3, device=x.device), 1, 0, 0),
    "from a list": (lambda x: torch.tensor([1.0, 2.0], device=x.device), 0, 0, 1),
    "from the host": (lambda x: MATRIX.to(x.device), 0, 0, 1),
    "from the host, in place": (lambda x: x.copy_(MATRIX), 1, 0, 1),
    "to the host, in place": (lambda x: torch.zeros(6, 4).copy_(x), 1, 1, 0),
    "among few": (lambda x: torch.isin(x, x[0, :1]), 1, 0, 0),
    "among many": (lambda x: torch.isin(x, torch.cat([x, x])), 2, 2, 0),
}


def run(call, x):
    made = call(x)
    return on_host(made) if isinstance(made, torch.Tensor) else made


@pytest.mark.parametrize("name", CASES)
def test_counts_a_known_case_and_computes_as_the_cpu(name):
    call, *expected = CASES[name]
    with SimulatedCuda() as counts:
        made = run(call, on_device(MATRIX))
    assert [counts.kernels, counts.waits, counts.copies] == expected, counts.report()
    if name != "mm from half to single":  # no CPU has it
        torch.testing.assert_close(made, call(MATRIX.clone()), rtol=0, atol=0)


def test_says_that_it_is_on_cuda_and_refuses_tensors_that_are_not():
    with SimulatedCuda():
        x = on_device(MATRIX)
        for made in (x, x[1:], x + 1, torch.zeros_like(x), torch.zeros(3, device=x.device)):
            assert made.is_cuda and not made.is_cpu and made.device == torch.device("cuda", 0)
        assert not x.cpu().is_cuda
        with pytest.raises(RuntimeError, match="cuda:0 and on the cpu"):
            x + MATRIX
        with pytest.raises(RuntimeError, match="cuda:0 and on the cpu"):
            torch.stack([x.sum(), torch.tensor(1.0)])
        with pytest.raises(TypeError, match="can't convert"):
            x.numpy()


def test_a_view_has_the_entries_of_its_tensor():
    with SimulatedCuda():
        x = on_device(MATRIX)
        x[2:4].T.zero_()
    expected = MATRIX.clone()
    expected[2:4] = 0
    assert torch.equal(on_host(x), expected)


def test_bytes_and_products():
    with SimulatedCuda() as counts:
        x = on_device(MATRIX)  # 24 numbers of 4 bytes
        seen = []
        for call in (
            lambda: x + 1,
            lambda: x.mul_(2),
            lambda: x.zero_(),
            lambda: x @ x.T,
            lambda: x + x[:1].expand(6, 4),
            lambda: x.index_select(0, torch.arange(2, device=x.device)),
        ):
            counts.reset()
            call()
            seen.append((counts.bytes_moved, counts.flops))
    gathered = 2 * 8 + 2 * (2 * 4 * 4) + 2 * 8  # rows and their numbers, which are written first
    products = 2 * 6 * 6 * 4
    assert seen == [
        (192, 0),
        (192, 0),
        (96, 0),
        (2 * 96 + 36 * 4, products),
        (192 + 16, 0),
        (gathered, 0),
    ]


def test_names_the_innermost_line_of_the_project():
    with SimulatedCuda() as counts:
        rows.magnitude(on_device(MATRIX))
    assert counts.waits and counts.lines["waits"].total() == counts.waits
    assert all(line.endswith(" magnitude [tolist]") for line in counts.lines["waits"])
    for line in (*counts.lines["kernels"], *counts.lines["waits"]):
        assert line.startswith("packing/rows.py:"), line
    assert "packing/rows.py" in counts.report()


def test_counts_only_inside():
    with SimulatedCuda() as counts:
        x = on_device(MATRIX)
    x.add_(1)
    assert counts.kernels == 0


def step(make, x):
    """Parameter after two steps, and the counts of the second."""
    with SimulatedCuda() as counts:
        p = Parameter(x)
        p.grad = x.detach() * 0.5
        optimiser = make([p])
        optimiser.step()
        counts.reset()
        optimiser.step()
    return on_host(p), counts


@pytest.mark.parametrize(
    ("make", "kernels"),
    [
        # decay, both averages, root, its correction, eps, and the quotient: 1 + 1 + 2 + 4
        (lambda p: torch.optim.AdamW(p, foreach=True), 8),
        (lambda p: torch.optim.AdamW(p, foreach=False), 8),
        # the step count and all the rest
        (lambda p: torch.optim.AdamW(p, fused=True), 2),
        # averages, 3 products a polynomial, and 6 around them
        (torch.optim.Muon, 2 + 5 * 3 + 6),
    ],
)
def test_steps_of_torch(make, kernels):
    stepped, counts = step(make, on_device(MATRIX))
    assert (counts.kernels, counts.waits, counts.copies) == (kernels, 0, 0), counts.report()
    assert all(line.startswith("torch/optim/") for line in counts.lines["kernels"])
    assert torch.equal(stepped, step(make, MATRIX.clone())[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_exact_extremes_are_those_of_the_cpu(dtype):
    S = torch.randn(300, 8, generator=torch.Generator().manual_seed(1)).to(dtype)
    S[7] = S[90] * (1 + 2**-6)
    with SimulatedCuda() as counts:
        found = pairs.extremes(on_device(S))
    expected = pairs.extremes(S)
    assert counts.kernels and counts.waits
    assert found.closest == expected.closest and found.farthest == expected.farthest
    assert found.delta == pytest.approx(expected.delta, rel=1e-12)
    assert found.diameter == pytest.approx(expected.diameter, rel=1e-12)
