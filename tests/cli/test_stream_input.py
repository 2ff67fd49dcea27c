"""``hirank stream`` within this process: bad lines, columns, positions, and what is refused."""

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.streams import NAMES, OPTIONS, csv, small, table

import hirank
from hirank.cli.errors import Failure
from hirank.cli.stream.checkpoint import Output, Positions
from hirank.cli.stream.lines import BadLine, CellFormat, Delimited, JsonLines, split
from hirank.io.dialect import Dialect

pytest.importorskip("typer")
from hirank.cli.stream.command import run


def stream(model: Path, text: str | bytes | Path, **options: object) -> str:
    """Rows of a file, completed."""
    source = text if isinstance(text, Path) else model.with_name("in.csv")
    if not isinstance(text, Path):
        source.write_bytes(text.encode() if isinstance(text, str) else text)
    out = model.with_name("out.csv")
    given = OPTIONS | {"model": model, "source": source, "output": str(out), "restart": True}
    try:
        run(**given | {"force": True} | options)
    finally:
        written = out.read_bytes().decode("utf-8", "surrogateescape") if out.exists() else ""
    return written


BAD = {
    3: (b"r1,1,2,3", "4 cells instead of 6"),
    4: (b"r2,1,2,high,1,x", "column b: 'high' is not a number"),
    5: (b"r3,1,2,\xff,1,x", "not UTF-8 at byte 8"),
    6: (b'r4,1,2,3,1,"x', "a quoted cell does not end"),
    7: (b"r5,1,2,inf,1,x", "column b: 'inf' is not a number"),
    8: (b"r6,1,2,1_0,1,x", "column b: '1_0' is not a number"),
    9: (b"r7,1,2,\x00,1,x", "zero byte"),
}


def lines_with_bad() -> bytes:
    lines = csv(table(6)).encode().splitlines(keepends=True)
    return b"".join(lines[:2] + [line + b"\n" for line, _ in BAD.values()] + lines[2:])


def test_bad_lines_are_told_by_their_number_and_nothing_else_is_lost(model, capfd):
    clean = stream(model, csv(table(6)), frozen=True)
    capfd.readouterr()
    assert stream(model, lines_with_bad(), frozen=True) == clean
    told = capfd.readouterr().err
    for number, (_, reason) in BAD.items():
        assert f"line {number} skipped: " in told
        assert reason in told
    assert "6 rows completed, 7 lines could not be read" in told


def test_bad_lines_can_be_kept_or_end_the_run(model, capfd):
    kept = stream(model, lines_with_bad(), on_error="keep").encode("utf-8", "surrogateescape")
    assert kept.splitlines()[2:9] == [line for line, _ in BAD.values()]
    assert len(kept.splitlines()) == 14

    before = hirank.load(model).n_samples_seen_
    with pytest.raises(Failure, match="line 3: 4 cells instead of 6") as failure:
        stream(model, lines_with_bad(), on_error="stop")
    assert failure.value.code == 3
    assert hirank.load(model).n_samples_seen_ == before + 1
    # Mended, it goes on with the very line.
    source = model.with_name("in.csv")
    text = source.read_bytes().replace(b"r1,1,2,3\n", b"r1,,2,3,1,x\n")
    source.write_bytes(text)
    capfd.readouterr()
    done = stream(model, source, restart=False, force=False)
    assert "6 rows completed, 6 lines could not be read" in capfd.readouterr().err
    ids = [line.split(",")[0] for line in done.splitlines()]
    assert ids == ["id", "r0000", "r1", *(f"r{i:04}" for i in range(1, 6))]


def test_not_one_good_line_is_a_failure(model):
    with pytest.raises(Failure, match="Not one line"):
        stream(model, "id,d,c,b,a,note\n1,2\n3\n")


def test_a_new_model_gives_what_the_library_gives(tmp_path):
    X = table(260)
    path = tmp_path / "new.hirank"
    done = stream(path, csv(X))
    model = hirank.OnlineKFMC(random_state=0)
    expected = np.vstack(
        [model.partial_fit_transform(X[:200, ::-1]), model.transform(X[200:, ::-1])]
    )
    got = [[float(x) for x in line.split(",")[1:5]] for line in done.splitlines()[1:]]
    np.testing.assert_allclose(got[:250], expected[:250], rtol=1e-5, atol=1e-6)
    kept = hirank.load(path)
    assert kept.n_samples_seen_ == 260
    assert list(kept.feature_names_in_) == list("dcba")


