"""Every family keeps what it claims, and generates any row alone."""

import math
from itertools import starmap

import numpy as np
import pytest
import torch

from rowsep.packing.codes.binary.golay import Golay
from rowsep.packing.codes.binary.signs import Gold, Kerdock
from rowsep.packing.codes.code import Part, Stored
from rowsep.packing.codes.complex.paley import Paley
from rowsep.packing.codes.complex.phases import Phases
from rowsep.packing.codes.gaussian import Gaussian
from rowsep.packing.codes.lattices.balls import LatticeBall
from rowsep.packing.codes.lattices.grid import Grid
from rowsep.packing.codes.lattices.minimal_vectors import MinimalVectors
from rowsep.packing.codes.polytopes.icosians import Icosians
from rowsep.packing.codes.polytopes.negatives import WithNegatives
from rowsep.packing.codes.polytopes.reed_solomon import ReedSolomon
from rowsep.packing.codes.polytopes.simplices import Midpoints, Orthoplex, Simplices
from rowsep.packing.codes.polytopes.strongly_regular import named
from rowsep.packing.codes.recorded import Recorded

CODES = [
    Simplices(1, 3),
    Simplices(9, 12),
    Simplices(14, 12),
    Simplices(17, 12),
    Simplices(24, 12),
    Midpoints(4),
    Midpoints(9),
    Orthoplex(5),
    Kerdock(4),
    Kerdock(16),
    Kerdock(16, 1),
    Kerdock(64),
    Gold(8),
    Gold(32),
    Gold(32, 3),
    Phases(5),
    Phases(9),
    Phases(11),
    Phases(7, 3),
    Phases(25, 2, 23),
    Paley(9),
    Paley(13),
    Paley(125),
    ReedSolomon(2, 3, 2),
    ReedSolomon(4, 5, 2),
    ReedSolomon(4, 4, 3),
    ReedSolomon(9, 10, 3),
    ReedSolomon(7, 5, 3),
    ReedSolomon(5, 6, 4),
    Grid(30, 3),
    *starmap(LatticeBall, [(2, 2), (31, 2), (400, 2), (9, 3), (500, 3), (25, 4), (300, 7)]),
    *starmap(LatticeBall, [(241, 8), (700, 9), (150, 11), (900, 14), (2000, 16)]),
    *starmap(LatticeBall, [(2500, 18), (2000, 21), (2500, 24)]),
    *map(Golay, range(16, 25)),
    Icosians(),
    WithNegatives(Icosians()),
    MinimalVectors(8),
    MinimalVectors(16),
    MinimalVectors(24),
    WithNegatives(Kerdock(16)),
    WithNegatives(MinimalVectors(8)),
    WithNegatives(Paley(13)),
    *(Recorded(n, d) for n, d in ((7, 2), (9, 3), (29, 7), (32, 8))),
    *named(),
    Part(Kerdock(16), 100, 19),
    Stored(torch.eye(7, 9), "seven axes"),
]
"""At most a few thousand rows each; those of Gold(32, 3) are looked at in part."""


@pytest.fixture(params=CODES, ids=repr)
def code(request):
    return request.param


def test_claims_hold_on_all_pairs(code):
    """rho, cosines and norms, in float64; "exact" means equal."""
    rows = code.rows(None if code.num_rows < 4000 else range(3000), dtype=torch.float64)
    if len(rows) == 1:
        assert code.rho == code.measured_rho() == 0 and torch.equal(rows, torch.zeros_like(rows))
        return
    distances = torch.pdist(rows)
    rho = float(distances.min() / distances.max())
    whole = len(rows) == code.num_rows
    if code.evidence in ("exact", "measured") and whole:
        assert rho == pytest.approx(code.rho, rel=1e-12)
    assert rho >= code.rho * (1 - 1e-12)
    assert rho <= code.bound * (1 + 1e-12) or not whole
    norms = rows.norm(dim=1)
    assert float(norms.max()) == pytest.approx(1, rel=1e-12)
    if code.cosines is not None:
        assert float(norms.min()) == pytest.approx(1, rel=1e-12)
        cosines = 1 - distances.square() / 2
        least, largest = code.cosines
        assert float(cosines.min()) >= least - 1e-12
        assert float(cosines.max()) <= largest + 1e-12
        if code.evidence == "exact" and whole:
            assert float(cosines.min()) == pytest.approx(least, abs=1e-12)
            assert float(cosines.max()) == pytest.approx(largest, abs=1e-12)


