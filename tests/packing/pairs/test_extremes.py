"""Extremes are exact for the entries given: any size, dtype, layout, scale, tie and format."""

import math
import types

import pytest
import torch
from safetensors.torch import load_file

from rowsep.packing.io import DATA
from rowsep.packing.pairs import Extremes, extremes
from rowsep.packing.pairs.blocked.screen import (
    FORMATS,
    OPERANDS,
    FineTiles,
    integer_product,
    integer_scale,
    operand_rounding,
    screen,
)
from rowsep.packing.pairs.blocked.search import extremes as search
from rowsep.packing.pairs.blocked.search import native_levels
from rowsep.packing.pairs.rows import Rows, prepare
from tests.packing import clouds

EXACT = 1e-12  # relative error promised, for d up to 1000
MOMENTUM = DATA / "momentum.safetensors"
LEVELS = [
    (),
    ("int8",),
    ("bfloat16",),
    ("float32",),
    ("float64",),
    ("int8", "bfloat16"),
    ("bfloat16", "float32"),
]


def assert_same(found: Extremes, truth: Extremes, S):
    """The same figures, each attained by the pair returned."""
    X = S.double()
    for value, pair, true in (
        (found.delta, found.closest, truth.delta),
        (found.diameter, found.farthest, truth.diameter),
    ):
        assert math.isclose(value, true, rel_tol=EXACT)
        if pair != (-1, -1):
            assert 0 <= pair[0] < pair[1] < len(S)
            attained = float((X[pair[0]] - X[pair[1]]).norm())
            assert abs(attained - value) <= EXACT * value + 1e-300, (attained, value, pair)


@pytest.mark.parametrize("dtype", clouds.DTYPES, ids=str)
@pytest.mark.parametrize("d", [1, 2, 17, 100])
@pytest.mark.parametrize("V", [1, 2, 3, 65, 127, 513, 1025])
def test_blocked_equals_naive(V, d, dtype, generator):
    if V * d > 20_000 and dtype != torch.float32:
        d //= 4
    S = clouds.gaussian(V, d, generator, dtype)
    assert_same(extremes(S, impl="blocked"), extremes(S, impl="naive"), S)


@pytest.mark.parametrize("levels", LEVELS, ids="+".join)
@pytest.mark.parametrize("make", [clouds.gaussian, clouds.with_twins, clouds.heavy])
def test_every_format_leads_to_the_exact_extremes(make, levels, generator):
    S = make(1300, 24, generator)
    assert_same(search(S, levels=levels), extremes(S, impl="naive"), S)


@pytest.mark.parametrize("d", [1, 2, 3, 17])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 512), (512, 1), (3, 5), (512, 512)])
def test_integer_products_are_exact(n, m, d, generator):
    a, b = (
        torch.randint(-127, 128, (rows, d), generator=generator, dtype=torch.int8)
        for rows in (n, m)
    )
    assert torch.equal(integer_product(a, b), a.int() @ b.int().T)


@pytest.mark.parametrize("level", FORMATS)
@pytest.mark.parametrize("make", [clouds.gaussian, clouds.with_twins, clouds.heavy])
def test_tiles_bound_the_distance_from_below_and_above(make, level, generator):
    S = make(300, 33, generator)
    if level == "float16":
        S = clouds.gaussian(300, 33, generator)
    else:
        S[3] = 0
        S[4] *= 1e-38
    rows = prepare(S)
    X = rows.scaled(slice(None))
    q = torch.stack([(x - X[100:]).square().sum(1) for x in X[:100]])
    screened = screen(rows, level)
    tile = screened.tile(slice(0, 100), slice(100, 300)).double()
    slack = screened.slack.double()
    assert (tile <= q).all()
    assert (q <= tile + 2 * (slack[:100, None] + slack[100:])).all()


def test_blockwise_float64_bounds_hold(generator):
    S = clouds.with_twins(300, 33, generator)
    rows = prepare(S)
    X = rows.scaled(slice(None))
    q = torch.stack([(x - X[100:]).square().sum(1) for x in X[:100]])
    tile, left, right = FineTiles(rows).tile(slice(0, 100), slice(100, 300))
    assert (tile <= q).all()
    assert (q <= tile + 2 * (left[:, None] + right)).all()


