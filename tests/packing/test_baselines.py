"""The baselines are their formulas, computed another way."""

import pytest
import torch

from rowsep.packing import baselines

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
ALL = [
    baselines.row_norm,
    baselines.polar,
    baselines.polar_then_row,
    baselines.row_then_polar,
]
EXACT = {"atol": 1e-12, "rtol": 0.0}


def centred(num_rows, dim, seed=0):
    """Return a centred matrix whose rows and columns differ in size by some decades."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    matrix *= torch.logspace(0, 1, num_rows, dtype=torch.float64)[:, None]
    matrix *= torch.logspace(0, -3, dim, dtype=torch.float64)
    return matrix - matrix.mean(dim=0)


def unit_rows(A):
    return A / A.norm(dim=1, keepdim=True)


def polar_by_svd(A, rank):
    U, _, Vh = torch.linalg.svd(A, full_matrices=False)
    return U[:, :rank] @ Vh[:rank]


def test_row_norm_is_unit_rows_centred():
    A = centred(20, 5)
    expected = unit_rows(A) - unit_rows(A).mean(dim=0)
    torch.testing.assert_close(baselines.row_norm(A), expected, **EXACT)


@pytest.mark.parametrize("shape", [(20, 5), (5, 5), (4, 20)], ids=str)
def test_polar_is_that_of_the_svd(shape):
    A = centred(*shape)
    rank = min(shape[0] - 1, shape[1])
    expected = polar_by_svd(A, rank)
    torch.testing.assert_close(baselines.polar(A), expected, atol=1e-9, rtol=0.0)


def test_polar_leaves_null_directions_out():
    A = centred(20, 5)
    A[:, 3] = A[:, 0] - 2 * A[:, 1]
    A[:, 4] = 0.0
    values = torch.linalg.svdvals(baselines.polar(A))
    expected = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(values, expected, atol=1e-9, rtol=0.0)


def test_polar_then_row_and_row_then_polar():
    A = centred(30, 6)
    rows = unit_rows(polar_by_svd(A, 6))
    torch.testing.assert_close(
        baselines.polar_then_row(A), rows - rows.mean(dim=0), atol=1e-8, rtol=0.0
    )
    expected = polar_by_svd(baselines.row_norm(A), 6)
    torch.testing.assert_close(baselines.row_then_polar(A), expected, atol=1e-9, rtol=0.0)


@pytest.mark.parametrize("baseline", ALL, ids=lambda one: one.__name__)
class TestEach:
    def test_output_is_centred(self, baseline):
        S = baseline(centred(40, 6))
        assert S.mean(dim=0).abs().max() < 1e-12

    def test_zero_gives_zero(self, baseline):
        assert torch.equal(baseline(torch.zeros(4, 3)), torch.zeros(4, 3))

    @pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e150])
    def test_scale_does_not_matter(self, baseline, scale):
        A = centred(20, 5)
        torch.testing.assert_close(baseline(scale * A), baseline(A), atol=1e-9, rtol=0.0)

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_dtype_and_input_are_kept(self, baseline, dtype):
        A = centred(20, 5).to(dtype)
        before = A.clone()
        S = baseline(A)
        assert S.dtype == dtype
        assert S.shape == A.shape
        assert torch.equal(A, before)
        torch.testing.assert_close(S, baseline(A.double()).to(dtype), atol=0.0, rtol=0.0)

    def test_equal_rows_stay_equal(self, baseline):
        A = centred(20, 5)
        A[7] = A[3]
        S = baseline(A - A.mean(dim=0))
        torch.testing.assert_close(S[7], S[3], **EXACT)

    def test_rotation_turns_the_result(self, baseline):
        A = centred(20, 5)
        generator = torch.Generator().manual_seed(1)
        turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64))
        torch.testing.assert_close(baseline(A @ turn), baseline(A) @ turn, atol=1e-8, rtol=0.0)


def test_zero_rows_stay_zero():
    A = centred(20, 5)
    A[:2] = 0.0
    A[2:] -= A[2:].mean(dim=0)
    assert (baselines.polar(A)[:2] == 0).all()
    S = baselines.row_norm(A)
    mean = unit_rows(A[2:]).sum(dim=0) / 20
    torch.testing.assert_close(S[:2], -mean.expand(2, 5), **EXACT)


def test_quality_of_a_simplex():
    S = torch.eye(4, dtype=torch.float64) - 0.25
    found = baselines.quality(S, S)
    assert found.rho == pytest.approx(1.0)
    assert found.cosine == pytest.approx(1.0)
    # ||a_i||^2 = 3/4, D = sqrt 2: <S,S> / (D sqrt(4/10) 4 sqrt(3/4))
    assert found.alignment == pytest.approx(3 / (2**0.5 * 0.4**0.5 * 4 * 0.75**0.5))
