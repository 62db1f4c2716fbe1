"""Bad arguments are refused with the offending value and a remedy, wherever they enter."""

import numpy as np
import pytest
import torch

from rowsep.packing import bounds, checks, cloud

ROWS = torch.arange(12.0).reshape(4, 3)


def with_entry(value, index=(2, 1)):
    """`ROWS` with one entry replaced."""
    rows = ROWS.clone()
    rows[index] = value
    return rows


BAD_CLOUDS = [
    (np.ones((4, 3)), TypeError, "ndarray.*torch.as_tensor"),
    ([[1.0, 2.0]], TypeError, "list"),
    (torch.ones(4, 3, dtype=torch.int64), TypeError, r"torch.int64.*\.to\(torch.float32\)"),
    (torch.ones(4, 3, dtype=torch.complex64), TypeError, "torch.complex64"),
    (torch.ones(4, 3, dtype=torch.bool), TypeError, "torch.bool"),
    (ROWS.to_sparse(), TypeError, "torch.sparse_coo.*to_dense"),
    (ROWS.to("meta"), TypeError, "meta device"),
    (torch.ones(4), ValueError, r"\(4,\).*2-D"),
    (torch.ones(2, 4, 3), ValueError, r"\(2, 4, 3\).*2-D"),
    (torch.ones(4, 0), ValueError, r"\(4, 0\).*at least one dimension"),
    (with_entry(float("nan")), ValueError, r"1 of 12 entries.*first nan at index \(2, 1\)"),
    (with_entry(float("-inf")), ValueError, r"1 of 12 entries.*first -inf at index \(2, 1\)"),
    (torch.full((4, 3), float("inf")), ValueError, r"12 of 12 entries.*index \(0, 0\)"),
]
ONE_CLOUD = [
    cloud.centre,
    cloud.ratio,
    cloud.diameter,
    cloud.separation,
    lambda S: cloud.alignment(S, ROWS),
    lambda S: cloud.alignment(ROWS, S),
    lambda S: cloud.alignment(ROWS, S, diameter=1.0),
    lambda S: cloud.cosine(S, ROWS),
    lambda S: cloud.cosine(ROWS, S),
    lambda S: cloud.gain_diameter(S, torch.ones(3)),
    lambda S: cloud.worst_hidden_state(S, 1.0),
    bounds.steepest_lower_bound,
    bounds.steepest_upper_bound,
    bounds.max_alignment_bounds,
]


@pytest.mark.parametrize(("bad", "error", "message"), BAD_CLOUDS)
@pytest.mark.parametrize("function", [checks.check_cloud, *ONE_CLOUD])
def test_a_bad_cloud_is_refused(function, bad, error, message):
    with pytest.raises(error, match=message):
        function(bad)


BAD_MASKS = [
    ([True] * 4, TypeError, "list.*mask"),
    (torch.ones(4), TypeError, "torch.float32.*torch.bool"),
    (torch.tensor([0, 2]), TypeError, "torch.int64"),
    (torch.ones(3, dtype=torch.bool), ValueError, r"\(3,\), expected \(4,\)"),
    (torch.ones(4, 1, dtype=torch.bool), ValueError, r"\(4, 1\), expected \(4,\)"),
    (torch.ones(4, dtype=torch.bool, device="meta"), ValueError, "meta.*cpu"),
]


@pytest.mark.parametrize(("mask", "error", "message"), BAD_MASKS)
@pytest.mark.parametrize(
    "function",
    [
        cloud.centre,
        cloud.ratio,
        cloud.diameter,
        cloud.separation,
        lambda S, mask: cloud.alignment(S, S, mask),
        lambda S, mask: cloud.cosine(S, S, mask),
        lambda S, mask: cloud.gain_diameter(S, torch.ones(3), mask),
        lambda S, mask: cloud.worst_hidden_state(S, 1.0, mask=mask),
        lambda S, mask: bounds.steepest_lower_bound(S, mask=mask),
        lambda S, mask: bounds.steepest_upper_bound(S, mask=mask),
        bounds.max_alignment_bounds,
    ],
)
def test_a_bad_mask_is_refused(function, mask, error, message):
    with pytest.raises(error, match=message):
        function(ROWS, mask)


