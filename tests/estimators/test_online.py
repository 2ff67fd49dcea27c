import numpy as np
import pytest
from helpers.estimators import WINDOW, fast_online
from helpers.saved_state import differences
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hirank import OnlineImputer, OnlineKFMC
from hirank.exceptions import InputError, ParameterError, WarmupWarning
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error


@pytest.fixture
def X(stream):
    return stream.X.copy()


def feed(model, rows, cuts):
    for part in np.split(rows, cuts):
        if len(part):
            model.partial_fit(part)
    return model


def learned(model):
    """The state, of Algorithm 2 without its scores: those are taken call by call."""
    state = model.get_state()["record"]
    return state if isinstance(model, OnlineImputer) else {**state, "scores": None}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_observed_entries_come_back_bit_for_bit(new, stream, dtype, kernel):
    X, observed = stream.X[:90].astype(dtype), stream.observed[:90]
    model = new(kernel=kernel)
    for method in (model.fit_transform, model.partial_fit_transform, model.transform):
        filled = method(X)
        assert filled.dtype == dtype
        assert np.isfinite(filled).all()
        assert (filled[observed] == X[observed]).all()


@pytest.mark.parametrize(("kind", "share"), [(OnlineImputer, 0.1), (OnlineKFMC, 0.95)])
def test_imputed_values_are_better_than_means(kind, stream, share):
    model = fast_online(kind, max_iter=60)
    filled = model.partial_fit(stream.X[:100]).partial_fit_transform(stream.X[100:])
    truth, observed = stream.truth[100:], stream.observed[100:]
    means = np.where(observed, truth, np.nanmean(stream.X, axis=0))
    error = missing_relative_error(filled, truth, observed)
    assert error < share * missing_relative_error(means, truth, observed)


def test_more_rows_make_a_better_model(stream):
    model, errors = OnlineImputer(**{**WINDOW, "window": 300}), []
    for rows in (stream.X[:40], stream.X[40:200]):
        filled = model.partial_fit(rows).transform(stream.X[200:])
        errors.append(missing_relative_error(filled, stream.truth[200:], stream.observed[200:]))
    assert errors[1] < 0.5 * errors[0]


def test_transform_does_not_change_the_model(new, X):
    model = new().partial_fit(X[:110])
    before = model.get_state()
    first = model.transform(X)
    assert not differences(model.get_state(), before)
    assert (model.transform(X) == first).all()


def test_a_row_is_imputed_the_same_alone_and_in_a_batch(new, X):
    model = new().partial_fit(X[:110])
    together = model.transform(X)
    for i in (0, 120, 299):
        np.testing.assert_allclose(model.transform(X[[i]])[0], together[i], rtol=0, atol=1e-9)


def test_rows_that_are_given_are_neither_changed_nor_kept(new, X):
    given = X.copy()
    model = new().partial_fit(given[:50])
    filled = model.partial_fit_transform(given[50:115])
    np.testing.assert_array_equal(given, X)
    before = model.get_state()
    given[:], filled[:] = 7, 7
    assert not differences(model.get_state(), before)


def test_partial_fit_transform_is_transform_and_then_partial_fit(new, X):
    one, two = new().partial_fit(X[:60]), new().partial_fit(X[:60])
    for start, stop in ((60, 67), (67, 80), (80, 100)):
        rows = X[start:stop]
        apart = two.transform(rows)
        two.partial_fit(rows)
        assert (one.partial_fit_transform(rows) == apart).all()
        assert not differences(one.get_state(), two.get_state())


def test_imputing_does_not_change_what_is_learned(new, X):
    one, two = new().partial_fit(X), new()
    two.partial_fit_transform(X)
    assert not differences(one.get_state(), two.get_state())


@pytest.mark.parametrize("step", [1, 7])
def test_what_is_learned_does_not_depend_on_how_rows_are_split_into_calls(new, X, step):
    whole = new().partial_fit(X[:110])
    parts = feed(new(), X[:110], range(step, 110, step))
    assert not differences(learned(parts), learned(whole))


@pytest.mark.parametrize("kind", [OnlineImputer, OnlineKFMC])
@settings(max_examples=4)
@given(cuts=st.sets(st.integers(1, 109), max_size=12))
def test_what_is_learned_does_not_depend_on_any_split(stream, kind, cuts):
    model, rows = fast_online(kind), stream.X[:110]
    parts = feed(clone(model), rows, sorted(cuts))
    assert not differences(learned(parts), learned(model.partial_fit(rows)))


