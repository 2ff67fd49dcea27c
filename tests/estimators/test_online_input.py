"""Rows that are odd, empty, extreme or wrong, in the middle of a stream or at its start."""

import warnings

import numpy as np
import pytest
from helpers.saved_state import differences

from hirank import OnlineKFMC
from hirank.metrics import missing_relative_error

QUICK = {"window": 60, "n_start": 40, "batch_size": 20, "max_iter": 10, "random_state": 0}


@pytest.fixture(params=["window", "paper"])
def mode(request):
    return request.param


@pytest.fixture
def new(mode):
    return lambda **changes: OnlineKFMC(**{"mode": mode, **QUICK, **changes})


@pytest.fixture
def holes(stream):
    return stream.holes.copy()


def error_of(model, stream, rows=slice(100, 200)):
    filled = model.transform(stream.holes[rows])
    return missing_relative_error(filled, stream.truth[rows], stream.observed[rows])


@pytest.mark.parametrize("method", ["partial_fit", "partial_fit_transform", "transform"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows[:, :7], "7 features.*expecting 8"),
        (lambda rows: np.hstack([rows, rows]), "16 features.*expecting 8"),
        (lambda rows: rows[0], "1D array"),
        (lambda rows: rows[:0], r"0 sample\(s\)"),
        (lambda rows: np.where(rows > 0, np.inf, rows), "infinity"),
        (lambda rows: [["a"] * 8], "could not convert string"),
    ],
)
def test_wrong_rows_are_refused_and_leave_no_trace(new, holes, method, spoil, message):
    model = new().partial_fit(holes[:55])
    before = model.get_state()
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(spoil(holes[55:90]))
    assert not differences(model.get_state(), before)


def test_wrong_first_rows_leave_no_trace(new, holes):
    model = new()
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((3, 5), np.inf))
    assert not hasattr(model, "n_features_in_")
    assert model.partial_fit(holes[:50]).n_features_in_ == 8


def test_an_empty_row_is_filled_with_means_and_a_warning(new, holes):
    model = new(self_score="off").partial_fit(holes[:60])
    rows = holes[60:70]
    rows[4] = np.nan
    expected = model.transform(np.delete(rows, 4, axis=0))
    with pytest.warns(UserWarning, match=r"1 row\(s\).*not learned from and are filled"):
        filled = model.partial_fit_transform(rows)
    assert (np.delete(filled, 4, axis=0) == expected).all()
    np.testing.assert_allclose(filled[4], np.nanmean(holes[:60], axis=0), atol=0.3)
    assert (filled[4] == model._stream.model.means).all()
    with pytest.warns(UserWarning, match=r"1 row\(s\) have no observed entry. They were not"):
        model.partial_fit(rows[4:5])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.filterwarnings("ignore:.*no observed entry")
def test_transform_fills_an_empty_row_with_means(new, holes, scale):
    model = new(scale=scale).partial_fit(holes[:60])
    filled = model.transform(np.full((1, 8), np.nan))
    np.testing.assert_allclose(filled[0], np.nanmean(holes[:60], axis=0), atol=0.3)
    np.testing.assert_allclose(filled[0], model._stream.model.means)


def test_a_stream_that_starts_with_empty_rows(new, stream):
    model, plain = new(), new()
    with pytest.warns(UserWarning, match=r"50 row\(s\)"):
        filled = model.partial_fit_transform(np.full((50, 8), np.nan))
    assert (filled == 0).all()
    assert model.n_samples_seen_ == 50
    model.partial_fit(stream.holes[:100])
    assert error_of(model, stream) == pytest.approx(
        error_of(plain.partial_fit(stream.holes[:100]), stream), rel=0.5
    )


def test_a_table_of_empty_rows_is_an_error(new):
    with pytest.raises(ValueError, match="nothing to learn from"):
        new().fit(np.full((50, 8), np.nan))


def test_a_constant_stream_is_filled_with_its_values(new):
    rows = np.tile(np.arange(8.0), (100, 1))
    rows[::3, 2] = rows[1::3, 5] = np.nan
    model = new()
    filled = model.partial_fit_transform(rows)
    assert (filled == np.arange(8)).all()
    assert (model.transform(rows) == np.arange(8)).all()
    assert np.isnan(model.recent_error_)


def test_a_constant_stream_that_starts_to_vary_is_learned(stream):
    model = OnlineKFMC(**QUICK).partial_fit(np.ones((70, 8)))
    filled = model.partial_fit_transform(stream.holes)
    assert np.isfinite(filled).all()
    assert error_of(model, stream) < 0.2


def test_in_paper_mode_what_was_constant_at_the_start_stays_finite(stream):
    model = OnlineKFMC(mode="paper", **QUICK).partial_fit(np.ones((70, 8)))
    filled = model.partial_fit_transform(stream.holes)
    assert (filled[~stream.observed] == 1).all()


def test_duplicates_of_one_row(new, holes):
    rows = np.tile(np.nan_to_num(holes[0], nan=2.0), (120, 1))
    rows[50:, 1] = np.nan
    filled = new().partial_fit_transform(rows)
    assert (filled == rows[0]).all()


