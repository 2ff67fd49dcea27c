import gzip
import io
import os
import sys
import threading

import numpy as np
import pytest

from hirank.exceptions import FileError, InputError
from hirank.io import create, open_table


def complete(path, data, fill=7.25, out="out.csv", extra=None, **options):
    """Read bytes as a table and write a number into missing cells; also in parts."""
    path.write_bytes(data)
    target = path.with_name(out)
    with open_table(path, **options) as file:
        table = file.read()
        with create(target, like=file, force=True) as writer:
            added = {n: np.full(len(table), v) for n, v in (extra or {}).items()}
            writer.write(table, np.full(table.numbers.shape, fill), added)
        whole = target.read_bytes()
        with create(target, like=file, force=True) as writer:
            for part in file.chunks(2):
                assert part.numeric == table.numeric
                added = {n: np.full(len(part), v) for n, v in (extra or {}).items()}
                writer.write(part, np.full(part.numbers.shape, fill), added)
        if len(table):
            assert target.read_bytes() == whole
    return table, whole


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a,b\n1,2\n,3\n", b"a,b\n1,2\n7.25,3\n"),
        (b"a,b\r\n1,\r\n,3", b"a,b\r\n1,7.25\r\n7.25,3"),
        (b"a,b\r1,\r,3\r", b"a,b\r1,7.25\r7.25,3\r"),
        (b"\xef\xbb\xbfa,b\n1,2\n,3\n", b"\xef\xbb\xbfa,b\n1,2\n7.25,3\n"),
        (b'"a";b\n"1,50";"x;\n""y"\n"NA";z\n', b'"a";b\n"1,50";"x;\n""y"\n"7,25";z\n'),
        (b"a\tb\n 1.50 \tNULL\n", b"a\tb\n 1.50 \t7.25\n"),
        (b"'a','b'\n'1','x,y'\n'','z'\n", b"'a','b'\n'1','x,y'\n'7.25','z'\n"),
        (b"a,b\n\n1,\n\n2,3\n\n", b"a,b\n\n1,7.25\n\n2,3\n\n"),
        (b"\n\na|b\n1|\n", b"\n\na|b\n1|7.25\n"),
        (b"sep=;\na;b\n1;\n", b"sep=;\na;b\n1;7.25\n"),
        (b"a\n1\n\n3\n", b"a\n1\n7.25\n3\n"),
        (b'a\n1\n""\n3\n', b'a\n1\n"7.25"\n3\n'),
        (b'a,b\n1,5" pipe\n,x\n', b'a,b\n1,5" pipe\n7.25,x\n'),
        (b"a,b\r\n1,2\n3,\r\n", b"a,b\r\n1,2\n3,7.25\r\n"),
        (b"a,b\n", b"a,b\n"),
        ("a,ä\n1,\n".encode("utf-16"), "a,ä\n1,7.25\n".encode("utf-16")),
    ],
)
def test_only_missing_cells_change(path, data, expected):
    assert complete(path, data)[1] == expected


def test_latin_1(path):
    data = "a,größe\n1,\n".encode("latin-1")
    with pytest.raises(FileError, match=r"Line 1: byte 0xf6 is not utf-8.*latin-1"):
        complete(path, data)
    assert complete(path, data, encoding="latin-1")[1] == data.replace(b"1,", b"1,7.25")
    with pytest.raises(FileError, match="Unknown encoding"):
        open_table(path, encoding="klingon")


def test_whitespace_between_cells(tmp_path):
    data = b"x   y\n 1.0 \t NaN  \n nan   4\n"
    table, written = complete(tmp_path / "t.txt", data, out="o.txt", extra={"u": 0.5})
    assert table.names == ("x", "y")
    assert written == b"x   y u\n 1.0 \t 7.25 0.5  \n 7.25   4 0.5\n"


def test_tabs_after_the_last_number(tmp_path):
    table, _ = complete(tmp_path / "t.txt", b"  1.5\t  2\t\n  3\t  4\t\n", header=False)
    np.testing.assert_array_equal(table.numbers, [[1.5, 2], [3, 4]])


def test_column_types_are_detected(path):
    data = b"id,n,x,word,empty,flag\n1,3,1.5,a,,true\n2,,NA,,,false\n"
    table, _ = complete(path, data, text=["id"])
    assert table.numeric == ("n", "x", "empty")
    assert table.text == ("id", "word", "flag")
    assert table.types.integral == ("n",)
    assert table.column("word") == ["a", ""]
    np.testing.assert_array_equal(table.numbers, [[3, 1.5, np.nan], [np.nan] * 3])


