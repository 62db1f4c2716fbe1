"""The diameter alone is that of all pairs, and leaves out rows that no longest pair ends in."""

import math

import pytest
import torch

from rowsep.packing.pairs import extremes, farthest
from rowsep.packing.pairs.blocked.farthest import ends
from rowsep.packing.pairs.rows import prepare
from tests.packing import clouds

EXACT = 1e-12  # relative error promised, for d up to 1000


def far_away(V, d, generator):
    """A small cloud far from the origin, where float32 has two digits of it left."""
    return clouds.heavy(V, d, generator, decades=1.0) + 1e6


def lone(V, d, generator):
    """All rows equal but one."""
    S = torch.ones(V, d)
    S[int(torch.randint(V, (), generator=generator))] += 1e-3
    return S


def sphere(V, d, generator):
    return torch.nn.functional.normalize(clouds.gaussian(V, d, generator), dim=1)


MAKERS = [clouds.gaussian, clouds.with_twins, clouds.heavy, clouds.clusters, far_away, lone, sphere]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (65, 7), (1201, 24)], ids=str)
@pytest.mark.parametrize("make", MAKERS)
def test_it_is_the_diameter_of_all_pairs(make, shape, masked, generator):
    generator.seed()
    S, mask = make(*shape, generator), None
    if masked:
        mask = torch.rand(len(S), generator=generator) < 0.6
        S[~mask] = math.nan  # what takes no part is not read
    truth = extremes(S, mask=mask, impl="naive")
    value, (i, j) = farthest(S, mask=mask)
    assert math.isclose(value, truth.diameter, rel_tol=EXACT)
    if (i, j) != (-1, -1):
        assert i < j and (mask is None or (mask[i] and mask[j]))
        assert math.isclose(float((S[i].double() - S[j].double()).norm()), value, rel_tol=EXACT)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("rank", [1, 2])
def test_both_ends_of_tied_pairs_are_kept(rank, size, generator):
    """Of a symmetric cloud all longest pairs are opposite rows, and all their ends stay."""
    half = clouds.gaussian(40, rank, generator, torch.float64)
    half /= half.norm(dim=1, keepdim=True)
    S = size * torch.cat([half, -half, 0.3 * half])
    kept = ends(prepare(S))
    assert kept[:80].all() and not kept[80:].any()


@pytest.mark.parametrize("none", [torch.zeros(0, 4), torch.zeros(1, 4), torch.ones(5, 4)])
def test_too_few_or_equal_rows_have_diameter_zero(none):
    assert farthest(none)[0] == extremes(none).diameter == 0.0
    nobody = torch.zeros(len(none), dtype=torch.bool)
    assert farthest(none, mask=nobody) == (0.0, (-1, -1))


def test_squares_that_underflow_keep_their_rows():
    """Half of the difference squares to zero, the whole of it does not."""
    S = torch.tensor([[0.5, 1.2e-162], [0.5, -1.2e-162]], dtype=torch.float64)
    assert farthest(S) == (extremes(S).diameter, (0, 1))


def test_few_rows_are_kept_where_lengths_differ_and_all_where_they_are_one(generator):
    assert ends(prepare(clouds.heavy(4000, 16, generator))).sum() < 400
    assert ends(prepare(sphere(4000, 64, generator))).all()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        farthest(torch.tensor([[1.0], [math.inf]]))
    with pytest.raises(ValueError, match="mask must be bool"):
        farthest(torch.ones(3, 2), mask=torch.ones(2, dtype=torch.bool))