def test_duplicates_of_a_few_rows(new, stream):
    truth = np.tile(stream.truth[:3], (50, 1))
    holes = np.where(np.random.default_rng(0).random(truth.shape) < 0.2, np.nan, truth)
    model = new().partial_fit(holes)
    filled = model.transform(holes)
    assert np.isfinite(filled).all()
    if model.mode == "window":
        assert missing_relative_error(filled, truth, ~np.isnan(holes)) < 0.1


def test_a_feature_without_values_is_filled_with_0_until_it_comes_alive(stream):
    rows = stream.holes.copy()
    rows[:110, 3] = np.nan
    model = OnlineKFMC(**QUICK)
    filled = model.partial_fit_transform(rows[:110])
    assert (filled[:, 3] == 0).all()
    filled = model.partial_fit(rows[110:]).transform(rows[:100])
    wrong = np.abs(filled - stream.truth[:100])[:, 3]
    assert wrong.mean() < 0.3 * stream.truth[:, 3].std()


def test_in_paper_mode_such_a_feature_stays_finite(stream):
    rows = stream.holes.copy()
    rows[:110, 3] = np.nan
    filled = OnlineKFMC(mode="paper", **QUICK).partial_fit_transform(rows)
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-6])
def test_values_of_a_wrong_unit_are_overcome(new, stream, factor):
    usual = error_of(new().partial_fit(stream.holes), stream)
    model = new().partial_fit(stream.holes[:100])
    filled = model.partial_fit_transform(factor * stream.holes[100:140])
    assert np.isfinite(filled).all()
    assert model.partial_fit(stream.holes[140:]).recent_error_ >= 0
    assert error_of(model, stream) < {"window": 0.05, "paper": 1.1 * usual}[model.mode]


def test_one_wild_value_harms_neither_other_rows_nor_the_model_for_long(new, stream):
    model = new().partial_fit(stream.holes[:100])
    rows = stream.holes[100:120].copy()
    rows[3, np.flatnonzero(stream.observed[103])[0]] = 1e8
    filled = model.partial_fit_transform(rows)
    assert np.isfinite(filled).all()
    others = np.arange(20) != 3
    assert (np.abs(filled[others]) < 20).all()
    model.partial_fit(stream.holes[120:])
    assert error_of(model, stream) < {"window": 0.05, "paper": 0.5}[model.mode]


@pytest.mark.parametrize("self_score", ["watch", "off"])
def test_nor_without_react(stream, self_score):
    model = OnlineKFMC(**QUICK, self_score=self_score).partial_fit(stream.holes[:100])
    row = stream.truth[100:101].copy()
    row[0, 0] = 1e8
    model.partial_fit(row).partial_fit(stream.holes[101:])
    assert error_of(model, stream) < 0.5


def test_a_single_feature(new, stream):
    rows = stream.holes[:120, :1]
    with pytest.warns(UserWarning, match="no observed entry"):
        filled = new().partial_fit_transform(rows)
    missing = np.isnan(rows)
    assert missing.any()
    np.testing.assert_allclose(filled[missing], np.nanmean(rows), atol=0.3)


def test_whole_numbers(new, stream):
    ints = np.where(stream.observed, np.rint(10 * stream.truth), -999).astype(int)
    model = new(missing_values=-999)
    filled = model.partial_fit_transform(ints[:120])
    assert filled.dtype == np.float64
    assert np.isfinite(filled).all()
    known = ints[:120] != -999
    assert (filled[known] == ints[:120][known]).all()
    assert not (filled == -999).any()


def test_lists_and_read_only_rows(new, holes):
    expected = new().partial_fit_transform(holes[:80])
    frozen = holes[:80].copy()
    frozen.flags.writeable = False
    for rows in (frozen, frozen.tolist(), np.asfortranarray(frozen)):
        np.testing.assert_array_equal(new().partial_fit_transform(rows), expected)


def test_nothing_missing_gives_the_rows_back(new, stream):
    model = new()
    np.testing.assert_array_equal(model.partial_fit_transform(stream.truth), stream.truth)
    assert error_of(model, stream) < {"window": 0.05, "paper": 0.5}[model.mode]


def test_transform_warns_of_a_row_without_values(new, stream):
    model = new().partial_fit(stream.holes[:100])
    row = np.full((1, 8), np.nan)
    with pytest.warns(UserWarning, match="no observed entry to go by"):
        model.transform(row)


def test_learning_alone_says_nothing_of_fills(stream):
    rows = np.column_stack([stream.holes[:60], np.ones(60)])
    model = OnlineKFMC(**QUICK).partial_fit(rows)
    silent = np.full((20, 9), np.nan)
    silent[:, 8] = 1
    model.partial_fit(silent)  # a warning would be an error here


def test_no_value_makes_the_score_infinite(new, stream):
    model = new().partial_fit(stream.holes[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(1e200 * stream.holes[100:120])
    assert np.isfinite(model.recent_error_)


def test_passes_of_the_paper_are_told(stream, capsys):
    OnlineKFMC(5, mode="paper", n_passes=3, max_iter=5, verbose=1).fit(stream.holes[:30])
    assert capsys.readouterr().err.count("pass ") == 3
