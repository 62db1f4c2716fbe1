"""Spherical codes: proved values, exact conditions, bounds, the same result however it is cut."""

import functools
import json
import math

import pytest
import torch

from rowsep import packing
from rowsep.packing.bounds.codes import levenshtein_cosine, rankin_cosine
from rowsep.packing.exact import search as searching
from rowsep.packing.exact.interior_point.spheres import solve_codes, tangent_basis
from rowsep.packing.exact.log import Key, SearchLog
from rowsep.packing.point_sets import multistart
from rowsep.packing.point_sets.spherical import spherical_code

PROVED = {
    # Rankin 1955: simplices, and parts of the orthoplex, of which only the whole one is rigid
    (2, 2): -1.0,
    (4, 3): -1 / 3,
    (4, 5): -1 / 3,
    (6, 5): -1 / 5,
    (5, 3): 0.0,
    (6, 3): 0.0,
    (8, 4): 0.0,
    # regular polygons
    (5, 2): math.cos(2 * math.pi / 5),
    (9, 2): math.cos(2 * math.pi / 9),
    # Schuette and van der Waerden 1951, Danzer 1963; digits of H. Cohn's table of spherical codes,
    # https://hdl.handle.net/1721.1/142661
    (7, 3): 0.21013831273060308486576530161854,
    (8, 3): (2 * math.sqrt(2) - 1) / 7,
    (9, 3): 1 / 3,
    (10, 3): 0.40439432521625075684622475072579,
    (12, 3): 1 / math.sqrt(5),
    # Bachoc and Vallentin, Optimality and uniqueness of the (4, 10, 1/6) spherical code, 2009
    (10, 4): 1 / 6,
    # de Laat, Leijenhorst and de Muinck Keizer, arXiv:2404.18794: the 24-cell
    (24, 4): 1 / 2,
    # Cohn and Kumar, J. AMS 20 (2007), table 1
    (16, 5): 1 / 5,
}


@functools.cache
def found_of(n, d):
    """The code of the first batch of starts, searched once."""
    return spherical_code(n, d, starts=64)


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def largest(rows):
    gram = rows @ rows.T
    return float(gram.fill_diagonal_(-1.0).max())


@pytest.mark.parametrize("size", PROVED, ids=str)
def test_proved_values(size):
    found = found_of(*size)
    value, (n, d) = PROVED[size], size
    assert found.max_cosine == pytest.approx(value, abs=1e-15)
    assert found.angle == pytest.approx(math.acos(value), abs=1e-15)
    assert largest(found.rows) == pytest.approx(value, abs=1e-15)
    assert found.optimality.solved and found.agreeing >= 2
    assert found.optimality.isolated == (not d + 2 <= n < 2 * d)
    assert found.optimal == (value < found.bound + 1e-9)


def test_which_bound_is_met():
    assert found_of(12, 3).optimal
    assert not found_of(7, 3).optimal


def test_no_code_beats_a_bound(generator):
    for _ in range(12):
        n, d = (int(torch.randint(2, end, (), generator=generator)) for end in (13, 6))
        mu = torch.full((4,), 1e-2, dtype=torch.float64)
        for rows in solve_codes(normal(generator, 4, n, d), mu, 0.05).points:
            assert float((rows.norm(dim=1) - 1).abs().max()) < 1e-15
            assert largest(rows) >= rankin_cosine(n, d) - 1e-15
            assert largest(rows) >= levenshtein_cosine(n, d)


def test_a_code_prints_its_figures_in_one_line():
    found = spherical_code(4, 2, starts=1)
    assert (
        repr(found).startswith("<4 unit vectors of R^2, largest cosine ") and len(repr(found)) < 90
    )


def test_a_code_says_its_size_and_bound():
    found = spherical_code(11, 4, starts=1)
    assert found.rows.shape == (found.num_points, found.dim) == (11, 4)
    assert found.bound == levenshtein_cosine(11, 4) < found.max_cosine < 0.35
    assert found.starts == 64 and f"{found.agreeing} of 64 starts agree" in found.stop


@pytest.mark.parametrize(("n", "d"), [(7, 3), (13, 3), (10, 4)])
def test_conditions_of_first_order(n, d):
    """From the rows and the multipliers alone: what pulls at a vector is along it."""
    found = found_of(n, d)
    told, rows = found.optimality, found.rows
    assert told.solved and told.far == () and told.floor == 0.0
    assert float((rows.norm(dim=1) - 1).abs().max()) < 1e-15
    gram = rows @ rows.T
    near = {(i, j) for i in range(n) for j in range(i) if gram[i, j] > found.max_cosine - 1e-13}
    assert near == {(p.j, p.i) for p in told.near}
    pull = torch.zeros(n, d, dtype=torch.float64)
    for i, j, multiplier in told.near:
        assert multiplier >= 0
        pull[i] += multiplier * rows[j]
        pull[j] += multiplier * rows[i]
    across = pull - (pull * rows).sum(dim=1, keepdim=True) * rows
    assert float(across.abs().max()) < 1e-14
    assert sum(p.multiplier for p in told.near) == pytest.approx(1, rel=1e-14)
    held = {k for p in told.near if p.multiplier for k in (p.i, p.j)}
    assert set(told.rattlers) == set(range(n)) - held


