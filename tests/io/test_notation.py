"""Numbers with units and marks of thousands: detected, read, and written as the column has them."""

import numpy as np
import pytest

from hirank.exceptions import FileError
from hirank.io import create, open_table
from hirank.io.notation import PLAIN, Notation, detect_notation

COLUMNS = {
    "US money": (".", ["$1,736.47", "$12.00", "-$3,000,000"], [1736.47, 12, -3e6], "$1,234.5"),
    "German money": (",", ["24.434,03 €", "1,5 €", "-7 €"], [24434.03, 1.5, -7], "1.234,5 €"),
    "French numbers": (",", ["1 736,47", "12,0"], [1736.47, 12], "1 234,5"),
    "narrow spaces": (",", ["1\u202f736,47", "12"], [1736.47, 12], "1\u202f234,5"),
    "Swiss numbers": (".", ["CHF 1'736.47", "CHF 2"], [1736.47, 2], "CHF 1'234.5"),
    "percent": (".", ["12%", "7.5%", "+0%"], [12, 7.5, 0], "1234.5%"),
    "a unit": (".", ["12 kg", "0.5 kg"], [12, 0.5], "1234.5 kg"),
    "thousands": (".", ["1,234", "12,345,678", "12"], [1234, 12345678, 12], "1,234.5"),
    "a minus of typographers": (".", ["\u22125 °C", "3 °C"], [-5, 3], "1234.5 °C"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_in_one_notation_are_numbers(name):
    decimal, cells, values, written = COLUMNS[name]
    notation = detect_notation(cells, decimal)

    texts = [notation.plain(cell, decimal) for cell in cells]

    assert [float(text.replace(",", ".")) for text in texts] == values
    assert notation.write("1234.5".replace(".", decimal), decimal) == written
    assert float(notation.plain(written, decimal).replace(",", ".")) == 1234.5


@pytest.mark.parametrize(
    "cells",
    [
        ["5 kg", "5 g"],  # units differ
        ["5 kg", "5"],  # one is without
        ["Room 12", "Room 13"],  # a name
        ["A1", "A2"],
        ["1,2", "3,4"],  # lists, or a decimal comma in a file with points
        ["1,234", "12,34"],
        ["1,234.5", "1 234.5"],  # two marks
        ["2020-01-02", "2020-01-03"],
        ["12:30", "12:45"],
        ["030 123 456", "030 123 457"],  # a number of a telephone starts with 0
        ["--$5", "$5"],
        ["-$-5", "$5"],
        ["", " "],
        [],
    ],
)
def test_other_cells_are_not(cells):
    assert detect_notation(cells, ".") is None


def test_an_empty_cell_stays_empty_and_large_numbers_keep_their_exponent():
    assert Notation(",", "$").write("", ".") == ""
    assert Notation(",").write("1e+20", ".") == "1e+20"
    assert PLAIN.write("-1234.5", ".") == "-1234.5"


UGLY = {
    "US": 'price,n\n"$1,736.47","1,200"\n,900\n$12.00,\n',
    "German": "Preis;n\n24.434,03 €;1.200\n;900\n1,5 €;\n",
    "French": "prix;n\n1 736,47;1 200\n;900\n12,5;\n",
    "units": "share,n\n12%,5 kg\n,0.5 kg\n7.5%,\n",
}
VALUES = {
    "US": ([1736.47, 12], [1200, 900]),
    "German": ([24434.03, 1.5], [1200, 900]),
    "French": ([1736.47, 12.5], [1200, 900]),
    "units": ([12, 7.5], [5, 0.5]),
}
WRITTEN = {  # 1234.5 in the first column, 4321 in the second
    "US": ['"$1,234.5"', '"4,321"'],
    "German": ["1.234,5 €", "4.321"],
    "French": ["1 234,5", "4 321"],
    "units": ["1234.5%", "4321.0 kg"],
}


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("rows", [None, 1])
def test_imputed_cells_are_written_as_those_of_their_column(name, rows, tmp_path):
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(UGLY[name], encoding="utf-8")
    with open_table(path) as file, create(output, file) as writer:
        for table in [file.read()] if rows is None else file.chunks(rows):
            values = np.where(np.isnan(table.numbers), [1234.5, 4321.0], np.nan)
            writer.write(table, values)

    with open_table(path) as file:
        table = file.read()
    known = [column[~np.isnan(column)].tolist() for column in table.numbers.T]
    lines = output.read_text(encoding="utf-8").splitlines()
    assert known == list(VALUES[name])
    assert [lines[0], lines[1]] == UGLY[name].splitlines()[:2]
    mark = ";" if ";" in lines[0] else ","
    assert lines[2].startswith(WRITTEN[name][0] + mark)
    assert lines[3].endswith(mark + WRITTEN[name][1])


def test_a_unit_that_appears_late_makes_the_column_text_or_is_an_error(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,y\n1,1\n2,\n$3,2\n", encoding="utf-8")
    with open_table(path) as file:
        assert file.read().numeric == ("y",)
    with open_table(path, numeric=["x", "y"]) as file:
        chunks = file.chunks(2)
        assert next(chunks).numbers[:, 0].tolist() == [1, 2]
        with pytest.raises(FileError, match="not a finite number"):
            next(chunks)


def test_marks_of_thousands_may_appear_late(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text('x,y\n999,1\n998,\n"1,000",2\n', encoding="utf-8")
    with open_table(path) as file:
        assert [table.numbers[:, 0].tolist() for table in file.chunks(2)] == [[999, 998], [1000]]


def test_a_marker_of_missing_values_needs_no_unit(tmp_path):
    path = tmp_path / "marked.csv"
    path.write_text("x,y\n$5,1\n-999,2\n$7,3\n", encoding="utf-8")
    with open_table(path, missing=["-999"]) as file:
        np.testing.assert_array_equal(file.read().numbers[:, 0], [5, np.nan, 7])
