import pytest

from hirank.exceptions import ParameterError
from hirank.io.dialect import Dialect, check_delimiter, detect_dialect


@pytest.mark.parametrize(
    ("record", "raw", "cells"),
    [
        ('"a, ""b""",c,,"d"', ['"a, ""b"""', "c", "", '"d"'], ['a, "b"', "c", "", "d"]),
        ('5" pipe,x', ['5" pipe', "x"], ['5" pipe', "x"]),
        ('"a"b,c', ['"a"b', "c"], ["ab", "c"]),
        (' 1.50 ,"2"', [" 1.50 ", '"2"'], [" 1.50 ", "2"]),
        ('"x\ny",', ['"x\ny"', ""], ["x\ny", ""]),
    ],
)
def test_raw_cells_keep_their_text(record, raw, cells):
    dialect = Dialect()

    assert dialect.split(record + "\r\n") == (raw, "\r\n")
    assert dialect.cells(record) == cells
    assert dialect.join(raw) == record


@pytest.mark.parametrize(
    ("line", "inside", "is_open"),
    [
        ('"a', False, True),
        ('"a""', False, True),
        ('"a"', False, False),
        ('b"', True, False),
        ('b",c', True, False),
        ('b","c', True, True),
        ("b", True, True),
    ],
)
def test_a_quote_may_be_open_at_the_end_of_a_line(line, inside, is_open):
    assert Dialect().leaves_open(line, inside) == is_open


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [("a,b;c,d", ","), ("a;b", ";"), ("a\tb", "\t"), ('"a,b";c', ";"), ("a", ","), ("a|b", "|")],
)
def test_the_delimiter_of_a_line_is_the_one_with_most_cells(text, delimiter):
    assert detect_dialect(text).delimiter == delimiter


def test_a_delimiter_with_equal_numbers_of_cells_in_all_rows_is_preferred():
    assert detect_dialect("a;b\n1,2;3,4,5\n6;7\n").delimiter == ";"


@pytest.mark.parametrize(
    ("text", "decimal"), [("x;y\n1,5;2\n", ","), ("x;y\n1,5;2.5\n", "."), ("x,y\n1,5\n", ".")]
)
def test_a_decimal_comma_requires_semicolons_and_no_decimal_points(text, decimal):
    assert detect_dialect(text).decimal == decimal


@pytest.mark.parametrize("delimiter", [";;", '"', "\n", ""])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ParameterError, match="delimiter must be one character") as raised:
        check_delimiter(delimiter)
    assert raised.value.parameter == "delimiter"
