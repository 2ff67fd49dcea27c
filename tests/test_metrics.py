from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hirank.metrics import (
    clustering_error,
    missing_relative_error,
    relative_error,
    standardized_rmse,
)

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(50, 4)) * [1, 10, 100, 1000] + [0, 5, 0, 5]
OBSERVED = RNG.random(TRUTH.shape) >= 0.4
FILLED = np.where(OBSERVED, TRUTH, TRUTH + RNG.normal(size=TRUTH.shape))


def test_relative_errors_are_ratios_of_norms():
    whole = np.linalg.norm(FILLED - TRUTH) / np.linalg.norm(TRUTH)
    assert relative_error(FILLED, TRUTH) == pytest.approx(whole, rel=1e-14)
    missing = np.linalg.norm((FILLED - TRUTH)[~OBSERVED]) / np.linalg.norm(TRUTH[~OBSERVED])
    assert missing_relative_error(FILLED, TRUTH, OBSERVED) == pytest.approx(missing, rel=1e-14)
    assert relative_error(TRUTH, TRUTH) == 0
    assert relative_error(np.zeros_like(TRUTH), TRUTH) == 1


def test_standardized_rmse_is_the_rmse_of_the_standardized_table():
    mean, spread = TRUTH.mean(axis=0), TRUTH.std(axis=0)
    difference = (FILLED - mean) / spread - (TRUTH - mean) / spread
    expected = np.sqrt(np.mean(difference[~OBSERVED] ** 2))
    assert standardized_rmse(FILLED, TRUTH, OBSERVED) == pytest.approx(expected, rel=1e-10)


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_standardized_rmse_does_not_depend_on_units(scale, shift):
    before = standardized_rmse(FILLED, TRUTH, OBSERVED)
    units = np.array([1, scale, 1, 1])
    after = standardized_rmse(FILLED * units + shift, TRUTH * units + shift, OBSERVED)
    assert after == pytest.approx(before, rel=1e-6)


def test_column_means_have_an_error_of_about_one():
    truth = np.random.default_rng(0).normal(size=(2000, 5)) * [1, 2, 3, 4, 5]
    observed = np.random.default_rng(1).random(truth.shape) >= 0.5
    mean = np.broadcast_to(truth.mean(axis=0), truth.shape)
    assert standardized_rmse(mean, truth, observed) == pytest.approx(1, abs=0.03)


def test_entries_of_constant_features_are_ignored():
    constant = np.full((50, 1), 0.1)  # its computed standard deviation is not quite 0
    truth, filled = np.hstack([TRUTH, constant]), np.hstack([FILLED, constant + 100])
    observed = np.hstack([OBSERVED, np.zeros((50, 1), bool)])
    assert standardized_rmse(filled, truth, observed) == standardized_rmse(FILLED, TRUTH, OBSERVED)
    with pytest.raises(ValueError, match="constant in the truth"):
        standardized_rmse(filled, truth, observed | (truth != 0.1))


def test_only_missing_entries_are_used():
    """The first samples of a stream may never have been imputed."""
    partial = np.where(OBSERVED, np.nan, FILLED)
    unknown = np.where(OBSERVED, np.nan, TRUTH)
    expected = missing_relative_error(FILLED, TRUTH, OBSERVED)
    assert missing_relative_error(partial, unknown, OBSERVED) == expected
    assert standardized_rmse(partial, TRUTH, OBSERVED) == standardized_rmse(FILLED, TRUTH, OBSERVED)


@given(
    true=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    data=st.data(),
)
def test_clustering_error_is_the_least_over_all_matchings(true, data):
    found = data.draw(st.lists(st.integers(0, 3), min_size=len(true), max_size=len(true)))
    wrong = [
        np.mean([names[label] != t for t, label in zip(true, found, strict=True)])
        for names in permutations(range(4))
    ]
    assert clustering_error(true, found) == pytest.approx(min(wrong), abs=1e-15)


@pytest.mark.parametrize(
    ("true", "found", "error"),
    [
        ([1, 1, 2, 2], ["x", "x", "y", "y"], 0),
        ([1, 1, 1, 1], [1, 2, 3, 4], 0.75),  # more clusters than classes
        ([1, 2, 3, 4], [1, 1, 1, 1], 0.75),  # fewer
        ([0.5, 0.5, 1.5], np.array([7, 7, 8], dtype=np.uint8), 0),
    ],
)
def test_clustering_error_when_counts_and_types_differ(true, found, error):
    assert clustering_error(true, found) == error


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: relative_error(TRUTH[:1], TRUTH), "same shape"),  # would broadcast
        (lambda: relative_error(TRUTH[0], TRUTH[0]), "same shape"),
        (lambda: relative_error(FILLED * np.nan, TRUTH), "filled has NaN"),
        (lambda: relative_error(FILLED, TRUTH * np.inf), "truth has NaN or infinite"),
        (lambda: relative_error(FILLED, 0 * TRUTH), "all zero"),
        (lambda: missing_relative_error(FILLED, TRUTH, OBSERVED[:, :1]), "observed must be"),
        (lambda: missing_relative_error(FILLED, TRUTH, OBSERVED * 1.0), "bool array"),
        (lambda: missing_relative_error(FILLED, TRUTH, OBSERVED | True), "without missing entries"),
        (
            lambda: missing_relative_error(np.where(OBSERVED, FILLED, np.nan), TRUTH, OBSERVED),
            "filled has NaN",
        ),
        (lambda: missing_relative_error(FILLED, TRUTH * np.nan, OBSERVED), "truth has NaN"),
        (lambda: standardized_rmse(FILLED * np.nan, TRUTH, OBSERVED), "filled has NaN"),
        (
            lambda: standardized_rmse(FILLED, np.where(OBSERVED, np.nan, TRUTH), OBSERVED),
            "truth has NaN",
        ),
        (lambda: standardized_rmse(FILLED, TRUTH, OBSERVED | True), "without missing entries"),
        (lambda: clustering_error([1, 2], [1]), "got 2 and 1 labels"),
        (lambda: clustering_error([], []), "true must be a list of labels"),
        (lambda: clustering_error([1, 2], [[1, 2]]), "found must be a list of labels"),
        (lambda: clustering_error([1, 2], [1.0, np.nan]), "found has NaN"),
    ],
)
def test_wrong_arguments_are_errors(measure, message):
    with pytest.raises(ValueError, match=message):
        measure()


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_errors_do_not_depend_on_units(unit):
    truth = unit * np.array([[1.0, 100.0], [3.0, 300.0]])
    filled = unit * np.array([[1.0, 150.0], [2.5, 300.0]])
    observed = np.array([[True, False], [False, True]])
    assert standardized_rmse(filled, truth, observed) == pytest.approx(0.5)
    expected = relative_error(filled / unit, truth / unit)
    assert relative_error(filled, truth) == pytest.approx(expected)
