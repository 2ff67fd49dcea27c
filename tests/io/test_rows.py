"""Rows of a stream, one per line."""

import json
import math

import pytest

from hirank.io.cell_format import BadLine, CellFormat
from hirank.io.dialect import Dialect
from hirank.io.rows import Delimited, JsonLines, split


def test_cells_keep_their_quotes_and_numbers_their_digits():
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


def test_json_lines_are_read_as_json_reads_them():
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


def test_numbers_of_json_are_compared_with_markers_exactly():
    cells = CellFormat(["1152921504606846976"], ".", None)

    assert math.isnan(cells.json_number(1152921504606846976))
    assert cells.json_number(1152921504606846977) == 2.0**60