def test_all_that_is_missing_is_filled(model):
    lines = "a,b,c,d\n0.5,,NA,-200\n0.25,null,n/a,NaN\n0.5,None, ,-200.0\n"
    done = stream(model, lines, missing=["-200"], frozen=True)
    cells = [line.split(",") for line in done.splitlines()[1:]]
    assert [row[0] for row in cells] == ["0.5", "0.25", "0.5"]
    assert cells[0] == cells[2]
    t = np.array([0.5, 0.25])
    curve = np.column_stack([t**2, t**3, np.cos(3 * t)])
    np.testing.assert_allclose([[float(x) for x in row[1:]] for row in cells[:2]], curve, atol=0.2)


def test_other_dialects_survive(model):
    text = '\ufeff"a";b;c;d\r\n0,50;;0,125;0,07\r\n;"0,04";;0,8\r\n'
    done = stream(model, text, decimal=",", frozen=True)
    lines = done.split("\r\n")
    assert lines[0] == '\ufeff"a";b;c;d'
    assert re.fullmatch(r"0,50;-?0,\d+;0,125;0,07", lines[1])
    assert re.fullmatch(r'-?\d,\d+;"0,04";-?0,\d+;0,8', lines[2])
    assert lines[3:] == [""]
    same = stream(model, "0.5\t\t0.125\t0.07\n", columns="a,b,c,d", frozen=True)
    assert float(same.split("\t")[1]) == float(lines[1].split(";")[1].replace(",", "."))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "empty"),
        ("a,b,c\n1,2,3\n", {}, "Lacking: d. Not in the model: none"),
        ("a,b,c,e\n1,2,3,4\n", {}, "Lacking: d. Not in the model: e"),
        ("a,b,c,d,d\n1,2,3,4,5\n", {}, "must differ; twice or more: 'd'"),
        ("1,2,3,4\n5,6,7,8\n", {}, "give --columns"),
        ("a,b,c,d\n1,2,3,4\n", {"ids": ["x"]}, "--id x"),
        ("a,b,c,d\n1,2,3,4\n", {"form": "xml"}, "--format must be"),
        ("a,b,c,d\n1,2,3,4\n", {"delimiter": ";;"}, "--delimiter"),
        ("a,b,c,d\n1,2,3,4\n", {"follow": True, "source": None}, "needs a FILE"),
        ('{"a": 1}\n', {"columns": "a,b"}, "for CSV"),
        (b"\x1f\x8b\x08\x00", {}, "compressed"),
        (b"a,b,c,\xff\n", {}, "first line can't be read: not UTF-8"),
        ("a,b,c,d\n1,2,3,4\n", {"force": False}, "--force overwrites"),
        ("a,b,c,d\n1,2,3,4\n", {"source": Path("/nowhere.csv")}, "Can't read"),
    ],
)
def test_what_can_not_be_is_refused_in_one_sentence(model, text, options, message):
    model.with_name("out.csv").write_text("something\n")
    with pytest.raises(Failure, match=re.escape(message)):
        stream(model, text, **options)
    if not options.get("force", True):
        assert model.with_name("out.csv").read_text() == "something\n"


def test_no_model_to_freeze_and_text_only(tmp_path):
    path = tmp_path / "none.hirank"
    with pytest.raises(Failure, match="leave out --frozen"):
        stream(path, "a,b\n1,2\n", frozen=True)
    with pytest.raises(Failure, match="No column holds numbers"):
        stream(path, "a,b\nx,y\n")
    assert not path.exists()


def test_a_model_of_a_table_completes_and_learns_nothing(tmp_path, capfd):
    path = tmp_path / "kfmc.hirank"
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(table(60), columns=list(NAMES))
    fitted = hirank.KFMC(10, kernel="rbf", bandwidth=2.0, mix=False, random_state=0).fit(X)
    fitted.save(path)
    kept = path.read_bytes()
    new = table(5, seed=3)
    done = stream(path, csv(new))
    assert "learns nothing" in capfd.readouterr().err
    got = [[float(x) for x in line.split(",")[4:0:-1]] for line in done.splitlines()[1:]]
    expected = fitted.transform(pandas.DataFrame(new, columns=list(NAMES)))
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert path.read_bytes() == kept


def test_a_file_that_was_read_is_not_read_again(model, capfd):
    source = model.with_name("in.csv")
    X = table(30)
    source.write_text(csv(X[:20]))
    once = stream(model, source, restart=False)
    source.write_text(csv(X))  # ten rows more
    more = stream(model, source, restart=False, force=False)
    assert more.startswith(once)
    assert "10 rows completed" in capfd.readouterr().err
    assert hirank.load(model).n_samples_seen_ == 80
    assert stream(model, source, restart=False, force=False) == more
    model.with_name("out.csv").write_text("changed by somebody\n" * 100)
    with pytest.raises(Failure, match="was changed since the last run"):
        stream(model, source, restart=False, force=False)
    model.with_name("out.csv").unlink()
    source.write_text(csv(table(30, seed=5)))
    stream(model, source, restart=False, force=False)
    assert "is not what was read before" in capfd.readouterr().err


