"""Rows that are empty, constant, extreme or wrong, at the start of a stream or later."""

import warnings

import numpy as np
import pytest
from helpers.estimators import ONLINE, WINDOW
from helpers.saved_state import differences

from hirank import OnlineImputer, OnlineKFMC
from hirank.exceptions import EmptyRowsWarning, InputError, SkippedRowsWarning
from hirank.metrics import missing_relative_error


@pytest.fixture
def X(stream):
    return stream.X.copy()


def error(model, stream, rows=slice(100, 200)):
    filled = model.transform(stream.X[rows])
    return missing_relative_error(filled, stream.truth[rows], stream.observed[rows])


def test_rows_that_cannot_be_used_are_an_error_and_change_nothing(new, X):
    model, rows = new().partial_fit(X[:55]), X[55:90]
    before = model.get_state()
    cases = [
        (rows[:, :7], "7 features.*expecting 8"),
        (np.hstack([rows, rows]), "16 features.*expecting 8"),
        (rows[0], "1D array"),
        (rows[:0], r"0 sample\(s\)"),
        (np.where(rows > 0, np.inf, rows), "infinity"),
        ([["a"] * 8], "could not convert string"),
    ]
    for wrong, message in cases:
        for method in (model.partial_fit, model.partial_fit_transform, model.transform):
            with pytest.raises(InputError, match=message):
                method(wrong)
            assert not differences(model.get_state(), before)


def test_first_rows_that_cannot_be_used_change_nothing(new, X):
    model = new()
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((3, 5), np.inf))
    assert not hasattr(model, "n_features_in_")
    assert model.partial_fit(X[:50]).n_features_in_ == 8


def test_an_empty_row_is_imputed_with_means_and_a_warning(new, X):
    model = new(drift_detection="off").partial_fit(X[:60])
    rows = X[60:70]
    rows[4] = np.nan
    expected = model.transform(np.delete(rows, 4, axis=0))
    with pytest.warns(EmptyRowsWarning) as caught:
        filled = model.partial_fit_transform(rows)
    assert caught[0].message.rows == (4,)
    assert (np.delete(filled, 4, axis=0) == expected).all()
    np.testing.assert_allclose(filled[4], np.nanmean(X[:60], axis=0), atol=0.3)
    assert (filled[4] == model._stream.means()).all()
    with pytest.warns(SkippedRowsWarning) as caught:
        model.partial_fit(rows[4:5])
    assert caught[0].message.count == 1


@pytest.mark.parametrize("scale", [True, False])
def test_transform_imputes_an_empty_row_with_means(new, X, scale):
    model = new(scale=scale).partial_fit(X[:60])
    with pytest.warns(EmptyRowsWarning):
        filled = model.transform(np.full((1, 8), np.nan))
    np.testing.assert_allclose(filled[0], np.nanmean(X[:60], axis=0), atol=0.3)
    np.testing.assert_allclose(filled[0], model._stream.means())


def test_a_stream_that_starts_with_empty_rows(new, stream):
    model, without = new(), new()
    with pytest.warns(EmptyRowsWarning) as caught:
        filled = model.partial_fit_transform(np.full((50, 8), np.nan))
    assert len(caught[0].message.rows) == 50
    assert np.isnan(filled).all()
    assert model.n_samples_seen_ == 50
    model.partial_fit(stream.X[:100])
    assert error(model, stream) == pytest.approx(
        error(without.partial_fit(stream.X[:100]), stream), rel=0.5
    )


def test_a_table_of_empty_rows_is_an_error(new):
    with pytest.raises(InputError, match="no observed values"):
        new().fit(np.full((50, 8), np.nan))


def test_a_constant_stream_is_imputed_with_its_values(new):
    rows = np.tile(np.arange(8.0), (100, 1))
    rows[::3, 2] = rows[1::3, 5] = np.nan
    model = new()
    filled = model.partial_fit_transform(rows)
    assert (filled == np.arange(8)).all()
    assert (model.transform(rows) == np.arange(8)).all()
    assert np.isnan(model.recent_error_)


def test_a_constant_stream_that_starts_to_vary_is_learned(stream):
    model = OnlineImputer(**WINDOW).partial_fit(np.ones((70, 8)))
    filled = model.partial_fit_transform(stream.X)
    assert np.isfinite(filled).all()
    assert error(model, stream) < 0.2


def test_algorithm_2_imputes_features_that_were_constant_at_the_start_with_their_value(stream):
    model = OnlineKFMC(**ONLINE).partial_fit(np.ones((70, 8)))
    filled = model.partial_fit_transform(stream.X)
    assert (filled[~stream.observed] == 1).all()


def test_copies_of_one_row(new, X):
    rows = np.tile(np.nan_to_num(X[0], nan=2.0), (120, 1))
    rows[50:, 1] = np.nan
    filled = new().partial_fit_transform(rows)
    assert (filled == rows[0]).all()


