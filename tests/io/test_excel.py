import datetime

import numpy as np
import pytest

from hirank.io import FileError, create, open_table

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


def test_holes_are_filled_and_the_rest_stays(path):
    day = datetime.datetime(2024, 5, 1)
    book = save(
        path, [["a", "b", "day", "w"], [1, 2.5, day, "x"], [None, "NA", day, 7], [3, "", day, None]]
    )
    sheet = book["first"]
    sheet["A3"].number_format = "0.00"
    sheet["B2"].font = openpyxl.styles.Font(bold=True)
    sheet.column_dimensions["B"].width = 33
    book.create_sheet("other")["C5"] = "=SUM(first!A2:A4)"
    book.save(path)
    with open_table(path) as file:
        table = file.read()
    assert table.numeric == ("a", "b")
    assert table.integral == ("a",)
    assert table.line(1) == 3
    out = complete(path)
    assert cells(out["first"])[1:] == [[1, 2.5, day, "x"], [9.5, 9.5, day, 7], [3, 9.5, day, None]]
    assert out["first"]["A3"].number_format == "0.00"
    assert out["first"]["B2"].font.bold
    assert out["first"].column_dimensions["B"].width == 33
    assert out["other"]["C5"].value == "=SUM(first!A2:A4)"
    assert complete(path, fill=4.0)["first"]["A3"].value == 4


def test_formulas_stay(path):
    save(path, [["a", "b"], [1, "=A2*2"], [None, "=A3*2"], [3, 1]])
    out = complete(path)
    # Without Excel nothing has computed the formulas: they read as missing, and stay as they are.
    assert cells(out["first"]) == [["a", "b"], [1, "=A2*2"], [9.5, "=A3*2"], [3, 1]]


def test_a_table_that_does_not_start_in_the_corner(path):
    save(path, [[None], [None, None, "a", "b"], [None, None, 1, None], [None, None, None, 2]])
    with open_table(path) as file:
        assert file.names == ("a", "b")
        assert file.read().line(0) == 3
    out = complete(path, extra={"u": 0.5})
    assert cells(out["first"])[1:] == [
        [None, None, "a", "b", "u"],
        [None, None, 1, 9.5, 0.5],
        [None, None, 9.5, 2, 0.5],
    ]


def test_sheets(path):
    save(path, [["a"], [1]], second=[["b"], [None], [2]], third=[])
    with open_table(path, sheet="second") as file:
        assert file.names == ("b",)
    assert cells(complete(path, sheet="second")["second"]) == [["b"], [9.5], [2]]
    with pytest.raises(FileError, match='no sheet "x"; there are: "first", "second", "third"'):
        open_table(path, sheet="x")
    with pytest.raises(FileError, match="is empty"):
        open_table(path, sheet="third")


def test_strays(path):
    rows = [["a", "b", "c"]] + [[i, True, "#N/A"] for i in range(9)] + [["#DIV/0!", 1, "5"]]
    save(path, rows)
    with open_table(path) as file:
        table = file.read()
    assert table.numeric == ("c",)
    assert table.almost == {"a": [(11, "#DIV/0!")]}
    with open_table(path, numeric=["a"]) as file, pytest.raises(FileError, match="line 11"):
        file.read()


def test_header(path):
    save(path, [[1, 2], [3, None]])
    with pytest.raises(FileError, match="numbers only"):
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
        pytest.raises(FileError, match="can't hold the text"),
    ):
        writer.write(file.read(), np.zeros((1, 1)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"a,b\n1,2\n"])
def test_other_files(path, data):
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"not an \.xlsx file"):
        open_table(path)
