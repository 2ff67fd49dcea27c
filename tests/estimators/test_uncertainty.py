"""Intervals and draws around imputed values."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.estimators import fast_imputer, remove_entries

from hirank.exceptions import FewEntriesWarning, ParameterError


def test_intervals_contain_the_imputed_values_and_grow_with_coverage(fitted, table):
    filled, missing = fitted.transform(table), np.isnan(table)
    widths = []

    for coverage in (0.5, 0.8, 0.95, 0.999):
        lower, upper = fitted.interval(table, coverage)
        assert (lower <= filled).all()
        assert (filled <= upper).all()
        assert (lower == upper)[~missing].all()
        widths.append((upper - lower)[missing])

    assert all((a <= b + 1e-12).all() for a, b in pairwise(widths))
    assert (widths[0] > 0).all()


def test_intervals_contain_the_truth_as_often_as_they_should():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 3))
    truth = latent @ rng.normal(size=(3, 10)) + 0.3 * rng.normal(size=(400, 10))
    X = remove_entries(rng, truth)
    model = fast_imputer().fit(X)

    for coverage in (0.5, 0.9):
        lower, upper = model.interval(X, coverage)
        inside = ((lower <= truth) & (truth <= upper))[np.isnan(X)].mean()
        assert abs(inside - coverage) < 0.07


@pytest.mark.parametrize("seed", [0, 2])
def test_intervals_of_a_time_series_contain_the_truth_as_often_as_they_should(seed):
    rng = np.random.default_rng(seed)
    paths = np.cumsum(rng.normal(size=(400, 3)), axis=0)
    truth = paths @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(400, 6))
    X = remove_entries(rng, truth, 0.3)

    lower, upper = fast_imputer(time=True).fit(X).interval(X, 0.9)

    assert ((lower <= truth) & (truth <= upper))[np.isnan(X)].mean() > 0.84


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, np.nan, "0.9", None, True])
def test_coverage_must_be_a_probability(fitted, table, coverage):
    with pytest.raises(ParameterError) as caught:
        fitted.interval(table, coverage)

    assert caught.value.parameter == "coverage"


def test_draws_vary_except_at_observed_entries(fitted, table):
    missing = np.isnan(table)

    draws = fitted.sample(table, 5, random_state=0)

    assert draws.shape == (5, *table.shape)
    assert (draws[:, ~missing] == table[~missing]).all()
    assert (draws[:, missing].std(axis=0) > 0).all()
    np.testing.assert_array_equal(draws, fitted.sample(table, 5, random_state=0))
    assert (draws != fitted.sample(table, 5, random_state=1)).any()
    with pytest.raises(ParameterError, match="n_draws"):
        fitted.sample(table, 0)


def test_draws_are_as_far_apart_as_intervals(fitted, table):
    missing = np.isnan(table)

    draws = fitted.sample(table, 60, random_state=0)[:, missing]

    lower, upper = (end[missing] for end in fitted.interval(table, 0.9))
    assert abs(((lower <= draws) & (draws <= upper)).mean() - 0.9) < 0.03


def test_a_fit_gives_the_intervals_around_its_own_values(table):
    X, model = table, fast_imputer()

    filled, lower, upper = model.fit_interval(X, coverage=0.8)

    again = fast_imputer()
    np.testing.assert_array_equal(filled, again.fit_transform(X))
    np.testing.assert_array_equal(np.isnan(X), (lower < upper) & np.isnan(X))
    assert ((lower <= filled) & (filled <= upper)).all()
    width, usual = (upper - lower), np.subtract(*again.interval(X, 0.8)[::-1])
    np.testing.assert_allclose(np.median(width[np.isnan(X)] / usual[np.isnan(X)]), 1, atol=0.1)


def test_intervals_of_a_fit_impute_no_row_again(table, monkeypatch):
    monkeypatch.setattr("hirank.models.stacking.Stack.complete_each", None)  # cannot be called

    assert len(fast_imputer().fit_interval(table)) == 3


def test_intervals_of_a_fit_that_held_nothing_out_are_unknown():
    X = np.outer(np.arange(1.0, 7), [1.0, 2, 3])
    X[2, 1] = np.nan
    with pytest.warns(FewEntriesWarning):
        filled, lower, upper = fast_imputer().fit_interval(X)

    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(np.isnan(lower), np.isnan(X))
    np.testing.assert_array_equal(np.isnan(upper), np.isnan(X))
