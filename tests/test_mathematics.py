"""Statements of docs/explanation/mathematics.md that no measure tests, and its references."""

import ast
import math
import re
from pathlib import Path

import pytest
import torch

import rowsep
from rowsep.packing.baselines import polar

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "explanation" / "mathematics.md").read_text()
REFERENCES = sorted(set(re.findall(r"`(\w[\w/]*\.py): (\w+)`", DOCUMENT)))
SIZES = [(7, 3), (4, 6), (12, 2)]


def gaussian(seed, num_rows, dim):
    """Standard normal rows, centred."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    return rows - rows.mean(0)


def smoothed(S, beta):
    """`F_beta` by its definition."""
    logs = torch.pdist(S).square().log()
    return ((beta * logs).logsumexp(0) + (-beta * logs).logsumexp(0)) / beta


@pytest.mark.parametrize(("path", "name"), REFERENCES)
def test_the_code_named_exists(path, name):
    tree = ast.parse((ROOT / path).read_text())
    kinds = ast.FunctionDef | ast.ClassDef
    assert name in {node.name for node in tree.body if isinstance(node, kinds)}


def test_the_links_of_the_index_lead_to_a_section():
    headings = re.findall(r"^## (.+)$", DOCUMENT, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    links = re.findall(r"^\[\d+\]: #(.+)$", DOCUMENT, re.M)
    assert len(REFERENCES) >= 16 and len(links) >= 14
    assert set(links) <= anchors


@pytest.mark.parametrize("size", SIZES)
def test_section_4_step_by_step(size):
    S = gaussian(0, *size)
    V, d = size
    q = torch.pdist(S).square()
    m, v = q.mean(), q.var(correction=0)
    assert v <= (q.max() - m) * (m - q.min())
    P = torch.eye(V, dtype=torch.float64) - 1 / V
    Q, G = torch.cdist(S, S).square(), S @ S.T
    E = Q - m * (1 - torch.eye(V, dtype=torch.float64))
    torch.testing.assert_close(G, -P @ Q @ P / 2)
    torch.testing.assert_close(G, m / 2 * P - P @ E @ P / 2)
    torch.testing.assert_close(E.square().sum(), V * (V - 1) * v)
    torch.testing.assert_close(G.trace(), m * (V - 1) / 2)
    norm = m**2 / 4 * (V - 1) + (P @ E @ P).square().sum() / 4
    torch.testing.assert_close(G.square().sum(), norm)
    assert G.trace() ** 2 <= min(d, V - 1) * G.square().sum() * (1 + 1e-12)
    assert (V - 1 - d) / (d * V) * m**2 <= v


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("beta", [0.5, 3.0, 40.0])
def test_section_9(size, beta):
    S = gaussian(1, *size).requires_grad_()
    F = smoothed(S, beta)
    (X,) = torch.autograd.grad(F, S)
    S = S.detach()
    q = torch.pdist(S).square()
    low = (q.max() / q.min()).log().item()
    assert low - 1e-12 <= F.item() <= low + 2 * math.log(len(q)) / beta + 1e-12
    weights = torch.zeros(len(S), len(S), dtype=torch.float64)
    share = (beta * q.log()).softmax(0) - (-beta * q.log()).softmax(0)
    weights[tuple(torch.triu_indices(len(S), len(S), 1))] = share / q
    weights += weights.T.clone()
    formula = 2 * (weights[:, :, None] * (S[:, None] - S[None, :])).sum(1)
    torch.testing.assert_close(X, formula)
    zero = {"rtol": 0.0, "atol": 1e-11 * X.abs().max().item()}
    torch.testing.assert_close(X.sum(0), torch.zeros_like(X[0]), **zero)
    torch.testing.assert_close((S * X).sum(), torch.zeros_like(F), **zero)
    torch.testing.assert_close(S.T @ X, (S.T @ X).T)
    torch.testing.assert_close(smoothed(7 * S + 1, beta), F.detach())


@pytest.mark.parametrize("size", SIZES)
def test_section_10(size):
    T = gaussian(2, *size)
    T[1] = T[0]  # an equal pair
    T = T - T.mean(0)
    for _ in range(5):
        differences = T[:, None] - T[None, :]
        new = torch.nn.functional.normalize(differences, dim=2).sum(1) / len(T)
        before, after = ((torch.pdist(x) - 1).square().sum() for x in (T, new))
        assert after <= before - len(T) * (new - T).square().sum() + 1e-12
        T = new


@pytest.mark.parametrize("size", [(2, 1), (4, 6), (8, 7), (8, 64)])
def test_section_15(size):
    """Muon's factor of a router's momentum is a regular simplex, and what `solve` returns."""
    A = gaussian(3, *size)
    Q = polar(A)
    torch.testing.assert_close(
        torch.pdist(Q).square(), torch.full((len(torch.pdist(A)),), 2.0).double()
    )
    turn, _ = torch.linalg.qr(gaussian(4, size[1], size[1]) + torch.eye(size[1]))
    assert (A * (Q @ turn)).sum() <= (A * Q).sum() + 1e-12
    torch.testing.assert_close((A * Q).sum(), torch.linalg.matrix_norm(A, "nuc"))
    solution = rowsep.solve(A, diameter=math.sqrt(2), alignment=0.3)
    assert solution.rho == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(solution.update, Q, rtol=0, atol=1e-9)