@pytest.mark.parametrize("make", [clouds.with_twins, clouds.heavy, clouds.clusters])
def test_hard_clouds(make, generator):
    S = make(900, 12, generator)
    assert_same(extremes(S, impl="blocked"), extremes(S, impl="naive"), S)


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-40])
def test_scale_at_the_ends_of_float32(scale, generator):
    S = clouds.gaussian(600, 9, generator) * scale
    assert_same(extremes(S, impl="blocked"), extremes(S, impl="naive"), S)
    mixed = torch.cat([S, clouds.gaussian(40, 9, generator)])
    assert_same(extremes(mixed, impl="blocked"), extremes(mixed, impl="naive"), mixed)
    for level in ("int8", "bfloat16"):
        part = mixed[::4]
        assert_same(search(part, levels=(level,)), extremes(part, impl="naive"), part)


@pytest.mark.parametrize("scale", [1e300, 1e-310])
def test_scale_at_the_ends_of_float64(scale, generator):
    S = clouds.gaussian(100, 3, generator, torch.float64)
    found, truth = extremes(S * scale, impl="blocked"), extremes(S, impl="naive")
    tolerance = EXACT if scale > 1 else 1e-6  # denormal entries keep few digits
    assert found.closest == truth.closest and found.farthest == truth.farthest
    assert math.isclose(found.delta, truth.delta * scale, rel_tol=tolerance)
    assert math.isclose(found.diameter, truth.diameter * scale, rel_tol=tolerance)


@pytest.mark.parametrize("impl", ["naive", "blocked"])
@pytest.mark.parametrize(
    ("S", "delta", "diameter"),
    [
        (clouds.orthoplex(300), math.sqrt(2), 2.0),
        (clouds.grid(24), 1.0, 23 * math.sqrt(2)),
        (clouds.simplex(530), math.sqrt(2), math.sqrt(2)),
    ],
    ids=["orthoplex", "grid", "simplex"],
)
def test_ties_keep_their_exact_value(S, delta, diameter, impl):
    found = extremes(S, impl=impl)
    assert math.isclose(found.delta, delta, rel_tol=1e-15)
    assert math.isclose(found.diameter, diameter, rel_tol=1e-15)
    assert_same(found, Extremes(delta, diameter, (0, 0), (0, 0)), S)


def test_millions_of_ties_are_not_enumerated(monkeypatch):
    examined = 0
    original = Rows.distances

    def counting(self, i, j):
        nonlocal examined
        examined += len(i)
        return original(self, i, j)

    monkeypatch.setattr(Rows, "distances", counting)
    extremes(clouds.orthoplex(1000), impl="blocked")
    assert examined < 200_000  # of 1 998 000 ties


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_equal_rows_have_separation_zero(impl, generator):
    S = clouds.gaussian(700, 7, generator)
    S[650] = S[3]
    assert extremes(S, impl=impl).delta == 0.0
    assert extremes(S, impl=impl).closest == (3, 650)
    S[:300] = S[0]
    assert extremes(S, impl=impl).delta == 0.0
    same = torch.full((600, 5), 0.1)
    found = extremes(same, impl=impl)
    assert (found.delta, found.diameter) == (0.0, 0.0) and found.closest[0] < found.closest[1]
    assert extremes(torch.zeros(600, 5), impl=impl).diameter == 0.0


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_fewer_than_two_rows(impl):
    nothing = Extremes(math.inf, 0.0, (-1, -1), (-1, -1))
    assert extremes(torch.zeros(0, 3), impl=impl) == nothing
    assert extremes(torch.ones(1, 3), impl=impl) == nothing
    mask = torch.zeros(80, dtype=torch.bool)
    mask[7] = True
    assert extremes(torch.ones(80, 3), mask=mask, impl=impl) == nothing


@pytest.mark.parametrize("impl", ["naive", "blocked"])
def test_mask_leaves_rows_out_and_keeps_their_numbering(impl, generator):
    S = clouds.gaussian(600, 11, generator)
    S[::7] = math.nan
    S[1::7] = 1e38
    mask = torch.ones(600, dtype=torch.bool)
    mask[::7] = mask[1::7] = False
    kept = mask.nonzero()[:, 0]
    truth = extremes(S[mask], impl="naive")
    found = extremes(S, mask=mask, impl=impl)
    assert (found.delta, found.diameter) == (truth.delta, truth.diameter)
    assert found.closest == tuple(kept[list(truth.closest)].tolist())
    assert found.farthest == tuple(kept[list(truth.farthest)].tolist())


def test_layout_does_not_matter_and_input_is_left_alone(generator):
    for dtype in clouds.DTYPES:
        S = clouds.gaussian(40, 700, generator, dtype)
        before = S.clone()
        assert extremes(S.T, impl="blocked") == extremes(S.T.contiguous(), impl="blocked")
        assert extremes(S.T[::2, ::3], impl="blocked") == extremes(S.T[::2, ::3], impl="naive")
        assert torch.equal(S, before)


