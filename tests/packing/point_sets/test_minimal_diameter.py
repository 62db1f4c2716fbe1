"""Least diameters: proved values, exact conditions, the same result however the work is cut."""

import functools
import itertools
import json
import math
from fractions import Fraction

import mpmath
import pytest
import torch

from rowsep import packing
from rowsep.packing.bounds.certificate import check_certificate
from rowsep.packing.exact import search as searching
from rowsep.packing.exact.floors import Problem
from rowsep.packing.exact.log import Key, SearchLog
from rowsep.packing.exact.optimality import DENOMINATOR
from rowsep.packing.io import InputError
from rowsep.packing.point_sets import multistart
from rowsep.packing.point_sets.configuration import from_certificate
from rowsep.packing.point_sets.minimal_diameter import minimal_diameter

GOLDEN = (1 + math.sqrt(5)) / 2
PLANE = {  # Bateman and Erdos 1951 up to 7 points, A. Bezdek and Fodor 1999
    2: 1.0,
    3: 1.0,
    4: 2.0,
    5: 1 + GOLDEN,
    6: (5 + math.sqrt(5)) / 2,
    7: 4.0,
    8: 1 / (2 - 2 * math.cos(math.pi / 7)),
}


@functools.cache
def found_of(n, d):
    """The configuration of the first batch of starts, searched once."""
    return minimal_diameter(n, d, starts=64)


@pytest.mark.parametrize("n", PLANE)
def test_proved_values_in_the_plane(n):
    found = found_of(n, 2)
    assert float(found.ratio_squared) == pytest.approx(PLANE[n], rel=1e-14)
    assert found.optimality.isolated
    assert found.agreeing >= 5


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_two_more_points_than_dimensions(d):
    """Schuette 1963, to 26 digits; test_records.py has d up to 12."""
    exact = 1 + (Fraction(2, d) if d % 2 == 0 else Fraction(2 * (d + 2), d * (d + 2) - 1))
    found = found_of(d + 2, d)
    assert abs(found.ratio_squared - exact) < Fraction(1, 10**26)
    assert found.optimal


@pytest.mark.parametrize(
    ("n", "d", "value"),
    [(2, 1, 1), (5, 1, 16), (5, 4, 1), (10, 4, 2)],
)
def test_clouds_that_meet_the_bound(n, d, value):
    """Equal steps, simplices, and the two-distance set T(5)."""
    found = found_of(n, d)
    assert abs(found.ratio_squared - value) < Fraction(1, 10**26)
    assert found.optimal


def test_a_cloud_that_does_not_meet_the_bound():
    found = found_of(6, 3)
    assert float(found.ratio_squared) == pytest.approx(2, rel=1e-14)
    assert not found.optimal


@pytest.mark.parametrize(("n", "d"), [(8, 2), (9, 2), (12, 2), (9, 3)])
def test_conditions_hold_to_thirty_digits(n, d):
    """From the rational coordinates and the multipliers alone, in another arithmetic."""
    found = found_of(n, d)
    told = found.optimality
    assert told.solved and told.residual < 1e-30
    squares = {
        (i, j): sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
        for (i, p), (j, q) in itertools.combinations(enumerate(found.coordinates), 2)
    }
    least, most = min(squares.values()), max(squares.values())
    room = DENOMINATOR * 100
    assert {k for k, q in squares.items() if q < least + room} == {(p.i, p.j) for p in told.near}
    assert {k for k, q in squares.items() if q > most - room} == {(p.i, p.j) for p in told.far}
    assert abs(most - DENOMINATOR**2) < room
    force = torch.zeros(n, d, dtype=torch.float64)
    for sign, pairs in ((-1, told.near), (1, told.far)):
        for i, j, multiplier in pairs:
            assert multiplier >= 0
            pull = sign * multiplier * (found.points[i] - found.points[j])
            force[i] += pull
            force[j] -= pull
    assert float(force.abs().max()) < 1e-14
    assert sum(p.multiplier for p in told.near) == pytest.approx(1, rel=1e-14)
    held = {k for p in (*told.near, *told.far) if p.multiplier for k in (p.i, p.j)}
    assert set(told.rattlers) == set(range(n)) - held