def test_whole_numbers_are_written_as_such_in_integral_columns(path):
    assert complete(path, b"a,b\n1,2.0\n,\n", fill=3.0)[1] == b"a,b\n1,2.0\n3,3.0\n"
    assert complete(path, b"a,b\n1,2.0\n,\n", fill=3.5)[1] == b"a,b\n1,2.0\n3.5,3.5\n"


def test_nan_leaves_a_cell_as_it_is(path):
    assert complete(path, b"a,b\n1,NA\n , 2\n", fill=np.nan)[1] == b"a,b\n1,NA\n , 2\n"


def test_missing_number(path):
    table, written = complete(path, b"a,b\n1,-200\n-200.0,2\n", missing=["-200"])
    assert written == b"a,b\n1,7.25\n7.25,2\n"
    assert np.isnan(table.numbers).sum() == 2


def test_extra_columns(path):
    _, written = complete(path, b'"a";b\r\n1,5;x\r\n;y', extra={"a low": 0.25, "u;v": np.nan})
    assert written == b'"a";b;a low;"u;v"\r\n1,5;x;0,25;\r\n7,25;y;0,25;'


def test_extra_columns_of_a_taken_name_or_changing(path):
    path.write_bytes(b"a,b\n1,2\n")
    with open_table(path) as file:
        table = file.read()
        with pytest.raises(FileError, match='already has a column "b"'):
            complete(path, b"a,b\n1,2\n", extra={"b": 1.0})
        with create(path.with_name("o.csv"), like=file) as writer:
            writer.write(table, table.numbers, {"u": np.zeros(1)})
            with pytest.raises(ValueError, match="extra columns"):
                writer.write(table, table.numbers)


def test_header(path):
    with pytest.raises(FileError, match="first row contains only numbers"):
        complete(path, b"1,2\n3,\n")
    table, written = complete(path, b"1,2\n3,\n", header=False)
    assert table.names == ("column 1", "column 2")
    assert table.line(1) == 2
    assert written == b"1,2\n3,7.25\n"


def test_unnamed_columns_are_text(path):
    table, written = complete(path, b",x\n0,1\n1,\n")
    assert table.names == ("", "x")
    assert table.numeric == ("x",)
    assert written == b",x\n0,1\n1,7.25\n"
    table, written = complete(path, b";x;;\n0;1;;\n1;;;\n")
    assert table.names == ("column 1", "x", "column 3", "column 4")
    assert table.numeric == ("x",)
    assert written == b";x;;\n0;1;;\n1;7.25;;\n"


def test_invalid_cells_of_nearly_numeric_columns_are_reported(path):
    data = b"a,b\n" + b"1,x\n" * 8 + b'"OVER\nFLOW",y\n\nerror,z\n'
    table, _ = complete(path, data)
    assert table.numeric == ()
    assert table.types.nearly_numeric == {"a": [(10, "OVER\nFLOW"), (13, "error")]}
    with open_table(path) as file:
        assert next(iter(file.chunks(3))).types.nearly_numeric == table.types.nearly_numeric
    table, _ = complete(path, data, missing=["error", "OVER\nFLOW"])
    assert table.numeric == ("a",)
    assert table.types.nearly_numeric == {}


def test_columns_that_must_be_numeric(path):
    path.write_bytes(b"a,b,c\n1,x,5\n\n2,y,6\n3,z,inf\n")
    with open_table(path, numeric=["c", "a"]) as file:
        first = next(file.chunks(2))
        assert first.numeric == ("c", "a")
        np.testing.assert_array_equal(first.numbers, [[5, 1], [6, 2]])
        with pytest.raises(FileError, match=r'Line 5: "inf" in column "c" is not a finite'):
            file.read()
        with pytest.raises(FileError, match="Line 5"):
            list(file.chunks(1))
    with pytest.raises(FileError, match=r'No column "z"\. The columns are "a"'):
        open_table(path, numeric=["z"])
    with pytest.raises(FileError, match='No column "z"'):
        open_table(path, text=["z"])


