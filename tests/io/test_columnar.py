import datetime
import decimal

import numpy as np
import pytest

from hirank.exceptions import FileError, OutputError
from hirank.io import create, open_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

OTHERS = {
    "word": pa.array(["x", None, "z"]),
    "kind": pa.array(["u", "u", "v"]).dictionary_encode(),
    "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.20")]),
    "flag": pa.array([True, None, False]),
    "day": pa.array([datetime.datetime(2024, 1, d) for d in (1, 2, 3)], pa.timestamp("us")),
    "list": pa.array([[1], None, [2, 3]]),
}
NUMBERS = {
    "f64": pa.array([1.5, None, float("nan")]),
    "f32": pa.array([0.1, None, 3.0], pa.float32()),
    "i64": pa.array([2**60 + 1, None, 3], pa.int64()),
    "u8": pa.array([1, None, 255], pa.uint8()),
    "f16": pa.array(np.array([0.5, np.nan, 3.0], np.float16)),
    "nothing": pa.nulls(3),
    "ids": pa.array([2**60 + 1, 2, 3], pa.int64()),
}


def put(path, table):
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=2)
    else:
        with ipc.new_file(path, table.schema) as sink:
            sink.write_table(table, max_chunksize=2)


def get(path):
    return pq.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()


def complete(path, fill, rows=None, integers=(), **options):
    target = path.with_stem("out")
    with (
        open_table(path, **options) as file,
        create(target, file, force=True, integers=integers) as writer,
    ):
        for part in [file.read()] if rows is None else file.chunks(rows):
            filled = fill(part) if callable(fill) else np.full(part.numbers.shape, fill)
            writer.write(part, filled)
    return get(target)


@pytest.fixture(params=["t.parquet", "t.arrow"])
def path(request, tmp_path):
    return tmp_path / request.param


@pytest.mark.parametrize("rows", [None, 1, 2, 100])
def test_other_columns_and_metadata_are_kept(path, rows):
    table = pa.table({**OTHERS, **NUMBERS}).replace_schema_metadata({"by": "us"})
    put(path, table)
    with open_table(path) as file:
        read = file.read()
    assert read.numeric == tuple(NUMBERS)
    assert read.text == tuple(OTHERS)
    assert read.types.integral == ("i64", "u8", "ids")
    assert read.types.complete == ("ids",)
    assert read.column("word") == ["x", None, "z"]

    out = complete(path, 7.0, rows, integers=["i64"])

    assert out.schema.metadata == {b"by": b"us"}
    for name in (*OTHERS, "ids"):
        assert out.column(name).equals(table.column(name)), name
    assert out.column("f64").to_pylist() == [1.5, 7.0, 7.0]
    assert out.column("f32").equals(pa.chunked_array([pa.array([0.1, 7.0, 3.0], pa.float32())]))
    assert out.column("f16").to_pylist() == [0.5, 7.0, 3.0]
    assert out.column("u8").to_pylist() == [1, 7, 255]
    assert out.column("nothing").to_pylist() == [7.0] * 3


def test_integer_types_are_kept_if_all_rows_are_known_and_imputed_values_are_whole(path):
    put(path, pa.table(NUMBERS))

    out = complete(path, 7.0)

    assert out.column("i64").to_pylist() == [2**60 + 1, 7, 3]
    assert out.schema.field("i64").type == pa.int64()
    assert out.schema.field("u8").type == pa.uint8()
    put(path, pa.table({"u8": NUMBERS["u8"]}))
    assert complete(path, 0.5).schema.field("u8").type == pa.float64()


@pytest.mark.parametrize("rows", [None, 2])
def test_integers_that_double_precision_would_round_are_refused(path, rows):
    put(path, pa.table({"id": pa.array([2**60 + 1, None, 3], pa.int64())}))

    with pytest.raises(OutputError, match=rf'{2**60 + 1} in column "id" .*--integers .id.'):
        complete(path, 0.5, rows)

    assert not path.with_stem("out").exists()


def test_imputed_integers_that_were_promised_but_do_not_fit_are_refused(path):
    put(path, pa.table({"id": pa.array([2**60 + 1, None, 3], pa.uint64())}))

    with pytest.raises(OutputError, match="does not fit the type uint64"):
        complete(path, -1.0, rows=2, integers=["id"])


