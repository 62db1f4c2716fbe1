"""Published spherical codes: those found, those that a family is, and the search resumed."""

import pytest
import torch

from experiments.spherical_codes import families, run, show
from experiments.spherical_codes.published import REACHED, published
from rowsep.packing.bounds.codes import levenshtein_cosine, rankin_cosine
from rowsep.packing.codes.binary.signs import Kerdock
from rowsep.packing.exact.log import Key, SearchLog

CLAIMED = [one for one in published() if families.family(one.points, one.dim)]
SMALL = [one for one in published() if one.dim <= run.DIM and one.points <= run.POINTS]


def size(case):
    return f"{case.points}-{case.dim}"


@pytest.mark.parametrize("case", [one for one in CLAIMED if one.points < 100_000], ids=size)
def test_a_family_meets_the_published_cosine(case):
    code = families.family(case.points, case.dim)
    assert code.dim == case.dim and case.points in (code.num_rows, 2 * code.num_rows)
    assert families.largest_cosine(code, case.points) == pytest.approx(case.max_cosine, abs=1e-12)


def test_which_entries_a_family_claims():
    """All of Rankin, and these; test_kerdock.py has every pair of bases up to R^1024."""
    others = {(one.points, one.dim) for one in CLAIMED if one.points > 2 * one.dim}
    kerdock = {(24, 4), (288, 16), (4224, 64), (66048, 256), (1050624, 1024)}
    assert others == kerdock | {(120, 4), (240, 8), (27, 6), (56, 20), (100, 22), (275, 22)}
    assert {(one.points, one.dim) for one in published() if one.points <= 2 * one.dim} <= {
        (one.points, one.dim) for one in CLAIMED
    }
    large = families.family(1050624, 1024)
    assert isinstance(large, Kerdock) and large.coherence == 1 / 32


def test_published_values_respect_the_bounds():
    assert len({one[:2] for one in published()}) == len(published())
    for one in published():
        assert one.status in ("proved", "best known") and one.source
        assert one.max_cosine >= rankin_cosine(one.points, one.dim) - 1e-12
        assert one.max_cosine >= levenshtein_cosine(one.points, one.dim) - 1e-12


@pytest.mark.parametrize("case", SMALL, ids=size)
def test_the_codes_in_the_log_reach_the_published_cosine(case):
    """Measured from the vectors themselves."""
    found = SearchLog(run.FOLDER / "searches.jsonl").found(
        Key(case.points, case.dim, 0, problem="sphere")
    )
    rows = torch.from_numpy(found.points)
    rows = rows / rows.norm(dim=1, keepdim=True)
    cosine = float((rows @ rows.T).fill_diagonal_(-1.0).max())
    assert cosine <= case.max_cosine + REACHED
    if case.status == "proved":
        assert cosine >= case.max_cosine - REACHED
    row = run.read(run.FOLDER / "codes.csv")[case[:2]]
    assert float(row["max_cosine"]) == pytest.approx(cosine, abs=1e-9)
    assert int(row["starts"]) == found.starts and int(row["agreeing"]) == found.basins[0].starts
    assert float(row["residual"]) < 1e-30


def test_a_second_run_adds_nothing(tmp_path, monkeypatch):
    run.main(starts=64, most=64, only=[4], points=5, folder=tmp_path)
    results, log = tmp_path / "codes.csv", tmp_path / "searches.jsonl"
    before = results.read_text(), log.read_text()
    assert [row["max_cosine"] for row in run.read(results).values()] == ["-0.250000000000000"]
    monkeypatch.setattr(run, "spherical_code", None)
    run.main(starts=64, most=64, only=[4], points=5, folder=tmp_path)
    assert (results.read_text(), log.read_text()) == before


def test_what_is_not_reached_is_sought_longer_and_named(tmp_path, monkeypatch, capsys):
    case = published()[0]._replace(max_cosine=-0.4)
    monkeypatch.setattr(run, "published", lambda: [case])
    run.main(starts=64, most=128, folder=tmp_path)
    assert run.read(tmp_path / "codes.csv")[case[:2]]["starts"] == "128"
    assert "4 points in R^3: the published code was not reached" in capsys.readouterr().out


def test_every_code_is_shown(capsys):
    show.main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(SMALL)