def test_columns_in_another_order_are_written_at_their_places(path):
    path.write_bytes(b"a,b\n1,\n,2\n")
    options = {"numeric": ["b", "a"]}
    with open_table(path, **options) as file, create(path, like=file, force=True) as writer:
        writer.write(file.read(), np.array([[10, 20], [30, 40]]))
    assert path.read_bytes() == b"a,b\n1,10\n40,2\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The file is empty"),
        (b"\n\r\n", "The file is empty"),
        (b"a,b\n1,2\n3\n", r"Line 3 has 1 cell, but the first row has 2"),
        (b'a,b\n"x\ny",2\n\n3,4,5\n', "Line 5 has 3 cells"),
        (b"a,b\n1,2\n3,\xe4\n", "Line 3: byte 0xe4"),
        (b"a,b\n1,2\n3,\xc3", "Line 3: byte 0xc3"),
        (b'a,b\n1,2\n3,"x\n4,5\n', "Line 3: a quote"),
        (b'a,"b\n1,2\n', "Line 1: a quote"),
    ],
)
def test_bad_files(path, data, message):
    path.write_bytes(data)
    with pytest.raises(FileError, match=message):
        open_table(path).read()
    with pytest.raises(FileError, match=message):
        list(open_table(path).chunks(1))


def test_bad_paths(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        open_table(tmp_path / "t.csv")
    with pytest.raises(FileError, match="No such file"):
        open_table(tmp_path / "t.what")
    with pytest.raises(FileError, match="This is a folder"):
        open_table(tmp_path)
    (tmp_path / "t.what").touch()
    with pytest.raises(FileError, match=r"known extensions are \.csv"):
        open_table(tmp_path / "t.what")
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="delimiter must be one character"):
        open_table(tmp_path / "t.csv", delimiter=",,")
    with pytest.raises(FileError, match="A part of this path is a file"):
        open_table(tmp_path / "t.csv" / "u.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(path):
    path.write_text("a,b\n")
    path.chmod(0)
    with pytest.raises(FileError, match="No permission"):
        open_table(path)


def test_gzip(tmp_path):
    path = tmp_path / "t.csv.gz"
    data = gzip.compress(b"a,b\n1,\n")
    table, written = complete(path, data, out="o.csv.gz")
    assert table.numeric == ("a", "b")
    assert gzip.decompress(written) == b"a,b\n1,7.25\n"
    assert complete(path, data, out="o.csv")[1] == b"a,b\n1,7.25\n"
    for damaged in (data[:-9], data[:-6] + b"xxxxxx", data[:12] + b"\xff\xff" + data[14:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match="compressed file is damaged"):
            open_table(path).read()


def standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input(monkeypatch):
    standard_input(monkeypatch, b"a,b\n1,x\n,y\n3,z\n")
    with open_table("-") as file:
        assert [len(part) for part in file.chunks(2)] == [2, 1]
        assert len(file.read()) == 3


def test_compressed_standard_input_with_known_columns(monkeypatch):
    standard_input(monkeypatch, gzip.compress(b"a,b\n1,x\n,y\n3,z\n"))
    with open_table("-", numeric=["a"]) as file:
        parts = list(file.chunks(2))
        np.testing.assert_array_equal(parts[0].numbers, [[1], [np.nan]])
        assert parts[1].first_row == 2
        assert parts[1].line(0) == 4
        assert len(file.read()) == 3


@pytest.mark.parametrize("numeric", [None, ["a"]])
def test_named_pipe(tmp_path, numeric):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    rows = b"".join(b"%d,x\n" % i for i in range(200_000))
    thread = threading.Thread(target=lambda: pipe.write_bytes(b"a,b\n" + rows))
    thread.start()
    with open_table(pipe, numeric=numeric) as file:
        total = sum(part.numbers.sum() for part in file.chunks(50_000))
    thread.join()
    assert total == sum(range(200_000))


def test_rows_longer_than_a_block(path):
    long = "é" * 700_000
    data = f'a,b\n1,"{long}\n{long}"\n,{long}\n'.encode()
    assert complete(path, data)[1] == data.replace(b"\n,", b"\n7.25,")


def test_chunks_are_bounded(path):
    path.write_bytes(b"a,b\n" + b"1,2\n" * 10_000)
    with open_table(path, numeric=["a"]) as file:
        assert [len(part) for part in file.chunks(3000)] == [3000, 3000, 3000, 1000]
        with pytest.raises(ValueError, match="at least 1"):
            next(file.chunks(0))


def test_dialect_follows_the_extension(tmp_path):
    data = b'a;b\n1,5;"x\ty"\nNA;z\n'
    assert complete(tmp_path / "t.csv", data, out="o.tsv")[1] == b'a\tb\n1.5\t"x\ty"\n7.25\tz\n'
    assert complete(tmp_path / "t.tsv", b"a\tb\n\tx,y\n")[1] == b'a,b\n7.25,"x,y"\n'
