import datetime

import numpy as np
import pytest

from hirank.exceptions import FileError, OutputExistsError
from hirank.io import create, open_table

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.xlsx"


def save(path, rows, **sheets):
    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append(row)
    for title, more in sheets.items():
        sheet = book.create_sheet(title)
        for row in more:
            sheet.append(row)
    book.save(path)
    return book


def complete(path, fill=9.5, extra=None, **options):
    target = path.with_stem("out")
    with open_table(path, **options) as file, create(target, file, force=True) as writer:
        for part in file.chunks(2):
            added = {name: np.full(len(part), value) for name, value in (extra or {}).items()}
            writer.write(part, np.full(part.numbers.shape, fill), added)
    return openpyxl.load_workbook(target)


def cells(sheet):
    return [list(row) for row in sheet.iter_rows(values_only=True)]


DAY = datetime.datetime(2024, 5, 1, 13, 30)


def test_imputed_values_and_all_other_values_are_in_a_new_workbook(path):
    rows = [[1, 2.5, DAY, "x"], [None, "NA", None, 7], [3, "", DAY.date(), True]]
    book = save(path, [["a", "b", "day", "w"], *rows], other=[["not", "copied"]])
    book["first"]["A2"].font = openpyxl.styles.Font(bold=True)
    book.save(path)
    with open_table(path) as file:
        table = file.read()
    assert table.numeric == ("a", "b")
    assert table.types.integral == ("a",)
    assert table.line(1) == 3

    out = complete(path)

    assert out.sheetnames == ["first"]
    midnight = datetime.datetime.combine(DAY.date(), datetime.time())
    assert cells(out["first"]) == [
        ["a", "b", "day", "w"],
        [1, 2.5, DAY, "x"],
        [9.5, 9.5, None, 7],
        [3, 9.5, midnight, True],
    ]
    assert out["first"]["C2"].is_date
    assert not out["first"]["A2"].font.bold
    assert complete(path, fill=4.0)["first"]["A3"].value == 4


def test_an_error_keeps_the_workbook(path):
    save(path, [["a"], [1], [None]])
    before = path.read_bytes()
    with pytest.raises(OutputExistsError), open_table(path) as file:
        create(path, file)
    assert path.read_bytes() == before


def test_formulas_become_values(path):
    save(path, [["a", "b"], [1, "=A2*2"], [None, "=A3*2"], [3, 1]])
    # Without Excel nothing has computed the formulas: they are read as missing.
    assert cells(complete(path)["first"]) == [["a", "b"], [1, 9.5], [9.5, 9.5], [3, 1]]


def test_dates_of_other_formats_are_dates_in_excel(tmp_path, path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    zone = datetime.UTC
    days = {"d": [DAY, None], "z": [DAY.replace(tzinfo=zone), None], "n": [1.5, 2.5]}
    parquet.write_table(pa.table(days), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet") as file, create(path, file) as writer:
        table = file.read()
        writer.write(table, table.numbers)
    sheet = openpyxl.load_workbook(path).active
    assert cells(sheet)[1:] == [[DAY, "2024-05-01 13:30:00+00:00", 1.5], [None, None, 2.5]]


def test_a_table_that_does_not_start_in_the_corner(path):
    save(path, [[None], [None, None, "a", "b"], [None, None, 1, None], [None, None, None, 2]])
    with open_table(path) as file:
        assert file.names == ("a", "b")
        assert file.read().line(0) == 3
    out = complete(path, extra={"u": 0.5})
    assert cells(out["first"]) == [["a", "b", "u"], [1, 9.5, 0.5], [9.5, 2, 0.5]]


def test_sheets(path):
    save(path, [["a"], [1]], second=[["b"], [None], [2]], third=[])
    with open_table(path, sheet="second") as file:
        assert file.names == ("b",)
    assert cells(complete(path, sheet="second")["second"]) == [["b"], [9.5], [2]]
    with pytest.raises(FileError, match=r'No sheet "x"\. The sheets are "first", "second"'):
        open_table(path, sheet="x")
    with pytest.raises(FileError, match="is empty"):
        open_table(path, sheet="third")


def test_invalid_cells(path):
    rows = [["a", "b", "c"]] + [[i, True, "#N/A"] for i in range(9)] + [["#DIV/0!", 1, "5"]]
    save(path, rows)
    with open_table(path) as file:
        table = file.read()
    assert table.numeric == ("c",)
    assert table.types.nearly_numeric == {"a": [(11, "#DIV/0!")]}
    with open_table(path, numeric=["a"]) as file, pytest.raises(FileError, match="Line 11"):
        file.read()


def test_header(path):
    save(path, [[1, 2], [3, None]])
    with pytest.raises(FileError, match="contains only numbers"):
        open_table(path)
    assert cells(complete(path, header=False)["first"]) == [[1, 2], [3, 9.5]]
    save(path, [[None, "x"], [0, 1], [1, None]])
    with open_table(path) as file:
        assert file.read().numeric == ("x",)


def test_text_that_excel_does_not_hold(tmp_path, path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\x01y\n")
    with (
        open_table(tmp_path / "t.csv") as file,
        create(path, like=file) as writer,
        pytest.raises(FileError, match="cannot store the text"),
    ):
        writer.write(file.read(), np.zeros((1, 1)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"a,b\n1,2\n"])
def test_other_files(path, data):
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"Not an? \.xlsx file"):
        open_table(path)