@pytest.mark.filterwarnings("ignore::hirank.exceptions.SkippedRowsWarning")
def test_what_is_learned_does_not_depend_on_the_calls_in_which_empty_rows_come(new, X):
    X[[3, 50, 51, 77, 79]] = np.nan
    whole = new().partial_fit(X[:130])
    parts = feed(new(), X[:130], range(1, 130))
    assert not differences(learned(parts), learned(whole))
    assert whole.n_samples_seen_ == 130


@pytest.mark.filterwarnings("ignore::hirank.exceptions.SkippedRowsWarning")
def test_nothing_is_learned_from_empty_rows(new, X):
    more = np.insert(X[:130], [0, 45, 45, 70], np.nan, axis=0)
    without, mixed = (new(drift_detection="off").partial_fit(rows) for rows in (X[:130], more))
    assert (mixed.dictionary_ == without.dictionary_).all()


def test_the_same_seed_gives_the_same_result(new, X):
    one, two, three = new(), new(), new(random_state=1)
    for model in (one, two, three):
        model.partial_fit(X[:110])
    assert not differences(one.get_state(), two.get_state())
    assert (one.transform(X) != three.transform(X)).any()


def test_before_the_first_fit_transform_is_an_error_with_the_number_of_rows_needed(new, X):
    model = new()
    with pytest.raises(NotFittedError, match="Call partial_fit with the first rows"):
        model.transform(X)
    model.partial_fit(X[:25])
    with pytest.raises(NotFittedError, match="has 25 rows, and needs 15 more"):
        model.transform(X)
    assert model.n_samples_seen_ == 25
    assert model.n_iter_ == 0
    assert not hasattr(model, "dictionary_")
    model.partial_fit(X[25:40])
    assert np.isfinite(model.transform(X)).all()


def test_a_smaller_n_warmup_may_be_set_as_the_error_advises(new, X):
    model = new(n_warmup=50).partial_fit(X[:45]).set_params(n_warmup=40)
    with pytest.raises(NotFittedError, match="needs 1 more"):
        model.transform(X)
    assert np.isfinite(model.partial_fit_transform(X[45:47])).all()
    assert hasattr(model, "dictionary_")


def test_a_smaller_batch_may_be_set_while_rows_are_pending(new, X):
    model = new().partial_fit(X[:55])
    for size, rows in ((5, X[55:57]), (1, X[57:60]), (1, X[60:63])):
        filled = model.set_params(batch_size=size).partial_fit_transform(rows)
        assert filled.shape == rows.shape
        assert np.isfinite(filled).all()


def test_there_are_no_fitted_attributes_before_the_first_row(new):
    for name in ("recent_error_", "error_history_", "n_samples_seen_", "n_iter_", "kernel_"):
        assert not hasattr(new(), name)
    with pytest.raises(NotFittedError):
        new().get_feature_names_out()


def test_rows_before_the_first_fit_are_imputed_with_the_means_so_far_and_a_warning(new, X):
    with pytest.warns(WarmupWarning) as caught:
        filled = new().partial_fit_transform(X[:30])
    assert caught[0].message.count == 30
    means = np.broadcast_to(np.nanmean(X[:30], axis=0), filled.shape)
    missing = np.isnan(X[:30])
    np.testing.assert_allclose(filled[missing], means[missing])


def test_rows_before_the_first_fit_are_imputed_by_it_if_it_comes_in_the_same_call(new, X):
    model = new()
    filled = model.partial_fit_transform(X[:40])
    assert (filled == model.transform(X[:40])).all()


def test_fit_forgets_everything_and_partial_fit_continues(new, X):
    fresh, used = new().fit(X[:100]), new().fit(X[100:])
    used.fit(X[:100])
    assert not differences(used.get_state(), fresh.get_state())
    used.partial_fit(X[100:120])
    assert used.n_samples_seen_ == 120
    assert (used.dictionary_ != fresh.dictionary_).any()


def test_fit_takes_tables_of_other_columns(new, X):
    model = new().fit(X[:60]).fit(X[:60, :5])
    assert model.n_features_in_ == 5
    assert model.transform(X[:3, :5]).shape == (3, 5)


def test_a_fit_that_fails_leaves_the_model_as_it_was(new, X):
    model = new().partial_fit(X[:70])
    before = model.get_state()
    with pytest.raises(InputError, match="no observed values"):
        model.fit(np.full((5, 3), np.nan))
    assert not differences(model.get_state(), before)
    assert model.n_features_in_ == 8
    model.partial_fit(X[70:90])
    assert model.n_samples_seen_ == 90