def test_large_markers_match_only_the_same_integer(path):
    values = [2**60 + i for i in range(-64, 65)]
    put(path, pa.table({"a": pa.array(values, pa.int64()), "b": pa.array(values, pa.uint64())}))

    with open_table(path, missing=[str(2**60)]) as file:
        numbers = file.read().numbers

    assert np.argwhere(np.isnan(numbers)).tolist() == [[64, 0], [64, 1]]


def test_markers_match_single_precision(path):
    put(path, pa.table({"a": pa.array([1.0, -999.9, None], pa.float32())}))

    with open_table(path, missing=["-999.9"]) as file:
        assert np.isnan(file.read().numbers[:, 0]).tolist() == [False, True, True]


def test_types_of_parts_are_decided_before_writing(path):
    n = 10
    values = [i if i % 2 else None for i in range(n)]
    put(path, pa.table({"a": pa.array(values, pa.int32()), "b": list(range(n)), "w": ["x"] * n}))

    def fill(part):
        value = 1.0 if part.first_row < 6 else 2.5
        return np.full(part.numbers.shape, value)

    out = complete(path, fill, rows=3)

    assert out.column("a").to_pylist() == [1.0, 1, 1, 3, 1, 5, 2.5, 7, 2.5, 9]
    assert out.schema.field("a").type == pa.float64()
    assert out.schema.field("b").type == pa.int64()
    assert out.column("w").to_pylist() == ["x"] * n
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([f"out{path.suffix}", path.name])


def test_an_imputed_value_that_does_not_fit_the_type(path):
    put(path, pa.table({"a": pa.array([1, None], pa.uint8())}))
    assert complete(path, -3.0).column("a").to_pylist() == [1.0, -3.0]
    assert complete(path, np.nan).column("a").to_pylist() == [1, None]


def test_missing_numbers_and_infinity(path):
    put(path, pa.table({"a": [1, -200, 3], "b": [1.0, float("inf"), 2.0], "c": [-200.0, 5, 6]}))
    with open_table(path, missing=[-200]) as file:
        table = file.read()
    assert table.numeric == ("a", "c")
    assert complete(path, 9.0, missing=[-200]).to_pydict() == {
        "a": [1, 9, 3],
        "b": [1.0, float("inf"), 2.0],
        "c": [9.0, 5.0, 6.0],
    }


@pytest.mark.parametrize("name", ["word", "price", "flag", "day"])
def test_columns_that_must_be_numeric_but_have_another_type(path, name):
    put(path, pa.table(OTHERS))
    with open_table(path, numeric=[name]) as file, pytest.raises(FileError, match="not a finite"):
        file.read()


def test_frames_of_pandas_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    index = pd.Index([5, 6, 7], name="id")
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "s": ["x", "y", "z"]}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet") as file:
        assert file.read().numeric == ("a",)
    complete(tmp_path / "t.parquet", 2.0)
    back = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(back, frame.fillna({"a": 2.0}))


def test_arrow_stream(tmp_path):
    table = pa.table({"a": [1.0, None, 3.0]})
    with ipc.new_stream(tmp_path / "t.arrow", table.schema) as sink:
        for batch in table.to_batches(max_chunksize=1):
            sink.write_batch(batch)
    assert complete(tmp_path / "t.arrow", 2.0, rows=2).column("a").to_pylist() == [1, 2, 3]


def test_chunks(path):
    put(path, pa.table({"a": np.arange(10.0)}))
    with open_table(path) as file:
        parts = list(file.chunks(4))
    assert [(len(part), part.first_row, part.line(0)) for part in parts] == [
        (4, 0, 1),
        (4, 4, 5),
        (2, 8, 9),
    ]
    np.testing.assert_array_equal(np.concatenate([p.numbers[:, 0] for p in parts]), np.arange(10.0))


def test_duplicate_names(path):
    put(path, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(FileError, match='named "a"'):
        open_table(path)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"ARROW1", b"a,b\n1,2\n"])
def test_other_files(path, data):
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"Not a .* file"):
        open_table(path)
