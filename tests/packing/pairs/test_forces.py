"""Forces: sparse, dense and definition agree, near twins too; a pair list never misses a pair."""

import itertools
import math

import pytest
import torch
from safetensors.torch import load_file

from rowsep.packing.io import DATA
from rowsep.packing.pairs import PairList, TooManyPairs, forces
from rowsep.packing.pairs.blocked import summation
from tests.packing import clouds

MOMENTUM = DATA / "momentum.safetensors"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}  # relative, Frobenius
FACTOR = 4  # our float32 error over the definition's own, evaluated in float32
WAYS = {"sparse": 1.0, "mixed": summation.DENSE, "dense": 0.0}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Tiles are summed sparsely, densely, or as they come."""
    monkeypatch.setattr(summation, "DENSE", WAYS[request.param])
    return request.param


def relative(found, truth):
    """Frobenius error relative to the truth's norm."""
    return float((found.double() - truth.double()).norm() / truth.double().norm())


def hinge(near, far):
    """Pushes pairs below `near` apart and pulls those beyond `far` together."""

    def weight(q):
        r = q.sqrt()
        return (near**0.5 - r).clamp(min=0) / r - (r - far**0.5).clamp(min=0) / r

    return weight


def cutoffs(S, below=0.01, above=0.01):
    """The q that about a share `below` of the pairs lies under, and `above` over, in wide gaps."""
    q = torch.pdist(S.double()).square().sort().values
    reach = len(q) // 200 + 2
    ends = []
    for place in (int(below * len(q)), int((1 - above) * len(q))):
        around = q[max(0, place - reach) : place + reach]
        widest = int(around.diff().argmax())
        ends.append(float(around[widest : widest + 2].mean()))
    return ends[0], max(ends[0] * 1.01, ends[1])


def assert_same(found, truth):
    """Every field, within the working precision."""
    tolerance = TOLERANCE[found.force.dtype]
    assert found.pairs == truth.pairs
    for name in ("force", "nearest", "farthest"):
        a, b = getattr(found, name), getattr(truth, name)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert relative(a, b) <= tolerance, (name, relative(a, b))


SHAPES = itertools.product([(3, 2), (65, 17), (127, 1), (513, 100)], clouds.DTYPES)


@pytest.mark.parametrize(("shape", "dtype"), [*SHAPES, ((1025, 17), torch.float32)], ids=str)
def test_blocked_equals_naive(shape, dtype, way, generator):
    V, d = shape
    S = clouds.gaussian(V, d, generator, torch.float64)
    near, far = cutoffs(S.to(dtype))
    weight = hinge(near, far)
    truth = forces(S.to(dtype), weight, near=near, far=far, impl="naive")
    found = forces(S.to(dtype), weight, near=near, far=far, impl="blocked")
    assert found.force.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    if dtype == torch.float64 or V < 100:
        assert_same(found, truth)
    else:  # low precision inputs have ties at the cut-offs
        assert_same(found._replace(pairs=truth.pairs), truth)
        assert abs(found.pairs - truth.pairs) <= 1e-3 * truth.pairs + 3


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_defaults_make_every_pair_active(impl, generator):
    S = clouds.gaussian(600, 8, generator, torch.float64)
    found = forces(S, torch.ones_like, impl=impl)
    assert found.pairs == 600 * 599 // 2
    assert relative(found.force, 600 * (S - S.mean(0))) < 1e-12


@pytest.mark.parametrize("side", ["near", "far"])
def test_one_side_alone(side, way, generator):
    S = clouds.gaussian(700, 8, generator, torch.float64)
    near, far = cutoffs(S)
    if side == "near":
        far = math.inf
        weight = lambda q: (near - q).clamp(min=0)  # noqa: E731
    else:
        near = 0.0
        weight = lambda q: (q - far).clamp(min=0)  # noqa: E731
    truth = forces(S, weight, near=near, far=far, impl="naive")
    assert_same(forces(S, weight, near=near, far=far, impl="blocked"), truth)
    assert_same(
        PairList(S, near=near, far=far, skin=0.02)
        .forces(S, weight)
        ._replace(nearest=truth.nearest, farthest=truth.farthest),
        truth,
    )