def test_a_crash_between_position_and_model_is_no_matter(tmp_path, monkeypatch):
    path = tmp_path / "model.hirank"
    model = small().partial_fit(table(50))
    model.save(path)
    place = {"rows": 1, "header": None, "input": None, "output": None}
    Positions(path).save(place, model)
    positions = Positions(path)
    model.partial_fit(table(20))
    replace = os.replace

    def crash(old: Path, new: Path) -> None:
        if Path(new) == path and ".model.hirank.next" in str(old):
            raise OSError(28, "No space left on device")
        replace(old, new)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="No space"):
        positions.save(place | {"rows": 21}, model)
    monkeypatch.undo()
    left = tmp_path / "..model.hirank.next.0123abcd.tmp"
    left.touch()
    again = Positions(path)
    assert not left.exists()
    assert again.last()["rows"] == 1
    assert hirank.load(path).n_samples_seen_ == 50
    again.save(place | {"rows": 21}, model)
    assert Positions(path).last()["rows"] == 21
    small().partial_fit(table(45)).save(path)  # another model
    assert Positions(path).last() is None
    for damage in ("", "{}", '{"format": 1, "saves": [{}]}', '{"format": 2}'):
        again.path.write_text(damage)
        with pytest.raises(Failure, match=r"damaged|update hirank"):
            Positions(path)


@pytest.mark.parametrize("cut", [True, False])
def test_an_output_goes_on_where_the_input_does(tmp_path, cut):
    path = tmp_path / "out.csv"
    first = Output(str(path))
    first.open(None, cut=cut, force=False)
    first.write(b"one\ntwo\n")
    place = first.place()
    first.write(b"three\nfo")  # and killed
    again = Output(str(path))
    assert again.open(place, cut=cut, force=False)
    again.write(b"next\n")
    # A file is read again from the place; of a pipe, rows that are out are all there is.
    rest = b"" if cut else b"three\n"
    assert path.read_bytes() == b"one\ntwo\n" + rest + b"next\n"
    for output in (first, again):
        os.close(output.fd)


def test_a_line_without_end_does_not_fill_the_memory(model, monkeypatch, capfd):
    monkeypatch.setattr("hirank.cli.stream.sources.LONGEST", 1 << 16)
    good = csv(table(3)).splitlines(keepends=True)
    done = stream(model, good[0] + "x" * 300_000 + "\n" + "".join(good[1:]), frozen=True)
    assert len(done.splitlines()) == 4
    assert "line 2 skipped: longer than" in capfd.readouterr().err


def test_cells():
    assert split('"a, ""b""",c,,"d"', Dialect()) == ['"a, ""b"""', "c", "", '"d"']
    assert split('5" pipe,x', Dialect()) == ['5" pipe', "x"]
    for bad in ('"a', '"a""'):
        with pytest.raises(BadLine):
            split(bad, Dialect())
    cells = CellFormat(["-200"], digits=None)
    assert math.isnan(cells.number("-2e2"))
    texts = [cells.text(x) for x in (0.1, 3.0, -0.0, 1e-60, 1e300, 123456.789)]
    assert texts == ["0.1", "3.0", "-0.0", "1e-60", "1e+300", "123456.79"]
    assert CellFormat(digits=3).text(0.123456) == "0.123"
    assert CellFormat(decimal=",").text(0.25) == "0,25"


def test_lines_of_json_are_read_as_json_reads_them():
    layout = JsonLines(("a", "ü\n"), CellFormat())
    row = layout.parse(' { "a" : 1 , "x" : {"a": [2, "}"]} } ')
    done = layout.render(row, [9.0, 2.5])
    assert json.loads(done) == {"a": 1, "x": {"a": [2, "}"]}, "ü\n": 2.5}
    assert json.loads(layout.render(layout.parse("{}"), [1.5, 2.5])) == {"a": 1.5, "ü\n": 2.5}
    bad = ('{"a": 1,}', '{"a" 1}', "{,}", '{"a": 1', '{"a": 1, "a": 2}', "null", '{"a": true}')
    for text in (*bad, '{"a": 1e999}', '{"a": ' + "9" * 400 + "}", '{"a": ' + "[" * 100_000):
        with pytest.raises(BadLine):
            layout.parse(text)


def test_delimited_lines_change_in_missing_cells_only():
    layout = Delimited(("x", "y"), ("y", "x"), Dialect(delimiter=";"), CellFormat())
    row = layout.parse(' 1.0 ;" NA"')
    assert layout.render(row, [math.nan, 7.0]) == ' 1.0 ;" NA"'
    assert layout.render(row, [2.0, 7.0]) == ' 1.0 ;"2.0"'