def test_a_point_that_is_free():
    """Eight points: a regular heptagon and one inside it, which no distance holds."""
    found = found_of(8, 2)
    assert len(found.optimality.rattlers) == 1
    assert len(found.optimality.near) == len(found.optimality.far) == 7


def test_the_square_is_rigid():
    square = found_of(4, 2).optimality
    assert square.isolated and square.freedom == 0 and square.curvature is None


def test_the_same_with_two_processes(forked):
    one = minimal_diameter(5, 2, starts=192, seed=3)
    two = minimal_diameter(5, 2, starts=192, seed=3, processes=2)
    assert one == two


def test_other_seeds_start_elsewhere():
    a, b = (searching.run_batch(Problem(9, 2), seed, 0) for seed in (0, 1))
    assert a.basins[0].starts != b.basins[0].starts or (a.points != b.points).any()


def test_resumed_is_as_uninterrupted(tmp_path):
    log = tmp_path / "log.jsonl"
    whole = minimal_diameter(6, 2, starts=192, log=log)
    part = tmp_path / "part.jsonl"
    minimal_diameter(6, 2, starts=64, log=part)
    assert SearchLog(part).found(Key(6, 2, 0)).starts == 64
    assert minimal_diameter(6, 2, starts=192, log=part) == whole
    done = SearchLog(part).lines[Key(6, 2, 0)]
    other = SearchLog(log).lines[Key(6, 2, 0)]
    for name in ("starts", "failed", "basins", "kinds", "points"):
        assert done[name] == other[name]


