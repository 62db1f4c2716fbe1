"""`rowsep table`, `configuration` and `certify`."""

import csv
import json
from fractions import Fraction

import pytest

from rowsep.packing.point_sets.configuration import from_certificate


def test_table_as_json(rowsep):
    code, out, err = rowsep("table", "--dim", 2, "--json")
    assert code == 0 and err == ""
    rows = json.loads(out)
    assert {"n", "ratio_squared", "status", "credit", "source"} <= set(rows[0])
    by_n = {row["n"]: row for row in rows}
    assert by_n[7]["status"] == "proved"
    assert Fraction(by_n[16]["ratio_squared"]) < Fraction("12.88926611203")


def test_table_as_text(rowsep):
    code, out, _ = rowsep("table")
    assert code == 0
    assert "squared ratio" in out and "12.8892299" in out and "Cantrell" in out
    assert "are cut off" in out.splitlines()[-1]


def test_configuration_as_text(rowsep):
    code, out, err = rowsep("configuration", 16, 2)
    assert code == 0 and err == ""
    assert "12.88922990769400" in out and "below the bound" in out
    assert len([line for line in out.splitlines() if line.lstrip(" -").startswith("0.")]) == 16


def test_optimal_is_said(rowsep):
    assert "this is optimal" in rowsep("configuration", 10, 4)[1]


def test_json_is_a_certificate(rowsep):
    out = rowsep("configuration", 14, 3, "--json")[1]
    told = json.loads(out)
    assert told["rho"] < told["bound"] and told["gap"] > 0 and not told["optimal"]
    assert float(from_certificate(told).ratio_squared) == pytest.approx(4.1657834745800)
    with open("c.json", "w") as file:
        file.write(out)
    code, out, err = rowsep("certify", "c.json")
    assert code == 0 and err == ""
    assert out.startswith("proved: 14 points in R^3") and told["ratio_squared"] in out


def test_csv_is_exact(rowsep):
    rows = list(csv.reader(rowsep("configuration", 5, 2, "--csv")[1].splitlines()))
    assert rows[0] == ["x1", "x2"] and len(rows) == 6
    points = [[Fraction(c) for c in row] for row in rows[1:]]
    squares = [
        sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
        for k, p in enumerate(points)
        for q in points[:k]
    ]
    certificate = json.loads(rowsep("configuration", 5, 2, "--json")[1])
    assert max(squares) / min(squares) == from_certificate(certificate).ratio_squared


@pytest.mark.parametrize(("n", "d", "name"), [(7, 2, "a.png"), (5, 3, "b.svg")])
def test_picture(rowsep, folder, n, d, name):
    code, _, err = rowsep("configuration", n, d, "--figure", name)
    assert code == 0 and err == f"wrote {name}\n"
    assert (folder / name).stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("table", "--dim", 40), "no entry in this dimension, only in 2 to "),
        (("configuration", 99, 2), "rowsep.packing.minimal_diameter(99, 2) finds one"),
        (("configuration", 1000, 2), "rowsep.packing.codes.best_code(1000, 2) finds one"),
        (("configuration", 7, 2, "--figure", "a" * 300 + ".png"), "File name too long"),
        (("configuration", 400, 5), "rowsep.packing.codes.best_code(400, 5) finds one"),
        (("configuration", 1, 2), "num_points is 1"),
        (("configuration", 7, 2, "--json", "--csv"), "exclude each other"),
        (("configuration", 7, 2, "--figure", "a.txt"), "suffix"),
        (("configuration", 7, 2, "--figure", "no/a.png"), "no such folder"),
        (("configuration", 10, 4, "--figure", "a.png"), "cannot be drawn"),
        (("configuration", 7, 2, "--figure", "there.png"), "--force"),
        (("certify", "missing.json"), "cannot be read"),
        (("certify", "there.png"), "is not JSON"),
        (("certify", "list.json"), "proves nothing"),
        (("certify", "deep.json"), "is not JSON"),
    ],
)
def test_refusals_are_one_line(rowsep, folder, arguments, says):
    (folder / "there.png").write_text("not a picture")
    (folder / "list.json").write_text("[]")
    (folder / "deep.json").write_text("[" * 100_000)
    code, out, err = rowsep(*arguments)
    assert code == 2 and out == ""
    assert err.startswith("rowsep: ") and err.count("\n") == 1 and says in err


def test_a_tampered_certificate_is_refused(rowsep, folder):
    told = json.loads(rowsep("configuration", 6, 2, "--json")[1])
    told["coordinates"][0][0] += 10**9
    (folder / "c.json").write_text(json.dumps(told))
    code, out, err = rowsep("certify", "c.json")
    assert code == 2 and out == "" and "exceeds" in err
