"""From the rows of a solver to an update of exact figures, and equal rows parted."""

import math

import pytest
import torch

from rowsep.packing import cloud
from rowsep.packing.bounds.certify import certify
from rowsep.packing.solvers.ties import part_ties
from tests.packing.clouds import DTYPES, gaussian


@pytest.fixture
def A(generator):
    """A momentum of forty rows in eight dimensions."""
    return gaussian(40, 8, generator)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_certify_stays_within_the_diameter(dtype, generator):
    rows = gaussian(50, 8, generator)
    M = gaussian(50, 8, generator, dtype)
    info = torch.finfo(dtype)
    for diameter in (1.0, 1 / 3, 1e3 * math.pi, info.tiny * 2e3, info.max / 5):
        made = certify(rows, M, None, diameter)
        update = made.update(M, None)
        assert made.exact.diameter <= diameter
        assert made.exact.diameter >= diameter * (1 - max(2 * info.eps, 1e-6))
        assert made.exact == _extremes(update)
        assert update.dtype == dtype
        assert made.rows is rows and made.rows_diameter == cloud.diameter(rows).value


def _extremes(S):
    found = cloud.ratio(S)
    return (found.delta, found.diameter, found.closest, found.farthest)


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_certify_takes_rows_of_any_scale(factor, generator):
    """No product on the way to the largest diameter may overflow."""
    rows = factor * gaussian(20, 4, generator, torch.float64)
    M = gaussian(20, 4, generator, torch.float64)
    for diameter in (2.0**-990, 1.0, 2.0**1021):
        made = certify(rows, M, None, diameter)
        assert diameter * (1 - 1e-6) <= made.exact.diameter <= diameter


def test_certify_centres_and_leaves_masked_rows_at_zero(generator):
    M = gaussian(50, 8, generator, torch.float64)
    mask = torch.arange(50) % 3 > 0
    rows = gaussian(int(mask.sum()), 8, generator, torch.float64) + 5
    made = certify(rows, M, mask, 1.0)
    update = made.update(M, mask)
    assert not update[~mask].any()
    assert float(update[mask].mean(dim=0).abs().max()) < 1e-15
    expected = (rows - rows.mean(dim=0)) / made.rows_diameter
    torch.testing.assert_close(update[mask], expected, rtol=0, atol=1e-6)
    assert made.exact.diameter == cloud.diameter(update, mask).value
    assert made.alignment == cloud.alignment(M, update, mask)


def test_certify_of_equal_rows_is_zero(generator):
    M = gaussian(5, 3, generator)
    made = certify(torch.ones(5, 3), M, None, 1.0)
    assert not made.update(M, None).any() and made.rho == 0.0 and made.alignment == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ties_are_parted_and_the_first_stays(dtype, generator):
    rows = gaussian(30, 5, generator, dtype)
    rows[[7, 12, 20]] = rows[3].clone()
    rows[25] = 0.0
    rows[28] = -0.0
    kept = rows.clone()
    parted = part_ties(rows, 0)
    assert torch.equal(rows, kept)
    moved = (parted != rows).any(dim=1)
    assert moved.nonzero()[:, 0].tolist() == [7, 12, 20, 25, 28]
    assert float(torch.nn.functional.pdist(parted).min()) > 0
    noise = (parted - rows)[moved].norm(dim=1) / rows.norm(dim=1).max()
    assert 0.01 < float(noise.min()) and float(noise.max()) < 0.3
    assert torch.equal(parted, part_ties(rows, 0))
    assert not torch.equal(parted, part_ties(rows, 1))


def test_distinct_rows_are_left_alone(generator):
    rows = gaussian(3000, 4, generator)
    assert part_ties(rows, 0) is rows
    close = rows.clone()
    close[1] = close[0]
    close[1, 2] = torch.nextafter(close[0, 2], torch.tensor(math.inf))
    assert part_ties(close, 0) is close


def test_ties_far_apart_are_found(generator):
    """Rows are hashed in blocks of 4096."""
    rows = gaussian(9000, 3, generator)
    rows[8999] = rows[0]
    assert (part_ties(rows, 0) != rows).any(dim=1).nonzero()[:, 0].tolist() == [8999]