@pytest.mark.parametrize(("n", "d"), [(2, 2), (6, 2), (9, 3), (8, 4)])
def test_every_end_of_a_batch_is_stationary(generator, n, d):
    starts = normal(generator, 32, n, d)
    ends = solve_codes(starts, torch.full((32,), 1e-2, dtype=torch.float64), 0.05)
    assert ends.converged.double().mean() > 0.5
    for k in ends.converged.nonzero()[:, 0].tolist():
        x, u = ends.points[k], ends.near[k]
        assert largest(x) == pytest.approx(1 - float(ends.separation[k]) / 2, abs=1e-9)
        across = u @ x - (x * (u @ x)).sum(dim=1, keepdim=True) * x
        assert float(across.abs().max()) < 1e-8
        assert float(u.min()) >= 0 and float(u.sum()) == pytest.approx(2)
        slack = 2 - 2 * x @ x.T - ends.separation[k]
        assert float((u * slack).abs().max()) < 1e-8


def test_turned_and_scaled_starts_end_alike(generator):
    starts, mu = normal(generator, 8, 7, 3), torch.full((8,), 1e-3, dtype=torch.float64)
    turn = torch.linalg.qr(normal(generator, 3, 3)).Q
    lengths = 0.1 + normal(generator, 8, 7, 1).square()
    at, turned = (solve_codes(x, mu, 0.05) for x in (starts, lengths * starts @ turn))
    torch.testing.assert_close(turned.separation, at.separation, rtol=1e-9, atol=0)


@pytest.mark.parametrize("d", [2, 3, 7])
def test_tangent_bases_are_orthonormal(generator, d):
    x = normal(generator, 4, d, 5)
    x[0, :, 0], x[0, :, 1] = torch.eye(d)[0], -torch.eye(d)[0]
    x /= x.norm(dim=1, keepdim=True)
    basis = torch.cat([tangent_basis(x), x[:, :, None]], dim=2).permute(0, 3, 1, 2)
    eye = torch.eye(d, dtype=torch.float64).expand(4, 5, d, d)
    torch.testing.assert_close(basis.mT @ basis, eye, rtol=0, atol=1e-14)


def test_the_same_with_two_processes(forked):
    one = spherical_code(5, 2, starts=192, seed=3)
    assert spherical_code(5, 2, starts=192, seed=3, processes=2) == one


def test_resumed_is_as_uninterrupted(tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    whole = spherical_code(7, 3, starts=128)
    spherical_code(7, 3, starts=64, log=log)
    assert spherical_code(7, 3, starts=128, log=log) == whole
    monkeypatch.setattr(searching, "run_batch", None)
    assert spherical_code(7, 3, starts=128, log=log) == whole


def test_a_log_keeps_clouds_and_codes_apart(tmp_path):
    log = tmp_path / "log.jsonl"
    code = spherical_code(5, 2, starts=64, log=log)
    cloud = packing.minimal_diameter(5, 2, starts=64, log=log)
    assert code == spherical_code(5, 2, starts=64, log=log)
    assert float(cloud.ratio_squared) == pytest.approx((3 + math.sqrt(5)) / 2, rel=1e-14)
    assert set(SearchLog(log).lines) == {Key(5, 2, 0), Key(5, 2, 0, problem="sphere")}


def test_lines_of_a_log_without_a_problem_are_of_clouds(tmp_path):
    log = tmp_path / "log.jsonl"
    packing.minimal_diameter(4, 2, starts=1, log=log)
    line = json.loads(log.read_text())
    del line["problem"]
    log.write_text(json.dumps(line) + "\n")
    assert SearchLog(log).found(Key(4, 2, 0)).starts == 64


@pytest.mark.parametrize("others", [-1, 0, 1])
def test_given_codes_are_perturbed(generator, others):
    """From 11, 12 or 13 vectors near the icosahedron, of any length, back to it."""
    icosahedron = found_of(12, 3).rows
    given = 7 * torch.cat([icosahedron, normal(generator, 1, 3)])[: 12 + others]
    seen = []
    found = spherical_code(12, 3, starts=64, given=[given], on_batch=seen.append)
    assert found.max_cosine == pytest.approx(1 / math.sqrt(5), abs=1e-15)
    assert seen[-1].kinds["perturbed"] > 10


def test_interrupt_and_time_limit(monkeypatch):
    assert spherical_code(4, 3, starts=6400, time_limit=0).starts == 64

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(searching, "run_batch", pressed)
    with pytest.raises(KeyboardInterrupt):
        spherical_code(4, 3)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "says"),
    [
        ((1, 2), {}, ValueError, "num_points is 1"),
        ((4, 1), {}, ValueError, "dim is 1"),
        ((4, 2.5), {}, TypeError, "dim"),
        ((171, 3), {}, ValueError, "513 coordinates, .* use rowsep.packing.codes.best_code"),
        ((4, 2), {"starts": 0}, ValueError, "starts is 0"),
        ((4, 2), {"given": [torch.rand(4, 3)]}, ValueError, "in 2 dimensions"),
        ((4, 2), {"given": [torch.eye(4, 2)]}, ValueError, "equal points"),
        ((4, 2), {"on_batch": 3}, TypeError, "on_batch is 3"),
    ],
)
def test_refusals(arguments, options, error, says, monkeypatch):
    monkeypatch.setattr(multistart, "search", None)
    with pytest.raises(error, match=says):
        spherical_code(*arguments, **options)
