import numpy as np
import pytest

from hirank.io.cells import Missing, format_numbers, parse_column, parse_number

NUMBERS = {"1e5": 1e5, "+3": 3.0, " 4 ": 4.0, "007": 7.0, ".5": 0.5, "5.": 5.0, "-2.5E-3": -0.0025}
WORDS = [
    "inf",
    "-Infinity",
    "1_000",
    "0x10",
    "1,234.5",
    "true",
    "1e999",
    "٣",
    "1 2",
    "abc",
    "1e",
    ".",
]


@pytest.mark.parametrize("cell", NUMBERS)
def test_numbers(cell):
    assert parse_column([cell, "1"], Missing()).values.tolist() == [NUMBERS[cell], 1.0]
    assert parse_number(cell, Missing()) == NUMBERS[cell]


@pytest.mark.parametrize("cell", WORDS)
def test_other_words_are_invalid(cell):
    parsed = parse_column(["1", cell, "2"], Missing())
    assert parsed.invalid == [(1, cell)]
    assert parsed.n_invalid == 1


@pytest.mark.parametrize(
    "cell", ["", "  ", "NaN", "nan", "-nan", "NULL", "na", "N/A", "n/a", " None "]
)
def test_missing_words(cell):
    parsed = parse_column(["1", cell], Missing())
    np.testing.assert_array_equal(parsed.values, [1.0, np.nan])
    assert parsed.n_observed == 1
    assert parsed.n_invalid == 0


def test_extra_missing_values():
    missing = Missing(["-200", "Error", 999])
    parsed = parse_column(["-200", "-200.0", "-2e2", "ERROR", "999", "9990"], missing)
    np.testing.assert_array_equal(parsed.values, [np.nan] * 5 + [9990])
    assert parsed.whole


def test_decimal_comma():
    parsed = parse_column(["1,5", "2", "NA", "-,5e1"], Missing(), ",")
    np.testing.assert_array_equal(parsed.values, [1.5, 2.0, np.nan, -5.0])
    assert not parsed.whole
    assert parse_column(["1,5", "2.5"], Missing(), ",").invalid == [(1, "2.5")]


@pytest.mark.parametrize(
    ("cells", "whole"),
    [
        (["1", "2"], True),
        (["1", "", "None"], True),
        (["1", "2.0"], False),
        (["1", "NA", "1e3"], False),
        ([""], False),
    ],
)
def test_whole(cells, whole):
    assert parse_column(cells, Missing()).whole is whole


def test_a_column_of_mostly_words_is_text():
    parsed = parse_column(["a", "b", "1"], Missing())
    assert parsed.is_text
    assert not parse_column(["a", "2", "1"], Missing()).is_text


def test_numbers_are_written_with_the_digits_of_single_precision():
    random = np.random.default_rng(0)
    values = random.normal(size=2000) * 10.0 ** random.integers(-30, 30, 2000)
    texts = format_numbers(values)
    back = np.array(texts, dtype=float)
    np.testing.assert_array_equal(back.astype(np.float32), values.astype(np.float32))
    assert max(len(t.split("e")[0].strip("-").replace(".", "").strip("0")) for t in texts) <= 9


def test_extreme_numbers_given_digits_and_a_decimal_comma():
    assert format_numbers(np.array([1e300, 1e-300, 0.0, np.nan, 0.1])) == [
        "1e+300",
        "1e-300",
        "0.0",
        "",
        "0.1",
    ]
    assert format_numbers(np.array([1 / 3, 1e6, np.nan]), 3, ",") == ["0,333", "1e+06", ""]


def test_large_markers_match_only_the_same_number():
    cells = [str(2**60 + i) for i in range(-64, 65)] + ["1152921504606846976.0", "NA"]

    column = parse_column(cells, Missing([str(2**60)]))

    assert np.flatnonzero(np.isnan(column.values)).tolist() == [64, 129, 130]


def test_markers_match_in_any_notation():
    cells = ["-200", "-200.0", "-2e2", "-200,5", "-200.00000000000000000001", "3"]
    found = [parse_number(cell, Missing([-200])) for cell in cells]
    assert [value is not None and bool(np.isnan(value)) for value in found] == [
        *[True] * 3,
        *[False] * 3,
    ]
