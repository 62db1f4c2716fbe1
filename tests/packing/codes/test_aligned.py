"""Turning a code and sharing it out: a rotation, an injection, and never a smaller sum."""

import itertools

import pytest
import torch

from rowsep.packing import cloud
from rowsep.packing.codes import aligned
from rowsep.packing.codes.aligned import align, blend
from rowsep.packing.codes.best import best_code


def momentum(rows, dim, generator):
    """Rows of norms over three decades, centred."""
    A = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    A *= 10 ** (3 * torch.rand(rows, 1, generator=generator, dtype=torch.float64))
    return cloud.centre(A)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rotation_and_injection(dtype, generator):
    A = momentum(60, 12, generator)
    code = best_code(90, 12).rows(dtype=dtype)
    found = align(code, A)
    assert found.rows.dtype == dtype
    identity = torch.eye(12, dtype=dtype)
    torch.testing.assert_close(found.rotation @ found.rotation.T, identity)
    assert len(found.indices.unique()) == 60
    torch.testing.assert_close(found.rows, code[found.indices] @ found.rotation)
    torch.testing.assert_close(torch.pdist(found.rows), torch.pdist(code[found.indices]))
    assert float((A * found.rows).sum()) > float((A * code[:60]).sum())


def test_a_turned_code_is_found_again(generator):
    code = best_code(40, 9).rows(dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(9, 9, generator=generator, dtype=torch.float64))[0]
    weight = 1 + torch.rand(40, 1, generator=generator, dtype=torch.float64)
    found = align(code, weight * code @ turn)
    assert torch.equal(found.indices, torch.arange(40))
    torch.testing.assert_close(found.rotation, turn)


def test_an_assignment_is_the_best_of_all(generator):
    A, code = (torch.randn(5, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    scores = A @ code.T
    best = max(
        float(scores[torch.arange(5), list(order)].sum())
        for order in itertools.permutations(range(5))
    )
    found = float(scores[torch.arange(5), aligned._assign(A, code)].sum())
    assert found == pytest.approx(best, rel=1e-12)


def test_blocks_share_the_code_out_once(generator, monkeypatch):
    A = momentum(50, 8, generator)
    code = best_code(70, 8).rows(dtype=torch.float64)
    monkeypatch.setattr(aligned, "BLOCK_SCORES", 300)
    found = align(code, A)
    assert len(found.indices.unique()) == 50
    heaviest = int(A.norm(dim=1).argmax())
    chosen = aligned._assign(A, code)
    scores = A[heaviest] @ code.T
    monkeypatch.setattr(aligned, "BLOCK_SCORES", 1)
    assert int(aligned._assign(A, code)[heaviest]) == int(scores.argmax())
    assert len(chosen.unique()) == 50


def test_result_does_not_depend_on_the_scale(generator):
    A = momentum(30, 6, generator)
    code = best_code(30, 6).rows(dtype=torch.float64)
    for scale in (2.0**-200, 2.0**200):
        torch.testing.assert_close(align(code, scale * A).rows, align(code, A).rows)
        torch.testing.assert_close(blend(code, scale * A, 0.5), blend(code, A, 0.5))


def test_blend_goes_from_the_code_to_row_normalisation(generator):
    A = momentum(30, 6, generator)
    code = best_code(30, 6).rows(dtype=torch.float64)
    rows = align(code, A).rows
    directions = A / A.norm(dim=1, keepdim=True)
    unit = rows / rows.norm(dim=1, keepdim=True)
    torch.testing.assert_close(blend(unit, A, 0), unit)
    torch.testing.assert_close(blend(unit, A, 1e12), directions, atol=1e-8, rtol=0)
    between = [float((A * blend(unit, A, w)).sum()) for w in (0, 0.1, 0.5, 2, 10, 1e3)]
    assert between == sorted(between)
    # heavy rows are nearer to the momentum
    cosines = (blend(unit, A, 1.0) * directions).sum(dim=1)
    start = (unit * directions).sum(dim=1)
    heavy = A.norm(dim=1).argsort(descending=True)
    assert float((1 - cosines)[heavy[:5]].sum()) < float((1 - start)[heavy[:5]].sum()) / 4


def test_zero_momentum():
    code = best_code(8, 3).rows()
    assert bool(align(code, torch.zeros(8, 3)).rows.isfinite().all())
    unit = code / code.norm(dim=1, keepdim=True)
    torch.testing.assert_close(blend(unit, torch.zeros(8, 3), 2.0), unit)


def test_the_best_turn_is_returned_where_blocks_let_the_sum_fall(generator, monkeypatch):
    """Row by row, greedily: never below the start, never below what fewer turns reach."""
    code = best_code(70, 8).rows(dtype=torch.float64)
    monkeypatch.setattr(aligned, "BLOCK_SCORES", 1)
    assign, fallen = aligned._assign, 0
    for _ in range(20):
        A = momentum(70, 8, generator)
        sums = [float((A * align(code, A, rounds=r).rows).sum()) for r in (1, 2, 3, 8)]
        assert sums == sorted(sums)
        found = align(code, A, rounds=8)
        torch.testing.assert_close(found.rows, code[found.indices] @ found.rotation)
        again = code[assign(A, code @ found.rotation)]
        fallen += float(torch.linalg.svdvals(again.T @ A).sum()) < sums[-1]
    assert fallen, "no case of these puts it to the test"


def test_a_code_in_place_is_not_left_for_a_worse_assignment(generator, monkeypatch):
    """Row by row a heavy row takes what a lighter one needs more: the start has the larger sum."""
    monkeypatch.setattr(aligned, "BLOCK_SCORES", 1)
    worse = 0
    for _ in range(20):
        code = torch.randn(30, 4, generator=generator, dtype=torch.float64)
        A = code + 0.3 * torch.randn(30, 4, generator=generator, dtype=torch.float64)
        U, start, Wt = torch.linalg.svd(code.T @ A)
        found = align(code, A)
        assert float((A * found.rows).sum()) >= float(start.sum()) * (1 - 1e-12)
        first = code[aligned._assign(A, code @ U @ Wt)]
        worse += float(torch.linalg.svdvals(first.T @ A).sum()) < float(start.sum())
    assert worse, "no case of these puts it to the test"


def test_low_precision_momenta_serve_and_codes_do_not(generator):
    A = momentum(9, 3, generator)
    code = best_code(9, 3).rows()
    for dtype in (torch.float16, torch.bfloat16):
        low = (A / A.abs().max()).to(dtype)
        assert torch.equal(align(code, low).rows, align(code, low.float()).rows)
        with pytest.raises(TypeError, match=f"code has dtype {dtype}, expected float32 or float64"):
            align(code.to(dtype), A)


def test_sizes_are_checked(generator):
    A = momentum(9, 3, generator)
    with pytest.raises(ValueError, match=r"A has shape \(0, 3\), expected at least one row"):
        align(torch.ones(9, 3), A[:0])
    with pytest.raises(ValueError, match="at least as many rows"):
        align(torch.ones(8, 3), A)
    with pytest.raises(ValueError, match="at least as many rows"):
        align(torch.ones(9, 4), A)
    with pytest.raises(ValueError, match="rounds is 0"):
        align(torch.ones(9, 3), A, rounds=0)
    with pytest.raises(ValueError, match="weight is -1"):
        blend(A, A, -1)