def test_copies_of_a_few_rows(new, stream):
    truth = np.tile(stream.truth[:3], (50, 1))
    X = np.where(np.random.default_rng(0).random(truth.shape) < 0.2, np.nan, truth)
    model = new().partial_fit(X)
    filled = model.transform(X)
    assert np.isfinite(filled).all()
    if isinstance(model, OnlineImputer):
        assert missing_relative_error(filled, truth, ~np.isnan(X)) < 0.1


def test_a_feature_without_values_stays_missing_until_it_has_some(stream):
    rows = stream.X.copy()
    rows[:110, 3] = np.nan
    model = OnlineImputer(**WINDOW)
    filled = model.partial_fit_transform(rows[:110])
    assert np.isnan(filled[:, 3]).all()
    assert not np.isnan(np.delete(filled, 3, axis=1)).any()
    filled = model.partial_fit(rows[110:]).transform(rows[:100])
    wrong = np.abs(filled - stream.truth[:100])[:, 3]
    assert wrong.mean() < 0.3 * stream.truth[:, 3].std()


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_a_stream_recovers_from_values_in_a_wrong_unit(new, stream, factor):
    usual = error(new().partial_fit(stream.X), stream)
    model = new().partial_fit(stream.X[:100])
    filled = model.partial_fit_transform(factor * stream.X[100:140])
    assert np.isfinite(filled).all()
    assert model.partial_fit(stream.X[140:]).recent_error_ >= 0
    assert error(model, stream) < (0.05 if isinstance(model, OnlineImputer) else 1.1 * usual)


def test_one_outlier_harms_neither_other_rows_nor_the_model_for_long(new, stream):
    model = new().partial_fit(stream.X[:100])
    rows = stream.X[100:120].copy()
    rows[3, np.flatnonzero(stream.observed[103])[0]] = 1e8
    filled = model.partial_fit_transform(rows)
    assert np.isfinite(filled).all()
    others = np.arange(20) != 3
    assert (np.abs(filled[others]) < 20).all()
    model.partial_fit(stream.X[120:])
    assert error(model, stream) < (0.05 if isinstance(model, OnlineImputer) else 0.5)


@pytest.mark.parametrize("drift_detection", ["monitor", "off"])
def test_one_outlier_does_no_harm_without_refits_either(stream, drift_detection):
    model = OnlineImputer(**WINDOW, drift_detection=drift_detection).partial_fit(stream.X[:100])
    row = stream.truth[100:101].copy()
    row[0, 0] = 1e8
    model.partial_fit(row).partial_fit(stream.X[101:])
    assert error(model, stream) < 0.5


def test_a_single_feature(new, stream):
    rows = stream.X[:120, :1]
    with pytest.warns(EmptyRowsWarning):
        filled = new().partial_fit_transform(rows)
    missing = np.isnan(rows)
    assert missing.any()
    np.testing.assert_allclose(filled[missing], np.nanmean(rows), atol=0.3)


def test_rows_of_integers_are_imputed_with_floats(new, stream):
    ints = np.where(stream.observed, np.rint(10 * stream.truth), -999).astype(int)
    model = new(missing_values=-999)
    filled = model.partial_fit_transform(ints[:120])
    assert filled.dtype == np.float64
    assert np.isfinite(filled).all()
    known = ints[:120] != -999
    assert (filled[known] == ints[:120][known]).all()
    assert not (filled == -999).any()


def test_rows_may_be_lists_or_read_only(new, X):
    expected = new().partial_fit_transform(X[:80])
    frozen = X[:80].copy()
    frozen.flags.writeable = False
    for rows in (frozen, frozen.tolist(), np.asfortranarray(frozen)):
        np.testing.assert_array_equal(new().partial_fit_transform(rows), expected)


def test_complete_rows_are_returned_as_they_are(new, stream):
    model = new()
    np.testing.assert_array_equal(model.partial_fit_transform(stream.truth), stream.truth)
    assert error(model, stream) < (0.05 if isinstance(model, OnlineImputer) else 0.5)


def test_learning_alone_does_not_warn_of_imputed_values(stream):
    rows = np.column_stack([stream.X[:60], np.ones(60)])
    model = OnlineImputer(**WINDOW).partial_fit(rows)
    silent = np.full((20, 9), np.nan)
    silent[:, 8] = 1
    model.partial_fit(silent)  # a warning would be an error here


def test_no_value_makes_the_recent_error_infinite(new, stream):
    model = new().partial_fit(stream.X[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(1e200 * stream.X[100:120])
    assert np.isfinite(model.recent_error_)


def test_verbose_prints_each_pass_of_algorithm_2(stream, capsys):
    OnlineKFMC(5, n_passes=3, max_iter=5, verbose=1).fit(stream.X[:30])
    assert capsys.readouterr().err.count("pass ") == 3


def test_a_feature_without_values_in_the_first_rows_stays_missing_with_algorithm_2(stream):
    rows = stream.X.copy()
    rows[:110, 3] = np.nan

    filled = OnlineKFMC(**ONLINE).partial_fit(rows).transform(rows[:110])

    assert np.isnan(filled[:, 3]).all()
    assert not np.isnan(np.delete(filled, 3, axis=1)).any()