@pytest.mark.parametrize("function", [cloud.alignment, cloud.cosine])
def test_two_clouds_must_have_one_shape(function):
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(3, 4\).*transposed"):
        function(ROWS, ROWS.T)


def test_two_clouds_must_be_on_one_device():
    with pytest.raises(ValueError, match="A is on cpu, S on meta"):
        checks.check_same_shape(ROWS, ROWS.to("meta"))


@pytest.mark.parametrize(
    ("gain", "error", "message"),
    [
        (torch.ones(4), ValueError, r"\(4,\), expected \(3,\)"),
        (torch.ones(3, 1), ValueError, r"\(3, 1\), expected \(3,\)"),
        (2.0, TypeError, "float"),
        (torch.ones(3, dtype=torch.int32), TypeError, "torch.int32"),
        (torch.tensor([1.0, float("nan"), 1.0]), ValueError, r"gain has 1 of 3.*\(1,\)"),
        (torch.ones(3, device="meta"), ValueError, "meta"),
    ],
)
def test_a_bad_gain_is_refused(gain, error, message):
    with pytest.raises(error, match=message):
        cloud.worst_hidden_state(ROWS, 1.0, gain=gain)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-1.0, ValueError, "-1.0"),
        (float("nan"), ValueError, "nan"),
        (float("inf"), ValueError, "inf"),
        ("wide", TypeError, "'wide'"),
        (True, TypeError, "True"),
        (None, TypeError, "None"),
        (torch.ones(2), TypeError, "tensor"),
    ],
)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("radius", lambda x: cloud.worst_hidden_state(ROWS, x)),
        ("diameter", lambda x: bounds.steepest_lower_bound(ROWS, x)),
        ("diameter", lambda x: bounds.steepest_upper_bound(ROWS, x)),
        ("size", lambda x: checks.check_size(x, "size")),
    ],
)
def test_a_bad_size_is_refused(name, function, value, error, message):
    with pytest.raises(error, match=f"{name} is .*{message}"):
        function(value)


@pytest.mark.parametrize(
    ("num_rows", "dim", "error", "message"),
    [
        (10, 0, ValueError, "dim is 0, expected at least 1"),
        (-1, 3, ValueError, "num_rows is -1, expected at least 0"),
        (10.0, 3, TypeError, r"num_rows is 10.0 \(float\)"),
        (10, "3", TypeError, r"dim is '3' \(str\)"),
        (True, 3, TypeError, "True"),
    ],
)
@pytest.mark.parametrize(
    "function", [bounds.rho_upper_bound, bounds.closed_form_bound, bounds.volume_bound]
)
def test_a_bad_count_is_refused(function, num_rows, dim, error, message):
    with pytest.raises(error, match=message):
        function(num_rows, dim)


@pytest.mark.parametrize("dtype", checks.DTYPES)
def test_good_arguments_pass(dtype):
    rows = ROWS.to(dtype)
    checks.check_cloud(rows)
    checks.check_cloud(rows[:0])
    checks.check_cloud(rows.requires_grad_())
    checks.check_mask(None, rows)
    checks.check_mask(torch.zeros(4, dtype=torch.bool), rows)
    checks.check_gain(torch.ones(3, dtype=torch.float64), rows)
    for count in (3, np.int64(3), np.uint8(3), torch.tensor(3)):
        assert type(checks.check_count(count, "count", 3, 3)) is int
    for size in (0, 0.0, np.float32(0.0), torch.tensor(0.0)):
        assert type(checks.check_size(size, "size")) is float


def test_a_count_above_the_most_is_refused():
    with pytest.raises(ValueError, match="count is 4, expected at most 3"):
        checks.check_count(4, "count", 0, 3)


def test_a_row_left_out_must_be_finite_too():
    mask = torch.tensor([True, True, False, True])
    with pytest.raises(ValueError, match="nan"):
        cloud.ratio(with_entry(float("nan")), mask)