def test_any_rows_alone_are_those_of_all(code, generator):
    count = min(code.num_rows, 3000)
    indices = torch.randint(count, (40,), generator=generator)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        rows = code.rows(indices, dtype=dtype)
        assert rows.dtype == dtype and rows.shape == (40, code.dim)
        assert torch.equal(rows, code.rows(range(count), dtype=dtype)[indices])
    assert code.rows([]).shape == (0, code.dim)


def test_integer_entries_are_the_rows_at_another_scale(code):
    few = range(min(code.num_rows, 50))
    last = range(max(0, code.num_rows - 50), code.num_rows)
    if not code.integral:
        with pytest.raises(TypeError, match="no integer entries"):
            code.rows(few, dtype=torch.int8)
        return
    if isinstance(code, Gold):  # the standard basis times sqrt d
        row = code.num_rows - 50 if code.dim > 50 else code.num_rows - code.dim
        with pytest.raises(ValueError, match=f"row {row} has the entry sqrt {code.dim}.*floating"):
            code.rows(last, dtype=torch.int64)
        last = range(code.num_rows - code.dim)[-50:]
    for part in (few, last):
        entries = code.rows(part, dtype=torch.int8)
        torch.testing.assert_close(
            entries.double() / code.norm, code.rows(part, dtype=torch.double)
        )


def test_indices_are_checked(code):
    with pytest.raises(ValueError, match="rows 0 to"):
        code.rows([code.num_rows])
    with pytest.raises(ValueError, match="rows 0 to"):
        code.rows([-1])
    with pytest.raises(TypeError, match="torch.float32.*row numbers"):
        code.rows(torch.tensor([0.5]))


UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize(
    "indices",
    [
        np.arange(9)[::-1],
        np.arange(18, dtype=np.int16)[::2][::-1] // 2,
        *(np.arange(9)[::-1].astype(kind) for kind in ("u1", "u2", "u4", "u8", "i1", "i4")),
        *(torch.arange(8, -1, -1).to(kind) for kind in UNSIGNED),
        range(8, -1, -1),
        tuple(range(8, -1, -1)),
        [np.uint64(8), 7, torch.tensor(6), np.int8(5), 4, 3, 2, 1, 0],
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')}",
)
def test_row_numbers_of_any_kind(indices):
    code = Paley(9)
    assert torch.equal(code.rows(indices), code.rows().flip(0))


@pytest.mark.parametrize(
    ("indices", "error", "match"),
    [
        (slice(0, 3), TypeError, r"slice\(0, 3, None\).*row numbers"),
        ({1, 2}, TypeError, r"\{1, 2\} \(set\).*row numbers"),
        ((i for i in range(3)), TypeError, r"\(generator\).*row numbers"),
        ("abc", TypeError, r"'abc' \(str\).*row numbers"),
        (5, TypeError, r"5 \(int\).*row numbers"),
        ([None], TypeError, r"indices\[0\] is None.*expected an integer"),
        ([1, True], TypeError, r"indices\[1\] is True.*expected an integer"),
        ([0, [1, 2]], TypeError, r"indices\[1\] is \[1, 2\].*expected an integer"),
        ([2**70], ValueError, "1180591620717411303424.*rows 0 to 8"),
        ([0, -(2**70)], ValueError, "-1180591620717411303424 to 0.*rows 0 to 8"),
        (np.array([2**64 - 1], dtype=np.uint64), ValueError, "18446744073709551615.*rows 0 to 8"),
        (torch.ones(9, dtype=torch.bool), TypeError, r"torch.bool.*nonzero\(\)\[:, 0\]"),
        (np.ones(9, dtype=bool), TypeError, r"dtype bool.*nonzero\(\)\[:, 0\]"),
        (torch.empty(0), TypeError, "torch.float32.*row numbers"),
        (np.empty(0), TypeError, "float64.*row numbers"),
        (torch.zeros(2, 2, dtype=torch.int64), ValueError, r"\(2, 2\).*row numbers"),
        (torch.tensor(3), ValueError, r"shape \(\).*row numbers"),
        (torch.zeros(3, dtype=torch.int64, device="meta"), TypeError, "meta device"),
    ],
)
def test_what_are_no_row_numbers_is_refused(indices, error, match):
    with pytest.raises(error, match=match):
        Paley(9).rows(indices)


def test_dtype_and_device_are_checked():
    code = Paley(9)
    for dtype in (np.float32, None, "float32", float):
        with pytest.raises(TypeError, match="dtype is .*torch.float32"):
            code.rows([0], dtype=dtype)
    for dtype in (torch.complex64, torch.bool, torch.uint8):
        with pytest.raises(TypeError, match=f"dtype is {dtype}, expected a floating or a signed"):
            code.rows([0], dtype=dtype)
    for indices in (None, [0]):
        with pytest.raises(ValueError, match="device is meta"):
            code.rows(indices, device="meta")


def test_entries_too_large_for_an_integer_dtype_are_refused():
    code = Kerdock(4**7)
    for whole in (code, Part(code, code.num_rows, code.dim + 1)):
        assert int(whole.rows([0], dtype=torch.int8).abs().max()) == 1
        last = whole.num_rows - 1
        with pytest.raises(ValueError, match=f"row {last} has the entry 128.*use torch.int16"):
            whole.rows([0, last], dtype=torch.int8)
        assert int(whole.rows([last], dtype=torch.int16).sum()) == 128


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_rows_do_not_depend_on_the_default_dtype(code, default):
    few = range(min(code.num_rows, 100))
    before = code.rows(few), code.rows(few, dtype=torch.float64)
    torch.set_default_dtype(default)
    try:
        after = code.rows(few), code.rows(few, dtype=torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)
    for x, y in zip(before, after, strict=True):
        assert torch.equal(x, y)


def test_blocks_do_not_show(code, monkeypatch):
    few = range(min(code.num_rows, 300))
    whole = code.rows(few)
    monkeypatch.setattr("rowsep.packing.codes.code.BLOCK_ENTRIES", 7 * code.dim)
    assert torch.equal(code.rows(few), whole)


@pytest.mark.parametrize("q, length, size", [(4, 4, 3), (5, 6, 3), (8, 9, 2), (9, 7, 3), (3, 4, 2)])
def test_codewords_agree_in_fewer_than_k_places(q, length, size):
    code = ReedSolomon(q, length, size)
    symbols = code.symbols(torch.arange(code.num_rows))
    agreements = (symbols[:, None] == symbols).sum(dim=2)
    off = agreements[~torch.eye(len(symbols), dtype=torch.bool)]
    assert int(off.max()) == size - 1
    assert symbols.unique().tolist() == list(range(q))


@pytest.mark.parametrize("q", [5, 7, 9, 25])
def test_chirps_differ_by_gauss_sums_exactly(q):
    """|sum w^k|^2 = q in integers: the exponents' autocorrelation is q more at 0 than elsewhere."""
    code = Phases(q)
    p = code.prime
    rows = code.rows(range(0, 2 * q * q, 2), dtype=torch.float64) * math.sqrt(q)
    angles = torch.atan2(rows[:, q:], rows[:, :q]) * p / (2 * math.pi)
    exponents = angles.round().long() % p
    assert float((angles - angles.round()).abs().max()) < 1e-9
    for first in range(len(rows)):
        difference = (exponents - exponents[first]) % p
        counts = torch.nn.functional.one_hot(difference, p).sum(dim=1)
        turned = torch.stack([counts.roll(m, 1) for m in range(p)])
        correlation = (counts * turned).sum(dim=2)  # (p, rows)
        assert bool((correlation[1:] == correlation[1]).all())
        power = correlation[0] - correlation[1]
        power[first] = 0
        assert set(power.tolist()) <= {0, q}


def test_golden_values_of_spherical_codes():
    """Largest cosines of the tables of Rankin (1955), Cohn and Kumar (J. AMS 20, 2007) and others.

    The Gewirtz and Kerdock values: Cohn, de Laat and Leijenhorst, arXiv:2403.16874.
    """
    graphs = {(c.dim, c.num_rows): c for c in named()}
    published = {(6, 27): 1 / 4, (20, 56): 1 / 15, (22, 100): 1 / 11, (22, 275): 1 / 6}
    for size, cosine in published.items():
        assert graphs[size].cosines[1] == pytest.approx(cosine, abs=1e-12)
    for dim, signed, cosine in [(4, 24, 1 / 2), (16, 288, 1 / 4), (64, 4224, 1 / 8)]:
        code = Kerdock(dim)
        assert 2 * code.num_rows == signed
        assert code.coherence == pytest.approx(cosine, abs=1e-12)
    for dim in (3, 4, 6, 16, 32):
        assert Simplices(dim + 1, dim).cosines[1] == pytest.approx(-1 / dim, abs=1e-12)
        assert Orthoplex(dim).cosines[1] == 0


def test_the_bound_is_attained_by_two_distance_sets():
    """The edge midpoints in R^4 and the Clebsch graph in R^5."""
    for code in (Midpoints(4), named()[0]):
        assert code.rho == pytest.approx(1 / math.sqrt(2), rel=1e-15)
        assert code.bound == pytest.approx(1 / math.sqrt(2), rel=1e-12)


def test_gaussian_rows_depend_on_seed_and_index_only():
    code, other = Gaussian(2000, 30, seed=3), Gaussian(2000, 30, seed=4)
    assert torch.equal(code.rows([1999, 5]), code.rows()[[1999, 5]])
    assert not torch.equal(code.rows([5]), other.rows([5]))
    assert code.evidence == "estimate"
    assert code.measured_rho() == pytest.approx(code.rho, rel=0.1)


@pytest.mark.parametrize("rows", [3, 50, 3000, 3 * 10**6, 10**9, 2**62])
def test_gaussian_estimates_at_any_size(rows):
    """In the plane angles are uniform, in space cosines; more dimensions leave more room."""
    share = 4 / (rows * (rows - 1))
    angle = math.pi / 2 * share
    assert Gaussian(rows, 2).rho == pytest.approx(math.tan(angle / 2), rel=1e-12)
    assert Gaussian(rows, 3).rho == pytest.approx(math.sqrt(share / (2 - share)), rel=1e-12)
    found = [Gaussian(rows, d).rho for d in (2, 3, 4, 10, 100, 1000, 10**5, 10**7)]
    assert found == sorted(found) and 0 < found[0] and found[-1] < 1


def test_gaussian_rows_need_two_dimensions():
    with pytest.raises(ValueError, match="dim is 1, expected at least 2"):
        Gaussian(5, 1)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: Kerdock(32), "power of 4"),
        (lambda: Kerdock(16, 2), "at most 1"),
        (lambda: Gold(16), "odd n"),
        (lambda: Gold(8, 3), "odd n"),
        (lambda: Phases(8), "prime above the degree"),
        (lambda: Phases(15), "prime power"),
        (lambda: Phases(7, 2, 8), "7 elements"),
        (lambda: Phases(7, 2, 3), "no coherence"),
        (lambda: Paley(7), "modulo 4"),
        (lambda: ReedSolomon(6, 3, 2), "prime power"),
        (lambda: ReedSolomon(4, 6, 2), "at most q"),
        (lambda: Simplices(9, 4), "more than two"),
        (lambda: Part(Simplices(4, 3), 5, 3), "num_rows is 5"),
        (lambda: Part(Simplices(4, 3), 4, 2), "dim is 2"),
        (lambda: Simplices(5, 3).coherence, "not a spherical code"),
    ],
)
def test_impossible_members_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()
