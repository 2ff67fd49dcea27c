"""``hirank stream`` in this process: bad lines, columns, positions, and errors."""

import json
import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.estimators import fast_kfmc
from helpers.streams import NAMES, csv, small, table

import hirank
from hirank.cli.stream.checkpoint import Checkpoint, Output, Position
from hirank.exceptions import (
    FileError,
    InputError,
    ModelFileError,
    OutputError,
    OutputExistsError,
    ParameterError,
)

pytest.importorskip("typer")
from hirank.cli.app import Stream
from hirank.cli.options import Decimal, OnError
from hirank.cli.reporter import Reporter
from hirank.cli.stream import run


def stream(model: Path, text: str | bytes | Path, **options: object) -> str:
    """Return the rows of a file, imputed."""
    source = text if isinstance(text, Path) else model.with_name("in.csv")
    if not isinstance(text, Path):
        source.write_bytes(text.encode() if isinstance(text, str) else text)
    out = model.with_name("out.csv")
    given = {"source": source, "output": str(out), "restart": True, "force": True} | options
    run(Stream(model=model, **given), Reporter())
    return out.read_bytes().decode("utf-8", "surrogateescape")


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


def test_bad_lines_are_reported_by_their_number_and_nothing_else_is_lost(model, capfd):
    clean = stream(model, csv(table(6)), frozen=True)
    capfd.readouterr()
    assert stream(model, lines_with_bad(), frozen=True) == clean
    printed = capfd.readouterr().err
    for number, (_, reason) in BAD.items():
        assert f"line {number} skipped: " in printed
        assert reason in printed
    assert "Imputed 6 rows, 7 lines could not be read" in printed


def test_bad_lines_can_be_kept_or_end_the_run(model, capfd):
    kept = stream(model, lines_with_bad(), on_error=OnError.KEEP).encode("utf-8", "surrogateescape")
    assert kept.splitlines()[2:9] == [line for line, _ in BAD.values()]
    assert len(kept.splitlines()) == 14

    before = hirank.load(model).n_samples_seen_
    with pytest.raises(InputError, match="Line 3: 4 cells instead of 6"):
        stream(model, lines_with_bad(), on_error=OnError.STOP)
    assert hirank.load(model).n_samples_seen_ == before + 1
    # Corrected, it continues with this line.
    source = model.with_name("in.csv")
    text = source.read_bytes().replace(b"r1,1,2,3\n", b"r1,,2,3,1,x\n")
    source.write_bytes(text)
    capfd.readouterr()
    done = stream(model, source, restart=False, force=False)
    assert "Imputed 6 rows, 6 lines could not be read" in capfd.readouterr().err
    ids = [line.split(",")[0] for line in done.splitlines()]
    assert ids == ["id", "r0000", "r1", *(f"r{i:04}" for i in range(1, 6))]


def test_an_input_without_rows_is_an_error(model):
    with pytest.raises(InputError, match="No line could be read"):
        stream(model, "id,d,c,b,a,note\n1,2\n3\n")


def test_a_new_model_gives_what_the_library_gives(tmp_path):
    X = table(260)
    path = tmp_path / "new.hirank"
    done = stream(path, csv(X))
    model = hirank.OnlineImputer(random_state=0)
    expected = np.vstack(
        [model.partial_fit_transform(X[:200, ::-1]), model.transform(X[200:, ::-1])]
    )
    got = [[float(x) for x in line.split(",")[1:5]] for line in done.splitlines()[1:]]
    np.testing.assert_allclose(got[:250], expected[:250], rtol=1e-5, atol=1e-6)
    saved = hirank.load(path)
    assert saved.n_samples_seen_ == 260
    assert list(saved.feature_names_in_) == list("dcba")


def test_all_markers_of_missing_values_are_imputed(model):
    lines = "a,b,c,d\n0.5,,NA,-200\n0.25,null,n/a,NaN\n0.5,None, ,-200.0\n"
    done = stream(model, lines, missing=["-200"], frozen=True)
    cells = [line.split(",") for line in done.splitlines()[1:]]
    assert [row[0] for row in cells] == ["0.5", "0.25", "0.5"]
    assert cells[0] == cells[2]
    t = np.array([0.5, 0.25])
    curve = np.column_stack([t**2, t**3, np.cos(3 * t)])
    np.testing.assert_allclose([[float(x) for x in row[1:]] for row in cells[:2]], curve, atol=0.2)