def test_same_input_same_output():
    S = clouds.orthoplex(300)
    assert extremes(S, impl="blocked") == extremes(S, impl="blocked")


def test_permutation_rotation_shift(generator):
    S = clouds.gaussian(700, 20, generator, torch.float64)
    found = extremes(S, impl="blocked")
    order = torch.randperm(700, generator=generator)
    moved = extremes(S[order], impl="blocked")
    assert (moved.delta, moved.diameter) == (found.delta, found.diameter)
    assert set(order[list(moved.closest)].tolist()) == set(found.closest)
    turned = extremes(S @ clouds.rotation(20, generator) + 1, impl="blocked")
    assert math.isclose(turned.delta, found.delta, rel_tol=1e-12)
    assert math.isclose(turned.diameter, found.diameter, rel_tol=1e-12)
    assert turned[2:] == found[2:]


def test_real_momentum():
    S = load_file(MOMENTUM)["momentum"]
    found = extremes(S)
    distances = torch.pdist(S.double())
    truth = found._replace(delta=float(distances.min()), diameter=float(distances.max()))
    assert_same(found, truth, S)
    part = S[::4].contiguous()
    assert_same(search(part, levels=("bfloat16",)), extremes(part, impl="naive"), part)


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_lower_matmul_precision_stays_exact(precision, generator):
    S = clouds.with_twins(600, 40, generator)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        found = extremes(S, impl="blocked")
    finally:
        torch.set_float32_matmul_precision(before)
    assert_same(found, extremes(S, impl="naive"), S)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_lower_precision_set_by_backend_is_heeded(precision, generator):
    """`torch.get_float32_matmul_precision` raises under such settings."""
    S = clouds.with_twins(600, 40, generator)
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = precision
    try:
        assert operand_rounding(S.device) == OPERANDS[precision]
        found = extremes(S, impl="blocked")
    finally:
        matmul.fp32_precision = before
    assert_same(found, extremes(S, impl="naive"), S)


@pytest.mark.parametrize(
    ("able", "levels"),
    [
        ([], ()),
        (["avx512_bf16"], ("bfloat16",)),
        (["avx_vnni"], ("int8",)),
        (["avx512_vnni", "avx512_bf16"], ("int8", "bfloat16")),
        (["amx_int8", "amx_bf16"], ("int8", "bfloat16")),
    ],
)
def test_narrow_formats_screen_only_where_they_are_native(able, levels, monkeypatch, generator):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(able, True))
    assert native_levels(torch.device("cpu")) == levels
    S = clouds.gaussian(1100, 8, generator)
    assert_same(extremes(S, impl="blocked"), extremes(S, impl="naive"), S)


def test_saturating_integer_products_are_not_used(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_vnni": True})
    right = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: right(a, b).clamp_(max=2**15 - 1))
    assert native_levels(torch.device("cpu")) == ()


def test_integers_fit_their_sums():
    for d in (1, 700, 150_000):
        x = torch.ones(2, d, dtype=torch.float64)
        k = (x / integer_scale(x)[:, None]).round()
        assert 1 <= float(k.max()) <= 127 and float(k.square().sum(1).max()) < 2**31
    assert integer_scale(torch.tensor([[0.0, 0.0], [1e-35, 0.0]]).double()).tolist() == [0, 0]


def test_half_precision_sums_are_not_relied_upon(monkeypatch):
    cuda = torch.device("cuda")
    assert native_levels(cuda) == ("float16", "float32")
    monkeypatch.setattr(
        torch.backends.cuda, "matmul", types.SimpleNamespace(allow_fp16_accumulation=True)
    )
    assert native_levels(cuda) == ("float32",)


def test_refusals():
    S = torch.zeros(3, 2)
    with pytest.raises(ValueError, match="'auto', 'naive', 'blocked', got 'fast'"):
        extremes(S, impl="fast")
    with pytest.raises(ValueError, match="floating matrix"):
        extremes(torch.zeros(3))
    with pytest.raises(ValueError, match="mask must be bool of shape"):
        extremes(S, mask=torch.ones(2, dtype=torch.bool))
    for impl in ("naive", "blocked"):
        with pytest.raises(ValueError, match="not finite"):
            extremes(torch.tensor([[math.inf], [0.0], [1.0]]), impl=impl)


def test_int8_bounds_leave_room_for_their_own_doubt():
    """Without it the farthest pair of this cloud lies in a tile that is left out."""
    generator = torch.Generator().manual_seed(592307)
    S = torch.nn.functional.normalize(torch.randn(4117, 9, generator=generator))
    found = search(S, levels=("int8",)).diameter
    assert found == pytest.approx(float(torch.pdist(S.double()).max()), rel=1e-12)
