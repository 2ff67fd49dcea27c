"""Columns of a fit: which have values, how they are scaled, and limits of imputed values."""

from dataclasses import replace

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.core.columns import Columns, check_finite
from hirank.exceptions import InputError


@pytest.fixture
def table():
    """Of five columns, one has no values and one is constant; one row is empty."""
    X = np.random.default_rng(0).normal(3, 2, size=(40, 5))
    X[:, 1], X[:, 3] = np.nan, 7.0
    X[5], X[8, 0], X[9, 3] = np.nan, np.nan, np.nan
    return X


@pytest.fixture
def columns(table):
    return Columns.measure(table, ~np.isnan(table), scale="standard")


def test_columns_without_values_are_dropped_and_constant_ones_do_not_vary(columns):
    assert columns.has_values.tolist() == [True, False, True, True, True]
    assert columns.varying.tolist() == [True, False, True, False, True]
    columns.check()


def test_scaled_rows_have_the_features_that_vary(columns, table):
    scaled = columns.scale(table, ~np.isnan(table))

    assert scaled.X.shape == scaled.observed.shape == (40, 3)
    assert np.isfinite(scaled.X).all()
    assert np.flatnonzero(scaled.empty).tolist() == [5]
    values = np.where(scaled.observed, scaled.X, np.nan)
    np.testing.assert_allclose(np.nanmean(values, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(columns.scaled_means, 0, atol=1e-12)


def test_unscaling_restores_the_units_and_imputes_empty_rows_with_means(columns, table):
    scaled = columns.scale(table, ~np.isnan(table))

    values = columns.unscale(scaled.X, scaled.empty)

    kept = table[:, columns.has_values]
    observed = ~np.isnan(kept)
    np.testing.assert_allclose(values[observed], kept[observed])
    np.testing.assert_allclose(values[5], np.nanmean(kept, axis=0))
    assert (values[:, 2] == 7).all()


def test_single_entries_are_unscaled_as_whole_rows_are(columns, table):
    scaled = columns.scale(table, ~np.isnan(table)).X
    rng = np.random.default_rng(0)
    rows, at = rng.integers(40, size=90), rng.integers(3, size=90)  # some entries twice

    values = columns.unscale_entries(scaled[rows, at], at)

    whole = columns.scaling.backward(scaled)[:, columns.scaling.varying]
    np.testing.assert_array_equal(values, whole[rows, at])
    assert columns.unscale_entries(np.empty(0), np.empty(0, int)).shape == (0,)


def test_imputed_values_are_clipped_and_rounded(columns):
    limits = Bounds(np.array([0.5, -np.inf, -np.inf, 1.2]), np.array([2.0, np.inf, 5.0, 2.7]))
    integers = np.array([False, True, False, True])
    values = np.array([[9.0, 1.4, 9.0, 9.0], [-9.0, 1.6, 0.3, -9.0]])

    limited = replace(columns, bounds=limits, integers=integers).constrain(values, rounded=True)

    np.testing.assert_array_equal(limited, [[2, 1, 5, 2], [0.5, 2, 0.3, 2]])
    assert values[0, 0] == 9


def test_bounds_are_scaled_like_the_values(columns):
    assert columns.scaled_bounds is None
    limits = Bounds(np.full(4, -1.0), np.full(4, 5.0))

    scaled = replace(columns, bounds=limits).scaled_bounds

    expected = columns.scaling.forward(np.array([[-1.0] * 4, [5.0] * 4]))
    np.testing.assert_allclose([scaled.lower, scaled.upper], expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"has_values": np.zeros(5, bool)}, "at least one feature"),
        ({"integers": np.zeros(3, bool)}, "must describe 4 features"),
        ({"bounds": Bounds(np.zeros(3), np.ones(3))}, "bounds must describe 4 features"),
    ],
)
def test_parts_that_do_not_fit_together_are_an_error(columns, change, message):
    with pytest.raises(ValueError, match=message):
        replace(columns, **change).check()


def test_imputed_values_that_are_not_finite_are_an_error_with_their_rows():
    values, observed = np.ones((6, 2)), np.zeros((6, 2), bool)
    values[[1, 4], 0] = np.inf, np.nan
    observed[4] = True

    with pytest.raises(InputError, match=r"1 row are not finite \(positions 1\)"):
        check_finite(values, observed)
