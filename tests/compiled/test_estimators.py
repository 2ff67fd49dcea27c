"""Tables at the edges: estimators do with the compiled core what they do without it."""

import warnings

import numpy as np
import pytest
from helpers.compiled import COMPILED, assert_as_numpy, layouts, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import hirank

pytestmark = pytest.mark.skipif(not COMPILED, reason="requires the compiled core")


def complete(X, r=3, kernel="rbf"):
    """Return a table and new rows as a dictionary of a few steps imputes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hirank.KFMC(n_components=r, kernel=kernel, max_iter=2, random_state=0)
        return [model.fit_transform(X), model.transform(X[::-1])]


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@given(table=tables(max_rows=12, max_columns=5), r=st.integers(1, 12))
@settings(max_examples=25)
def test_any_table_has_the_results_and_errors_of_numpy(kernel, table, r):
    X, observed = table

    # The ridges of the last stages are small: there, rounding grows.
    assert_as_numpy(
        lambda: complete(np.where(observed, X, np.nan), r, kernel), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e150, 1e300, np.inf])
@pytest.mark.parametrize("estimator", [hirank.KFMC, hirank.Imputer])
def test_extreme_values_are_imputed_or_refused_as_in_numpy(estimator, value):
    X = np.random.default_rng(0).normal(size=(12, 3))
    X[:3, 0], X[2, 1], X[2, 0] = np.nan, np.nan, value

    def impute():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return estimator(max_iter=2, random_state=0).fit_transform(X)

    assert_as_numpy(impute, rtol=1e-5, atol=1e-5)


def test_the_layout_of_a_table_does_not_matter():
    X = np.random.default_rng(0).normal(size=(10, 4))
    X[np.arange(10), np.arange(10) % 4] = np.nan
    expected = complete(X)

    for same in layouts(X):
        for found, other in zip(complete(same), expected, strict=True):
            np.testing.assert_array_equal(found, other)