def test_other_dialects_are_kept(model):
    text = '\ufeff"a";b;c;d\r\n0,50;;0,125;0,07\r\n;"0,04";;0,8\r\n'
    done = stream(model, text, decimal=Decimal.COMMA, frozen=True)
    lines = done.split("\r\n")
    assert lines[0] == '\ufeff"a";b;c;d'
    assert re.fullmatch(r"0,50;-?0,\d+;0,125;0,07", lines[1])
    assert re.fullmatch(r'-?\d,\d+;"0,04";-?0,\d+;0,8', lines[2])
    assert lines[3:] == [""]
    same = stream(model, "0.5\t\t0.125\t0.07\n", columns="a,b,c,d", frozen=True)
    assert float(same.split("\t")[1]) == float(lines[1].split(";")[1].replace(",", "."))


@pytest.mark.parametrize(
    ("text", "options", "kind", "message"),
    [
        ("", {}, InputError, "The input is empty"),
        ("x,y\n1,2\n", {}, InputError, "None of the columns of the model is in the input"),
        ('{"x": 1}\n', {}, InputError, "Columns of the model: a, b, c, d. Columns of the input: x"),
        ("a,b,c,d,d\n1,2,3,4,5\n", {}, InputError, "Several columns are named 'd'"),
        ("1,2,3,4\n5,6,7,8\n", {}, InputError, "Pass --columns"),
        ("a,b,c,d\n1,2,3,4\n", {"ids": ["x"]}, ParameterError, "ids names 'x'"),
        ("a,b,c,d\n1,2,3,4\n", {"delimiter": ";;"}, ParameterError, "must be one character"),
        ("a,b,c,d\n1,2,3,4\n", {"follow": True, "source": None}, ParameterError, "requires a FILE"),
        ('{"a": 1}\n', {"columns": "a,b"}, ParameterError, "is for CSV"),
        (b"\x1f\x8b\x08\x00", {}, InputError, "compressed"),
        (b"a,b,c,\xff\n", {}, InputError, "first line cannot be read: not UTF-8"),
        ("a,b,c,d\n1,2,3,4\n", {"force": False}, OutputExistsError, "Pass --force"),
        ("a,b,c,d\n1,2,3,4\n", {"source": Path("/none.csv")}, FileError, "No such file"),
    ],
)
def test_what_cannot_be_used_is_an_error_that_changes_nothing(model, text, options, kind, message):
    model.with_name("out.csv").write_text("something\n")
    with pytest.raises(kind, match=re.escape(message)):
        stream(model, text, **options)
    if not options.get("force", True):
        assert model.with_name("out.csv").read_text() == "something\n"


def test_no_model_to_freeze_and_text_only(tmp_path):
    path = tmp_path / "none.hirank"
    with pytest.raises(FileError, match="Omit --frozen"):
        stream(path, "a,b\n1,2\n", frozen=True)
    with pytest.raises(InputError, match="No column is numeric"):
        stream(path, "a,b\nx,y\n")
    assert not path.exists()


def test_a_model_of_a_table_imputes_and_learns_nothing(tmp_path, capfd):
    path = tmp_path / "kfmc.hirank"
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(table(60), columns=list(NAMES))
    fitted = fast_kfmc(10).fit(X)
    fitted.save(path)
    saved = path.read_bytes()
    new = table(5, seed=3)
    done = stream(path, csv(new))
    assert "learns nothing" in capfd.readouterr().err
    got = [[float(x) for x in line.split(",")[4:0:-1]] for line in done.splitlines()[1:]]
    expected = fitted.transform(pandas.DataFrame(new, columns=list(NAMES)))
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert path.read_bytes() == saved


@pytest.mark.parametrize("ordered", [{"time": True}, {"groups": 0}])
def test_a_model_that_needs_neighbors_in_time_is_refused(tmp_path, ordered):
    X = table(60)
    X[:, 0] = np.arange(60) % 2
    path = tmp_path / "ordered.hirank"
    hirank.Imputer(**ordered, max_time=0.2, random_state=0).fit(X).save(path)

    with pytest.raises(ModelFileError, match="rows that are close in time"):
        stream(path, csv(table(5, seed=3)))


def test_a_file_that_was_read_is_not_read_again(model, capfd):
    source = model.with_name("in.csv")
    X = table(30)
    source.write_text(csv(X[:20]))
    once = stream(model, source, restart=False)
    source.write_text(csv(X))  # ten rows more
    more = stream(model, source, restart=False, force=False)
    assert more.startswith(once)
    assert "Imputed 10 rows" in capfd.readouterr().err
    assert hirank.load(model).n_samples_seen_ == 80
    assert stream(model, source, restart=False, force=False) == more
    model.with_name("out.csv").write_text("changed by another program\n" * 100)
    with pytest.raises(OutputError, match="was changed since the last run"):
        stream(model, source, restart=False, force=False)
    model.with_name("out.csv").unlink()
    source.write_text(csv(table(30, seed=5)))
    with pytest.raises(FileError, match=r"not the file that was read before\. Rows after line 31"):
        stream(model, source, restart=False, force=False)
    other = model.with_name("other.csv")
    other.write_text(csv(X[:5]))
    stream(model, other, restart=False, force=False)
    assert hirank.load(model).n_samples_seen_ == 85