@pytest.mark.parametrize("make", [clouds.with_twins, clouds.heavy, clouds.clusters])
def test_near_twins_and_clusters_keep_their_digits(make, way, generator):
    S = make(700, 12, generator)
    near, far = cutoffs(S, 0.02)
    weight = lambda q: (1 / q - 1 / near).clamp(min=0)  # noqa: E731
    truth = forces(S, weight, near=near, far=math.inf, impl="naive")
    found = forces(S, weight, near=near, far=math.inf, impl="blocked")
    scale = truth.force.norm(dim=1).max()
    assert (found.nearest / truth.nearest - 1).abs().max() < 1e-3
    assert (found.farthest / truth.farthest - 1).abs().max() < 1e-3
    assert abs(found.pairs - truth.pairs) <= 1e-2 * truth.pairs
    assert float((found.force - truth.force).norm(dim=1).max() / scale) < 1e-3
    listed = PairList(S, near=near, far=math.inf, skin=0.01).forces(S, weight)
    assert float((listed.force - truth.force).norm(dim=1).max() / scale) < 1e-3


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize("count", [3, 400])
def test_equal_rows_exert_nothing_on_one_another(impl, count, generator):
    S = clouds.gaussian(600, 5, generator)
    S[:count] = S[0]
    found = forces(S, torch.reciprocal, impl=impl)
    assert found.force.isfinite().all()
    assert torch.equal(found.nearest[:count], torch.zeros(count))
    assert relative(found.force, forces(S, torch.reciprocal, impl="naive").force) < 1e-4
    assert found.pairs == 600 * 599 // 2
    truth = forces(S, torch.reciprocal, near=0.1, far=math.inf, impl="naive")
    assert forces(S, torch.reciprocal, near=0.1, far=math.inf, impl=impl).pairs == truth.pairs


@pytest.mark.parametrize("make", [clouds.gaussian, clouds.heavy])
def test_float32_error_is_near_the_definitions_own(make, way, generator):
    S = make(600, 64, generator)
    near, far = cutoffs(S, 0.05, 0.05)
    weight = hinge(near, far)
    truth = forces(S.double(), weight, near=near, far=far, impl="naive").force
    difference = S[:, None] - S[None]
    q = difference.square().sum(-1)
    W = weight(q).fill_diagonal_(0).nan_to_num(0)
    own = relative((W[:, :, None] * difference).sum(1), truth)
    found = forces(S, weight, near=near, far=far, impl="blocked")
    assert relative(found.force, truth) <= FACTOR * own + 2.0**-22


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize("entry", [math.nan, math.inf, -math.inf])
def test_entries_that_are_not_finite_are_refused(entry, impl):
    S = torch.ones(5, 3)
    S[2, 1] = entry
    with pytest.raises(ValueError, match="not finite"):
        forces(S, torch.reciprocal, impl=impl)


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize("V", [0, 1])
def test_rows_without_a_partner(V, impl):
    found = forces(torch.ones(V, 3), torch.reciprocal, impl=impl)
    assert torch.equal(found.force, torch.zeros(V, 3))
    assert found.nearest.tolist() == [math.inf] * V
    assert found.farthest.tolist() == [0.0] * V
    assert found.pairs == 0


def test_layout_permutation_and_rotation(generator):
    S = clouds.gaussian(600, 20, generator, torch.float64)
    near, far = cutoffs(S)
    weight = hinge(near, far)
    truth = forces(S, weight, near=near, far=far, impl="blocked").force
    turned = S.T.contiguous().T
    assert torch.equal(forces(turned, weight, near=near, far=far, impl="blocked").force, truth)
    order = torch.randperm(600, generator=generator)
    moved = forces(S[order], weight, near=near, far=far, impl="blocked").force
    assert relative(moved, truth[order]) < 1e-12
    Q = clouds.rotation(20, generator)
    rotated = forces(S @ Q + 1, weight, near=near, far=far, impl="blocked").force
    assert relative(rotated, truth @ Q) < 1e-9


