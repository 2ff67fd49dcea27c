"""Observed values of any type come back to the bit in every format, or are refused."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hirank.exceptions import OutputError
from hirank.io import create, open_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
openpyxl = pytest.importorskip("openpyxl")

INTEGERS = ["int8", "uint8", "int32", "int64", "uint64"]
FLOATS = ["float32", "float64"]


@st.composite
def columns(draw):
    """Draw a column with a missing value, as an Arrow array."""
    kind = draw(st.sampled_from([*INTEGERS, *FLOATS]))
    if kind in INTEGERS:
        limits = np.iinfo(kind)
        values = st.integers(int(limits.min), int(limits.max))
    else:
        width = int(kind[5:])
        values = st.floats(allow_nan=False, allow_infinity=False, width=width)
    observed = draw(st.lists(values, min_size=1, max_size=5))
    return pa.array([*observed, None], getattr(pa, kind)())


def impute(file, target, fill, rows=None):
    with create(target, file, force=True) as writer:
        for part in [file.read()] if rows is None else file.chunks(rows):
            writer.write(part, np.full(part.numbers.shape, fill))


def read_back(path, dtype):
    """Return the observed values of the only column, in the type of the input."""
    if path.suffix == ".parquet":
        return [dtype.type(value) for value in pq.read_table(path).column(0).to_pylist()[:-1]]
    if path.suffix == ".npy":
        return [dtype.type(value) for value in np.load(path)[:-1, 0]]
    with open_table(path) as file:
        cells = list(file.read().column("x"))[:-1]
    return [dtype.type(int(cell) if dtype.kind in "iu" else float(cell)) for cell in cells]


@pytest.mark.parametrize("extension", ["parquet", "csv", "xlsx", "npy"])
@given(column=columns(), fill=st.sampled_from([0.5, 7.0, -1.0]))
@settings(max_examples=20, deadline=None, phases=[Phase.generate])
def test_observed_values_come_back_to_the_bit_or_are_refused(
    tmp_path_factory, extension, column, fill
):
    folder = tmp_path_factory.getbasetemp()
    source, target = folder / "exact.parquet", folder / f"exact_out.{extension}"
    pq.write_table(pa.table({"x": column}), source)
    dtype = np.dtype(column.type.to_pandas_dtype())

    with open_table(source) as file:
        try:
            impute(file, target, fill)
        except OutputError:
            assert any(int(float(value)) != value for value in column.to_pylist()[:-1])
            return

    expected = [dtype.type(value) for value in column.to_pylist()[:-1]]
    found = read_back(target, dtype)
    if extension == "xlsx":  # Excel has no negative zero
        found, expected = (
            [value + dtype.type(0) for value in values] for values in (found, expected)
        )
    assert [a.tobytes() for a in found] == [b.tobytes() for b in expected]


def test_numbers_of_17_digits_are_kept_in_excel_files(tmp_path):
    numbers = [2.1810543802333052e16, 0.1 + 0.2, 1.0, 1e-300]
    pq.write_table(pa.table({"x": [*numbers, None]}), tmp_path / "t.parquet")

    with open_table(tmp_path / "t.parquet") as file:
        impute(file, tmp_path / "out.xlsx", 0.5)

    assert read_back(tmp_path / "out.xlsx", np.dtype(float)) == numbers


def test_numbers_that_are_text_in_an_excel_file_stay_text(tmp_path):
    book = openpyxl.Workbook()
    for row in (("x", "y"), (1, "1.50"), (None, 2.5)):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")

    with open_table(tmp_path / "t.xlsx") as file:
        impute(file, tmp_path / "out.xlsx", 0.5)

    rows = openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(values_only=True)
    assert list(rows) == [("x", "y"), (1, "1.50"), (0.5, 2.5)]


def test_large_identifiers_are_refused_by_excel(tmp_path):
    pq.write_table(pa.table({"id": [2**60 + 1, 2], "x": [1.0, None]}), tmp_path / "t.parquet")
    with (
        open_table(tmp_path / "t.parquet", text=["id"]) as file,
        pytest.raises(OutputError, match=r'column "id" would be rounded .* Write CSV or Parquet'),
    ):
        impute(file, tmp_path / "out.xlsx", 0.5)


@pytest.mark.parametrize("name", ["half.parquet", "half.xlsx", "half.npy"])
def test_large_integers_of_text_files_are_kept_or_refused(tmp_path, name):
    (tmp_path / "t.csv").write_text(f"x,y\n{2**60 + 1},1\n,2\n")
    with open_table(tmp_path / "t.csv") as file:
        impute(file, tmp_path / "out.parquet", 7.0)
        assert pq.read_table(tmp_path / "out.parquet")["x"].to_pylist() == [2**60 + 1, 7]
        with pytest.raises(OutputError, match="would be rounded"):
            impute(file, tmp_path / name, 0.5)


def test_parts_of_an_array_with_different_types_are_joined_only_if_nothing_is_rounded(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[2**60 + 1], [3], [-9]]))
    with (
        open_table(tmp_path / "t.npy", missing=["-9"]) as file,
        pytest.raises(OutputError, match="would be rounded"),
    ):
        impute(file, tmp_path / "out.npy", 0.5, rows=2)