def test_a_crash_between_position_and_model_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "model.hirank"
    model = small().partial_fit(table(50))
    model.save(path)
    position = Position(1, None, None, None, None)
    Checkpoint(path).save(position, model)
    checkpoint = Checkpoint(path)
    model.partial_fit(table(20))
    rename = os.replace

    def crash(old: Path, new: Path) -> None:
        if Path(new) == path:
            raise OSError(28, "No space left on device")
        rename(old, new)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OutputError, match=r"model\.hirank: No space"):
        checkpoint.save(replace(position, rows=21), model)
    monkeypatch.undo()
    again = Checkpoint(path)
    assert again.last.rows == 1
    assert hirank.load(path).n_samples_seen_ == 50
    again.save(replace(position, rows=21), model)
    assert Checkpoint(path).last.rows == 21
    small().partial_fit(table(45)).save(path)  # another model
    assert Checkpoint(path).last is None
    for damage in ("", "{}", "[{}]", '[{"rows": 1}]'):
        again.path.write_text(damage)
        with pytest.raises(FileError, match="damaged"):
            Checkpoint(path)


@pytest.mark.parametrize("cut", [True, False])
def test_an_output_is_continued_where_the_input_is(tmp_path, cut):
    path = tmp_path / "out.csv"
    first = Output(str(path))
    first.open(None, cut=cut, force=False)
    first.write(b"one\ntwo\n")
    place = first.place()
    first.write(b"three\nfo")  # and killed
    again = Output(str(path))
    again.open(place, cut=cut, force=False)
    again.write(b"next\n")
    # A file is read again from the place on; rows of a pipe that were written are kept.
    rest = b"" if cut else b"three\n"
    assert path.read_bytes() == b"one\ntwo\n" + rest + b"next\n"
    for output in (first, again):
        os.close(output.fd)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_column_that_the_input_lacks_is_missing(model, form, capfd):
    rows = [{"id": f"r{i}", "a": t, "b": None, "c": t**3} for i, t in enumerate((0.5, -0.25))]
    if form == "csv":
        text = "id,a,b,c\n" + "".join(f"{r['id']},{r['a']},,{r['c']}\n" for r in rows)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)

    done = stream(model, text).splitlines()

    assert capfd.readouterr().err.count("input lacks, which count as missing: d.") == 1
    imputed = [float(line.split(",")[2]) for line in done[1:]] if form == "csv" else None
    imputed = imputed or [json.loads(line)["b"] for line in done]
    np.testing.assert_allclose(imputed, [0.25, 0.0625], atol=0.2)
    if form == "csv":
        assert done[0] == "id,a,b,c"  # the output has the columns of the input


def test_a_new_key_of_json_lines_passes_through(model):
    done = stream(model, '{"a": 1, "b": 1, "c": 1, "d": 0}\n{"a": 1, "b": 1, "x": [2]}\n')

    assert json.loads(done.splitlines()[1])["x"] == [2]
    assert set(json.loads(done.splitlines()[1])) == {"a", "b", "c", "d", "x"}


def test_a_restart_continues_the_output_and_force_overwrites_it(model):
    once = stream(model, csv(table(5)))

    assert stream(model, csv(table(8)), force=False).splitlines()[:6] == once.splitlines()
    assert len(stream(model, csv(table(8)), force=False).splitlines()) == 1 + 5 + 8 + 8
    assert len(stream(model, csv(table(8))).splitlines()) == 1 + 8


def test_a_link_beside_the_model_is_not_written_to(model):
    other = model.with_name("other")
    other.write_text("of somebody else")
    for name in (f".{model.name}.next", f".{model.name}.position"):
        model.with_name(name).symlink_to(other)
    model.chmod(0o640)

    stream(model, csv(table(5)))

    assert other.read_text() == "of somebody else"
    assert stat.S_IMODE(model.stat().st_mode) == 0o640


def test_a_line_without_end_does_not_exhaust_the_memory(model, monkeypatch, capfd):
    monkeypatch.setattr("hirank.cli.stream.sources.MAX_LINE_BYTES", 1 << 16)
    good = csv(table(3)).splitlines(keepends=True)
    done = stream(model, good[0] + "x" * 300_000 + "\n" + "".join(good[1:]), frozen=True)
    assert len(done.splitlines()) == 4
    assert "line 2 skipped: longer than" in capfd.readouterr().err