def test_real_momentum(way):
    S = load_file(MOMENTUM)["momentum"][::8].contiguous()
    near, far = cutoffs(S)
    weight = hinge(near, far)
    truth = forces(S, weight, near=near, far=far, impl="naive")
    found = forces(S, weight, near=near, far=far, impl="blocked")
    assert relative(found.force, truth.force) < 1e-5
    assert (found.nearest / truth.nearest - 1).abs().max() < 1e-3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_pair_list_covers_only_what_it_can_serve(dtype, generator):
    S = clouds.gaussian(600, 10, generator, torch.float64)
    near, far = cutoffs(S)
    S, weight = S.to(dtype), hinge(near, far)
    kept = PairList(S, near=near, far=far, skin=0.05)
    built = forces(S, weight, near=near, far=far, impl="blocked")
    assert torch.equal(kept.nearest, built.nearest) and torch.equal(kept.farthest, built.farthest)
    assert kept.pairs >= built.pairs and kept.covers(S)
    answers = set()
    for share in (0.0, 0.2, 0.45, 0.6, 2.0, 20.0):
        step = clouds.gaussian(600, 10, generator, dtype)
        step *= share * kept.reach / step.norm(dim=1).max()
        moved = S + step
        covered = kept.covers(moved)
        answers.add(covered)
        assert covered or share > 0.45
        if covered:
            truth = forces(moved, weight, near=near, far=far, impl="naive")
            found = kept.forces(moved, weight)
            assert relative(found.force, truth.force) < TOLERANCE[dtype]
            if dtype == torch.float64:
                assert found.pairs == truth.pairs
            touched = truth.nearest <= near
            assert torch.allclose(found.nearest[touched], truth.nearest[touched], rtol=1e-4)
            touched = truth.farthest >= far
            assert torch.allclose(found.farthest[touched], truth.farthest[touched], rtol=1e-4)
    assert answers == {True, False}


def test_pair_list_notices_the_two_rows_that_meet(generator):
    S = clouds.gaussian(300, 6, generator, torch.float64)
    near, far = cutoffs(S)
    kept = PairList(S, near=near, far=far, skin=0.05)
    for share, covered in ((0.499, True), (0.501, False)):
        moved = S.clone()
        moved[[4, 9], 0] += torch.tensor([share, -share]) * kept.reach
        assert kept.covers(moved) is covered
    assert not kept.covers(S[:-1])


def test_pair_list_rows_without_a_listed_pair(generator):
    S = clouds.gaussian(100, 4, generator)
    S[7] = 50.0
    kept = PairList(S, near=0.5, far=math.inf, skin=0.02)
    found = kept.forces(S, lambda q: (0.5 - q).clamp(min=0))
    assert found.nearest[7] == math.inf and found.farthest[7] == 0
    assert torch.equal(found.force[7], torch.zeros(4))


def test_pair_list_refusals(generator):
    S = clouds.gaussian(100, 4, generator)
    with pytest.raises(TooManyPairs, match="more than 10 pairs"):
        PairList(S, near=100.0, far=math.inf, skin=0.02, max_pairs=10)
    for near, far, skin in ((math.inf, math.inf, 0.1), (2.0, 1.0, 0.1), (1.0, 2.0, 1.0)):
        with pytest.raises(ValueError, match="PairList needs"):
            PairList(S, near=near, far=far, skin=skin)


def test_pair_list_of_few_rows():
    for V in (0, 1, 2):
        S = torch.arange(2.0 * V).view(V, 2)
        kept = PairList(S, near=9.0, far=math.inf, skin=0.1)
        assert kept.covers(S) and kept.pairs == (1 if V == 2 else 0)
        truth = forces(S, torch.ones_like, near=9.0, far=math.inf, impl="naive")
        assert torch.equal(kept.forces(S, torch.ones_like).force, truth.force)