def test_fit_takes_tables_with_fewer_rows_than_n_warmup(new, X):
    for n in (2, 15, 39):
        model = new().fit(X[:n])
        assert model.n_components_ <= n
        assert np.isfinite(model.transform(X)).all()


def test_fit_learns_from_the_last_rows_too(X):
    model = OnlineImputer(**WINDOW).fit(X[:50])
    assert len(model._stream.pending) == 0
    assert len(model._stream.buffer) == 50


def test_fit_transform_imputes_the_table_it_learned_from(X):
    one, two = OnlineImputer(**WINDOW), OnlineImputer(**WINDOW)
    assert (one.fit_transform(X[:90]) == two.fit(X[:90]).transform(X[:90])).all()


def test_passes_are_made_by_fit_alone(new, X):
    once, often = new().fit(X[:60]), new(n_passes=3).fit(X[:60])
    assert often.n_iter_ > 2 * once.n_iter_
    assert (often.dictionary_ != once.dictionary_).any()
    one, two = new().partial_fit(X[:90]), new(n_passes=3).partial_fit(X[:90])
    assert not differences(learned(one), learned(two))


def test_the_first_fit_waits_for_as_many_rows_as_components(new, X):
    model = new(n_components=50).partial_fit(X[:45])
    with pytest.raises(NotFittedError, match="needs 5 more"):
        model.transform(X)
    assert model.partial_fit(X[45:50]).n_components_ == 50


def test_too_many_components_are_explained(new, X):
    with pytest.raises(ParameterError, match=r"n_components is 30.*n_samples=20"):
        new(n_components=30).fit(X[:20])
    with pytest.raises(ParameterError, match=r"n_components is 61.*window=60.*larger window"):
        OnlineImputer(61, **WINDOW).partial_fit(X)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("drift_detection", True),
        ("window", 1),
        ("window", 2.5),
        ("n_warmup", 0),
        ("n_passes", 0),
        ("batch_size", 0),
        ("batch_size", None),
        ("max_iter", 0),
        ("tol", -1),
        ("n_components", 0),
        ("n_components", "many"),
        ("kernel", "linear"),
        ("bandwidth", 0),
        ("degree", 0),
        ("alpha", -1),
        ("beta", 0),
        ("scale", "robust"),
        ("missing_values", None),
    ],
)
def test_parameters_that_cannot_be_used_are_named(X, parameter, value):
    kinds = (OnlineImputer,) if parameter == "window" else (OnlineImputer, OnlineKFMC)
    for kind in kinds:
        for method in ("fit", "partial_fit", "partial_fit_transform"):
            model = kind(**{parameter: value})
            with pytest.raises(ParameterError) as caught:
                getattr(model, method)(X)
            assert caught.value.parameter == parameter
            assert model.get_state()["record"] is None


