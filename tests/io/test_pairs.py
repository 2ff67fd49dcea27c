"""Every format into and from CSV and Parquet, and so into every other."""

import itertools

import numpy as np
import pytest

from hirank.exceptions import OutputError
from hirank.io import create, open_table

pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

FORMATS = ["csv", "tsv", "csv.gz", "parquet", "feather", "npy", "xlsx"]
HUBS = ["csv", "parquet"]
NAMELESS = {"npy"}


def through_hubs(formats):
    """Return the pairs of formats of which one is a hub; those without CSV are slow tests."""
    pairs = [pair for pair in itertools.product(formats, formats) if set(pair) & set(HUBS)]
    return [pytest.param(*pair, marks=[pytest.mark.slow] * ("csv" not in pair)) for pair in pairs]


def write_as(source, target, fill):
    with open_table(source) as file, create(target, like=file) as writer:
        for part in file.chunks(2):
            extra = {"u": np.arange(len(part)) + 0.5}
            writer.write(part, np.full(part.numbers.shape, fill), extra)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "start.csv").write_text("a,b,c\n1,2.5,3\n,4.5,\n5,,7\n")
    for suffix in FORMATS:
        write_as(folder / "start.csv", folder / f"in.{suffix}", np.nan)
    return folder


@pytest.mark.parametrize(("old", "new"), through_hubs(FORMATS))
def test_numbers(folder, old, new):
    target = folder / f"{old}.to.{new}"
    with open_table(folder / f"in.{old}") as file, create(target, like=file) as writer:
        for part in file.chunks(2):
            writer.write(part, np.full(part.numbers.shape, 9.0), {"v": np.full(len(part), 0.25)})
    with open_table(target) as file:
        table = file.read()
    expected = [[1, 2.5, 3, 0.5, 0.25], [9, 4.5, 9, 1.5, 0.25], [5, 9, 7, 0.5, 0.25]]
    np.testing.assert_array_equal(table.numbers, expected)
    named = new not in NAMELESS and old not in NAMELESS
    assert table.names[:2] == (("a", "b") if named else ("column 1", "column 2"))
    # Columns with missing values that are written in parts have no integer types.
    if named and {old, new} <= {"csv", "tsv", "csv.gz", "xlsx"}:
        assert table.types.integral == ("a", "c")


TEXT = ["csv", "tsv", "parquet", "arrow", "xlsx"]


@pytest.mark.parametrize(("old", "new"), through_hubs(TEXT))
def test_words(tmp_path, old, new):
    words = ["x,y", "", 'say "so"', "ä\tb", "=1+1", "12345678901234567890"]
    start = tmp_path / "start.csv"
    rows = ['"{}",1'.format(word.replace('"', '""')) for word in words]
    start.write_text("\n".join(['"the, word",n', *rows, ""]), encoding="utf-8")
    write_as(start, tmp_path / f"in.{old}", 0.0)
    with (
        open_table(tmp_path / f"in.{old}") as file,
        create(tmp_path / f"out.{new}", file) as writer,
    ):
        table = file.read()
        writer.write(table, table.numbers)
    with open_table(tmp_path / f"out.{new}") as file:
        assert [cell or "" for cell in file.read().column("the, word")] == words


def test_text_is_not_written_into_a_matrix(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    with pytest.raises(OutputError, match='only numbers, but column "b" is not numeric'):
        write_as(tmp_path / "t.csv", tmp_path / "t.npy", 0.0)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("old", "new"), through_hubs(FORMATS))
def test_no_rows(tmp_path, old, new):
    (tmp_path / "start.csv").write_text("a,b\n")
    write_as(tmp_path / "start.csv", tmp_path / f"in.{old}", 0.0)
    write_as(tmp_path / f"in.{old}", tmp_path / f"out.{new}", 0.0)
    with open_table(tmp_path / f"out.{new}") as file:
        assert len(file.names) == 2
        table = file.read()
        assert table.numbers.shape == (0, 2)
        assert list(file.chunks(5)) == []


def test_large_whole_numbers_stay(tmp_path):
    large = 2**62 + 1
    (tmp_path / "a.csv").write_text(f"n,x\n{large},1\n,2\n")
    with open_table(tmp_path / "a.csv") as file, create(tmp_path / "b.parquet", file) as writer:
        writer.write(file.read(), np.full((2, 2), 3.0))
    with open_table(tmp_path / "b.parquet") as file, create(tmp_path / "c.csv", file) as writer:
        table = file.read()
        assert table.column("n") == [large, 3]
        writer.write(table, table.numbers)
    assert (tmp_path / "c.csv").read_text() == f"n,x\n{large},1\n3,2\n"