def test_a_search_that_is_done_is_not_repeated(tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    first = minimal_diameter(5, 2, starts=64, log=log)
    monkeypatch.setattr(searching, "run_batch", None)
    assert minimal_diameter(5, 2, starts=64, log=log) == first


def test_interrupt_keeps_the_best(monkeypatch, tmp_path):
    real, log = searching.run_batch, tmp_path / "log.jsonl"

    def pressed(problem, seed, number, given=()):
        if number == 1:
            raise KeyboardInterrupt
        return real(problem, seed, number, given)

    monkeypatch.setattr(searching, "run_batch", pressed)
    found = minimal_diameter(6, 2, starts=640, log=log)
    assert found.starts == 64
    assert float(found.ratio_squared) == pytest.approx(PLANE[6])
    assert "interrupted" in found.stop
    assert SearchLog(log).found(Key(6, 2, 0)).starts == 64
    with pytest.raises(KeyboardInterrupt):
        monkeypatch.setattr(
            searching, "run_batch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        minimal_diameter(6, 2)


def test_time_limit_ends_after_a_batch():
    assert minimal_diameter(5, 2, starts=6400, time_limit=0).starts == 64


@pytest.mark.parametrize("others", [-1, 0, 1])
def test_given_clouds_are_perturbed(generator, others):
    """From 19, 18 or 20 points near the hexagonal piece of 19 the search comes back to it."""
    line = torch.arange(-3, 4, dtype=torch.float64)
    lattice = (
        torch.cartesian_prod(line, line) @ torch.tensor([[1.0, 0.0], [0.5, 3**0.5 / 2]]).double()
    )
    hexagon = lattice[lattice.norm(dim=1).argsort()[: 19 + others]]
    found = minimal_diameter(19, 2, starts=64, given=[hexagon])
    assert float(found.ratio_squared) == pytest.approx(8 + 4 * math.sqrt(3), rel=1e-12)


def test_merging_keeps_the_least_basins():
    basins = [searching.Basin(1.0 + k, 1) for k in range(30)]
    even = searching.Found(30, 0, tuple(basins[::2]), {"ball": 1})
    odd = searching.Found(30, 1, tuple(basins[1::2]), {"ball": 1})
    both = searching.merged(even, odd)
    assert [one.ratio_squared for one in both.basins] == [1.0 + k for k in range(20)]
    assert (both.starts, both.failed, both.kinds) == (60, 1, {"ball": 1})
    again = searching.merged(both, even)
    assert again.basins[0].starts == 2 and again.kinds == {"ball": 2}


def test_certificate_of_a_configuration():
    found = found_of(7, 2)
    told = json.loads(json.dumps(found.certificate()))
    proved = check_certificate(told)
    assert proved.attained == found.ratio_squared <= proved.claimed
    assert proved.claimed - proved.attained < Fraction(1, 10**26)
    back = from_certificate(told)
    assert (back.coordinates, back.optimality) == (found.coordinates, found.optimality)


def test_points_are_the_coordinates():
    found = found_of(5, 3)
    again = packing.cloud.ratio(found.points)
    assert again.value == pytest.approx(found.rho, rel=1e-14)
    assert again.value**-2 == pytest.approx(12 / 7, rel=1e-14)
    assert found.points.dtype == torch.float64


@pytest.mark.parametrize(
    ("arguments", "options", "error", "says"),
    [
        ((1, 2), {}, ValueError, "num_points is 1"),
        ((4, 0), {}, ValueError, "dim is 0"),
        ((4.5, 2), {}, TypeError, "num_points"),
        ((257, 2), {}, ValueError, "514 coordinates, more than the 512"),
        ((4, 2), {"starts": 0}, ValueError, "starts is 0"),
        ((4, 2), {"seed": -1}, ValueError, "seed is -1"),
        ((4, 2), {"processes": 0}, ValueError, "processes is 0"),
        ((4, 2), {"time_limit": -1}, ValueError, "time_limit"),
        ((4, 2), {"given": [torch.zeros(4, 2)]}, ValueError, "equal points"),
        ((4, 2), {"given": [torch.rand(7, 2)]}, ValueError, "expected 3 to 5 points"),
        ((4, 2), {"given": [torch.rand(4, 3)]}, ValueError, "in 2 dimensions"),
        ((4, 2), {"on_batch": 3}, TypeError, "on_batch is 3"),
    ],
)
def test_refusals(arguments, options, error, says, monkeypatch):
    monkeypatch.setattr(multistart, "search", None)
    with pytest.raises(error, match=says):
        minimal_diameter(*arguments, **options)


def test_a_log_of_another_kind(tmp_path):
    (tmp_path / "log").write_text("hello\n")
    with pytest.raises(InputError, match="line 1, is no entry of a search log"):
        minimal_diameter(4, 2, log=tmp_path / "log")


@pytest.mark.parametrize(
    "damage",
    [
        {"points": [[0.0, 0.0], [1.0, 1.0]]},
        {"points": [[float("nan"), 0.0]] * 4},
        {"points": None},
        {"starts": -64},
        {"starts": "64"},
        {"kinds": None},
        {"basins": [[2.0]]},
    ],
    ids=str,
)
def test_a_damaged_log(tmp_path, damage):
    """What is not the outcome of this search is not taken for it."""
    path = tmp_path / "log"
    minimal_diameter(4, 2, starts=1, log=path)
    path.write_text(json.dumps(json.loads(path.read_text()) | damage) + "\n")
    with pytest.raises(InputError, match="line 1, is no entry of a search log"):
        minimal_diameter(4, 2, starts=1, log=path)


def test_a_log_that_is_no_text(tmp_path):
    (tmp_path / "log").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "log"):
        with pytest.raises(InputError, match="is no search log"):
            minimal_diameter(4, 2, log=path)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**700])
def test_the_scale_of_given_clouds_does_not_matter(generator, scale):
    cloud = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    found = minimal_diameter(5, 2, starts=1, given=[cloud * scale])
    assert found.coordinates == minimal_diameter(5, 2, starts=1, given=[cloud]).coordinates


def test_mpmath_context_is_left_alone():
    before = mpmath.mp.dps
    minimal_diameter(4, 2, starts=64)
    assert mpmath.mp.dps == before


def test_it_prints_its_figures_in_one_line():
    found = packing.minimal_diameter(4, 3, starts=1)
    bound = f"{found.bound:.6f}"
    assert repr(found) == (
        f"<4 points of R^3, rho 1.000000, squared ratio {found.claim}, bound on rho {bound}>"
    )
