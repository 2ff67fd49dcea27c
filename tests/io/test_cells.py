import numpy as np
import pytest

from hirank.io.cells import Missing, number, parse, whole_numbers
from hirank.io.text_output import as_text

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
    assert parse([cell, "1"], Missing()).values.tolist() == [NUMBERS[cell], 1.0]
    assert number(cell, Missing()) == NUMBERS[cell]


@pytest.mark.parametrize("cell", WORDS)
def test_words_are_no_numbers(cell):
    parsed = parse(["1", cell, "2"], Missing())
    assert parsed.strays == [(1, cell)]
    assert parsed.n_strays == 1


@pytest.mark.parametrize(
    "cell", ["", "  ", "NaN", "nan", "-nan", "NULL", "na", "N/A", "n/a", " None "]
)
def test_missing_words(cell):
    parsed = parse(["1", cell], Missing())
    np.testing.assert_array_equal(parsed.values, [1.0, np.nan])
    assert parsed.observed == 1
    assert parsed.n_strays == 0


def test_extra_missing_values():
    missing = Missing(["-200", "Error", 999])
    parsed = parse(["-200", "-200.0", "-2e2", "ERROR", "999", "9990"], missing)
    np.testing.assert_array_equal(parsed.values, [np.nan] * 5 + [9990])
    assert parsed.whole


def test_decimal_comma():
    parsed = parse(["1,5", "2", "NA", "-,5e1"], Missing(), ",")
    np.testing.assert_array_equal(parsed.values, [1.5, 2.0, np.nan, -5.0])
    assert not parsed.whole
    assert parse(["1,5", "2.5"], Missing(), ",").strays == [(1, "2.5")]


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
    assert parse(cells, Missing()).whole is whole


def test_a_column_of_words_is_given_up():
    parsed = parse(["a", "b", "1"], Missing())
    assert parsed.hopeless
    assert not parse(["a", "2", "1"], Missing()).hopeless


def test_whole_numbers():
    values = np.array([1.0, 1.5, np.nan, np.inf, 2.0**53, -3.0])
    assert whole_numbers(values).tolist() == [True, False, False, False, False, True]


def test_fills_are_the_shortest_of_single_precision():
    random = np.random.default_rng(0)
    values = random.normal(size=2000) * 10.0 ** random.integers(-30, 30, 2000)
    texts = as_text(values)
    back = np.array(texts, dtype=float)
    np.testing.assert_array_equal(back.astype(np.float32), values.astype(np.float32))
    assert max(len(t.split("e")[0].strip("-").replace(".", "").strip("0")) for t in texts) <= 9


def test_fills_out_of_range_digits_and_comma():
    assert as_text(np.array([1e300, 1e-300, 0.0, np.nan, 0.1])) == [
        "1e+300",
        "1e-300",
        "0.0",
        "",
        "0.1",
    ]
    assert as_text(np.array([1 / 3, 1e6, np.nan]), 3, ",") == ["0,333", "1e+06", ""]