def test_algorithm_2_does_not_refit_on_drift(X):
    with pytest.raises(ParameterError, match="'monitor' or 'off'; got 'refit'"):
        OnlineKFMC(drift_detection="refit").fit(X)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_data_frames_are_returned_if_asked_for(new, X, output):
    frames = pytest.importorskip(output)
    frame = frames.DataFrame({f"c{i}": column for i, column in enumerate(X[:60].T)})
    model = new(add_indicator=True).set_output(transform=output)
    arrays = new(add_indicator=True)
    for method in ("fit_transform", "transform", "partial_fit_transform"):
        out = getattr(model, method)(frame)
        assert isinstance(out, frames.DataFrame), method
        assert list(out.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(out.to_numpy(), getattr(arrays, method)(X[:60]))


def test_names_and_index_of_data_frames_are_kept(new, X):
    pd = pytest.importorskip("pandas")
    names = [f"c{i}" for i in range(8)]
    frame = pd.DataFrame(X[:80], columns=names, index=np.arange(80) + 1000)
    model = new().set_output(transform="pandas").partial_fit(frame[:50])
    assert list(model.feature_names_in_) == list(model.get_feature_names_out()) == names
    assert (model.partial_fit_transform(frame[50:]).index == frame.index[50:]).all()
    again = type(model).from_state(model.get_state())
    assert list(again.feature_names_in_) == names
    before = model.get_state()
    for m in (model, again):
        with pytest.raises(ValueError, match="feature names"):
            m.partial_fit(frame[names[::-1]])
    assert not differences(model.get_state(), before)
    assert not hasattr(model.fit(X[:50]), "feature_names_in_")


def test_indicator_columns(new, X):
    model = new(add_indicator=True)
    missing = np.isnan(X[:60])
    for method in (model.fit_transform, model.transform, model.partial_fit_transform):
        out = method(X[:60])
        np.testing.assert_array_equal(out[:, 8:], missing)
    assert list(model.get_feature_names_out()[8:]) == [f"missingindicator_x{i}" for i in range(8)]


def test_missing_values_may_be_a_number(new, X):
    marked = np.where(np.isnan(X), -1, X)
    marked[0, 0] = X[0, 0] = np.nan  # is missing as well
    one, two = new(), new(missing_values=-1)
    for start in range(0, 100, 50):
        rows = slice(start, start + 50)
        expected = one.partial_fit_transform(X[rows])
        np.testing.assert_array_equal(two.partial_fit_transform(marked[rows]), expected)


@pytest.mark.parametrize("drift_detection", ["monitor", "refit"])
def test_the_recent_error_is_that_of_the_imputed_values(stream, drift_detection):
    model = OnlineImputer(**WINDOW, drift_detection=drift_detection).partial_fit(stream.X[:40])
    assert np.isnan(model.recent_error_)
    filled = model.partial_fit_transform(stream.X[40:])
    wrong = ((filled - stream.truth[40:]) / stream.truth.std(axis=0))[~stream.observed[40:]]
    true = np.sqrt(np.mean(wrong**2))
    assert 0.4 * true < model.recent_error_ < 2.5 * true


def test_the_history_of_errors(new, X):
    model = new(drift_detection="monitor").partial_fit(X[:160])
    history = model.error_history_
    assert history.dtype.names == ("samples", "error", "entries")
    assert history["samples"][-1] == 160
    assert (np.diff(history["samples"]) > 0).all()
    mean_square = np.average(history["error"] ** 2, weights=history["entries"])
    assert model.recent_error_ == pytest.approx(np.sqrt(mean_square))
    history["error"] = 0  # is a copy
    assert (model.error_history_["error"] > 0).all()


def test_without_drift_detection_nothing_is_held_out(new, X):
    model = new(drift_detection="off").partial_fit(X[:110])
    assert np.isnan(model.recent_error_)
    assert len(model.error_history_) == 0
    if isinstance(model, OnlineImputer):
        assert np.isnan(model._stream.buffer.predicted).all()


def test_fitted_attributes(new, X):
    model = new().partial_fit(X[:110])
    assert model.n_samples_seen_ == 110
    assert model.n_iter_ == (4 if isinstance(model, OnlineImputer) else 5)
    assert model.dictionary_.shape == (model.n_components_, 8)
    assert np.abs(model.dictionary_).max() < 5 * np.nanmax(np.abs(X))
    assert isinstance(model.kernel_, RBF)
    assert model.kernel_.sigma > 0
    assert isinstance(new(kernel="poly").partial_fit(X[:50]).kernel_, Poly)


@pytest.mark.parametrize(
    "change",
    [
        {"max_iter": 20},
        {"n_components": 12},
        {"batch_size": 10},
        {"n_warmup": 30},
        {"kernel": RBF(2.0)},
        {"bandwidth": 2.5},
        {"beta": 1e-3},
        {"scale": False},
        {"window": 50},
        {"drift_detection": "off"},
    ],
    ids=str,
)
def test_every_parameter_changes_the_result(new, X, change):
    def result(**change):
        return new(**{"max_iter": 5, **change}).partial_fit(X[:60]).transform(X[:70])

    if isinstance(new(), OnlineKFMC) and {"window", "drift_detection"} & set(change):
        pytest.skip("not a parameter of Algorithm 2, or one that it learns nothing from")
    assert (result(**change) != result()).any()


def test_every_parameter_of_the_polynomial_kernel_changes_the_result(new, X):
    one, *others = (
        new(kernel="poly", max_iter=5, **change).partial_fit(X[:60]).transform(X[:70])
        for change in ({}, {"degree": 3}, {"offset": 0.5}, {"alpha": 0.1})
    )
    assert all((one != other).any() for other in others)


def test_the_tolerance_changes_the_result(new, X):
    one, two = (  # it matters from the tenth step on
        new(max_iter=20, tol=tol).partial_fit(X[:60]).transform(X[:70]) for tol in (0.5, 1e-6)
    )
    assert (one != two).any()


def test_verbose_prints_each_batch_once(X, capsys):
    for verbose, lines in ((1, 2), (2, 4)):
        model = OnlineImputer(**WINDOW, verbose=verbose, drift_detection="off")
        feed(model, X[:105], range(1, 105))
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == lines
        assert err.startswith("[OnlineImputer] 40 rows, started; recent error nan")
