import numpy as np
import pytest
from helpers.saved_state import differences
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hirank import OnlineKFMC
from hirank.kernels import RBF, Poly
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


def fed(model, rows, cuts):
    for part in np.split(rows, cuts):
        if len(part):
            model.partial_fit(part)
    return model


def learned(model):
    """The state, for a paper stream without its scores: those are taken call by call."""
    state = model.get_state()["stream"]
    return state if model.mode == "window" else {**state, "scores": None}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_observed_entries_come_back_bit_for_bit(new, stream, dtype, kernel):
    X = stream.holes.astype(dtype)
    model = new(kernel=kernel)
    for method in (model.fit_transform, model.partial_fit_transform, model.transform):
        filled = method(X[:130])
        assert filled.dtype == dtype
        assert np.isfinite(filled).all()
        assert (filled[stream.observed[:130]] == X[:130][stream.observed[:130]]).all()


@pytest.mark.parametrize(("mode", "share"), [("window", 0.1), ("paper", 0.95)], indirect=["mode"])
def test_fills_are_better_than_means(new, stream, share):
    model = new(max_iter=None)
    filled = model.partial_fit(stream.holes[:100]).partial_fit_transform(stream.holes[100:])
    truth, observed = stream.truth[100:], stream.observed[100:]
    means = np.where(observed, truth, np.nanmean(stream.holes, axis=0))
    error = missing_relative_error(filled, truth, observed)
    assert error < share * missing_relative_error(means, truth, observed)


def test_more_rows_make_a_better_model(stream):
    model, errors = OnlineKFMC(**{**QUICK, "window": 300}), []
    for rows in (stream.holes[:40], stream.holes[40:200]):
        filled = model.partial_fit(rows).transform(stream.holes[200:])
        errors.append(missing_relative_error(filled, stream.truth[200:], stream.observed[200:]))
    assert errors[1] < 0.5 * errors[0]


def test_transform_changes_nothing_and_repeats(new, holes):
    model = new().partial_fit(holes[:110])
    before = model.get_state()
    first = model.transform(holes)
    assert not differences(model.get_state(), before)
    assert (model.transform(holes) == first).all()


def test_a_row_is_completed_alone_as_among_others(new, holes):
    model = new().partial_fit(holes[:110])
    together = model.transform(holes)
    for i in (0, 120, 299):
        np.testing.assert_allclose(model.transform(holes[[i]])[0], together[i], rtol=0, atol=1e-9)


def test_the_rows_of_the_user_are_not_touched_or_kept(new, holes):
    given = holes.copy()
    model = new().partial_fit(given[:50])
    filled = model.partial_fit_transform(given[50:115])
    np.testing.assert_array_equal(given, holes)
    before = model.get_state()
    given[:], filled[:] = 7, 7
    assert not differences(model.get_state(), before)


def test_partial_fit_transform_is_transform_and_then_partial_fit(new, holes):
    one, two = new().partial_fit(holes[:60]), new().partial_fit(holes[:60])
    for start, stop in ((60, 67), (67, 80), (80, 100)):
        rows = holes[start:stop]
        apart = two.transform(rows)
        two.partial_fit(rows)
        assert (one.partial_fit_transform(rows) == apart).all()
        assert not differences(one.get_state(), two.get_state())


def test_answers_do_not_change_what_is_learned(new, holes):
    one, two = new().partial_fit(holes), new()
    two.partial_fit_transform(holes)
    assert not differences(one.get_state(), two.get_state())


@pytest.mark.parametrize("batch_size", [20, None])
@pytest.mark.parametrize("step", [1, 7])
def test_what_is_learned_does_not_depend_on_the_cuts(new, holes, step, batch_size):
    rows = holes[:150]
    whole = new(batch_size=batch_size).partial_fit(rows)
    parts = fed(new(batch_size=batch_size), rows, range(step, 150, step))
    assert not differences(learned(parts), learned(whole))


@settings(max_examples=8)
@given(cuts=st.sets(st.integers(1, 109), max_size=12), mode=st.sampled_from(["window", "paper"]))
def test_nor_on_any_cuts(stream, cuts, mode):
    model, rows = OnlineKFMC(mode=mode, **QUICK), stream.holes[:110]
    parts = fed(clone(model), rows, sorted(cuts))
    assert not differences(learned(parts), learned(model.partial_fit(rows)))


@pytest.mark.filterwarnings("ignore:.*no observed entry")
def test_nor_on_where_empty_rows_stand(new, holes):
    holes[[3, 50, 51, 77, 79]] = np.nan
    whole = new().partial_fit(holes[:130])
    parts = fed(new(), holes[:130], range(1, 130))
    assert not differences(learned(parts), learned(whole))
    assert whole.n_samples_seen_ == 130


@pytest.mark.filterwarnings("ignore:.*no observed entry")
def test_empty_rows_teach_nothing(new, holes):
    more = np.insert(holes[:130], [0, 45, 45, 70], np.nan, axis=0)
    plain, mixed = new(self_score="off").partial_fit(holes[:130]), new(self_score="off")
    assert (mixed.partial_fit(more).dictionary_ == plain.dictionary_).all()


def test_the_same_seed_gives_the_same_result(new, holes):
    one, two, three = new(), new(), new(random_state=1)
    for model in (one, two, three):
        model.partial_fit(holes[:110])
    assert not differences(one.get_state(), two.get_state())
    assert (one.transform(holes) != three.transform(holes)).any()


def test_before_there_is_a_model_transform_says_how_many_rows_it_takes(new, holes):
    model = new()
    with pytest.raises(NotFittedError, match="call partial_fit with the first rows"):
        model.transform(holes)
    model.partial_fit(holes[:25])
    with pytest.raises(NotFittedError, match="holds 25 rows and takes 15 more"):
        model.transform(holes)
    assert model.n_samples_seen_ == 25
    assert model.n_iter_ == 0
    assert not hasattr(model, "dictionary_")
    model.partial_fit(holes[25:40])
    assert np.isfinite(model.transform(holes)).all()


def test_a_smaller_n_start_may_be_set_as_the_error_advises(new, holes):
    model = new(n_start=50).partial_fit(holes[:45]).set_params(n_start=40)
    with pytest.raises(NotFittedError, match="takes 1 more"):
        model.transform(holes)
    assert np.isfinite(model.partial_fit_transform(holes[45:47])).all()
    assert hasattr(model, "dictionary_")


def test_a_smaller_batch_may_be_set_while_rows_are_held(new, holes):
    model = new().partial_fit(holes[:55])
    for size, rows in ((5, holes[55:57]), (1, holes[57:60]), (1, holes[60:63])):
        filled = model.set_params(batch_size=size).partial_fit_transform(rows)
        assert filled.shape == rows.shape
        assert np.isfinite(filled).all()


def test_no_attribute_of_a_stream_before_the_first_row(new):
    for name in ("recent_error_", "error_history_", "n_samples_seen_", "n_iter_", "kernel_"):
        assert not hasattr(new(), name)
    with pytest.raises(NotFittedError):
        new().get_feature_names_out()


def test_held_rows_are_filled_with_means_so_far_and_a_warning(new, holes):
    with pytest.warns(UserWarning, match=r"30 row\(s\) came before there was a model"):
        filled = new().partial_fit_transform(holes[:30])
    means = np.broadcast_to(np.nanmean(holes[:30], axis=0), filled.shape)
    missing = np.isnan(holes[:30])
    np.testing.assert_allclose(filled[missing], means[missing])


def test_held_rows_are_completed_if_the_model_starts_in_the_same_call(new, holes):
    model = new()
    filled = model.partial_fit_transform(holes[:40])
    assert (filled == model.transform(holes[:40])).all()


def test_fit_starts_anew_and_partial_fit_goes_on(new, holes):
    fresh, used = new().fit(holes[:100]), new().fit(holes[100:])
    used.fit(holes[:100])
    assert not differences(used.get_state(), fresh.get_state())
    used.partial_fit(holes[100:120])
    assert used.n_samples_seen_ == 120
    assert (used.dictionary_ != fresh.dictionary_).any()


def test_fit_takes_tables_of_other_columns(new, holes):
    model = new().fit(holes[:60]).fit(holes[:60, :5])
    assert model.n_features_in_ == 5
    assert model.transform(holes[:3, :5]).shape == (3, 5)


def test_a_fit_that_fails_leaves_the_model_as_it_was(new, holes):
    model = new().partial_fit(holes[:70])
    before = model.get_state()
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.fit(np.full((5, 3), np.nan))
    assert not differences(model.get_state(), before)
    assert model.n_features_in_ == 8
    model.partial_fit(holes[70:90])
    assert model.n_samples_seen_ == 90


def test_fit_starts_with_what_it_gets(new, holes):
    for n in (2, 15, 39):
        model = new().fit(holes[:n])
        assert model.n_components_ <= n
        assert np.isfinite(model.transform(holes)).all()


def test_fit_learns_from_the_last_rows_too(holes):
    model = OnlineKFMC(**QUICK).fit(holes[:50])
    assert len(model._stream.pending) == 0
    assert len(model._stream.memory) == 50


def test_fit_transform_completes_the_table_it_learned_from(holes):
    one, two = OnlineKFMC(**QUICK), OnlineKFMC(**QUICK)
    assert (one.fit_transform(holes[:90]) == two.fit(holes[:90]).transform(holes[:90])).all()


def test_passes_count_in_fit_alone(new, holes):
    once, often = new().fit(holes[:60]), new(n_passes=3).fit(holes[:60])
    assert often.n_iter_ > 2 * once.n_iter_
    assert (often.dictionary_ != once.dictionary_).any()
    one, two = new().partial_fit(holes[:90]), new(n_passes=3).partial_fit(holes[:90])
    assert not differences(learned(one), learned(two))


def test_a_stream_is_held_until_it_has_as_many_rows_as_components(new, holes):
    model = new(n_components=50).partial_fit(holes[:45])
    with pytest.raises(NotFittedError, match="takes 5 more"):
        model.transform(holes)
    assert model.partial_fit(holes[45:50]).n_components_ == 50


def test_too_many_components_are_explained(new, mode, holes):
    with pytest.raises(ValueError, match=r"n_components=30.*n_samples=20"):
        new(n_components=30).fit(holes[:20])
    if mode == "window":
        with pytest.raises(ValueError, match=r"n_components=61.*window=60.*larger window"):
            new(n_components=61).partial_fit(holes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "online"}, "mode must be one of 'paper', 'window'; got 'online'"),
        ({"self_score": True}, "self_score must be one of 'off', 'react', 'watch'"),
        ({"window": 1}, "window must be at least 2"),
        ({"window": 2.5}, "window must be a whole number"),
        ({"n_start": 0}, "n_start must be a whole number of at least 1"),
        ({"n_passes": 0}, "n_passes must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1}, "tol must be"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": "many"}, "n_components"),
        ({"kernel": "linear"}, "kernel"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"kernel": "poly", "degree": 0}, "degree"),
        ({"alpha": -1}, "alpha"),
        ({"beta": 0}, "beta"),
        ({"missing_values": None}, "missing_values"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "partial_fit_transform"])
def test_wrong_parameters_are_explained(holes, parameters, message, method):
    model = OnlineKFMC(**parameters)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(holes)
    assert model.get_state()["stream"] is None


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_frames_in_frames_out(new, holes, output):
    frames = pytest.importorskip(output)
    frame = frames.DataFrame({f"c{i}": column for i, column in enumerate(holes[:60].T)})
    model = new(add_indicator=True).set_output(transform=output)
    plain = new(add_indicator=True)
    for method in ("fit_transform", "transform", "partial_fit_transform"):
        out = getattr(model, method)(frame)
        assert isinstance(out, frames.DataFrame), method
        assert list(out.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(out.to_numpy(), getattr(plain, method)(holes[:60]))


def test_feature_names_and_rows_of_frames(new, holes):
    pd = pytest.importorskip("pandas")
    names = [f"c{i}" for i in range(8)]
    frame = pd.DataFrame(holes[:80], columns=names, index=np.arange(80) + 1000)
    model = new().set_output(transform="pandas").partial_fit(frame[:50])
    assert list(model.feature_names_in_) == list(model.get_feature_names_out()) == names
    assert (model.partial_fit_transform(frame[50:]).index == frame.index[50:]).all()
    again = OnlineKFMC.from_state(model.get_state())
    assert list(again.feature_names_in_) == names
    before = model.get_state()
    for m in (model, again):
        with pytest.raises(ValueError, match="feature names"):
            m.partial_fit(frame[names[::-1]])
    assert not differences(model.get_state(), before)
    assert not hasattr(model.fit(holes[:50]), "feature_names_in_")


def test_indicator_columns(new, holes):
    model = new(add_indicator=True)
    missing = np.isnan(holes[:60])
    for method in (model.fit_transform, model.transform, model.partial_fit_transform):
        out = method(holes[:60])
        np.testing.assert_array_equal(out[:, 8:], missing)
    assert list(model.get_feature_names_out()[8:]) == [f"missingindicator_x{i}" for i in range(8)]


def test_missing_values_by_a_number(new, holes):
    marked = np.where(np.isnan(holes), -1, holes)
    marked[0, 0] = holes[0, 0] = np.nan  # is missing as well
    one, two = new(), new(missing_values=-1)
    for start in range(0, 100, 50):
        rows = slice(start, start + 50)
        expected = one.partial_fit_transform(holes[rows])
        np.testing.assert_array_equal(two.partial_fit_transform(marked[rows]), expected)


@pytest.mark.parametrize("self_score", ["watch", "react"])
def test_the_running_error_is_that_of_the_fills(stream, self_score):
    model = OnlineKFMC(**QUICK, self_score=self_score).partial_fit(stream.holes[:40])
    assert np.isnan(model.recent_error_)
    filled = model.partial_fit_transform(stream.holes[40:])
    wrong = ((filled - stream.truth[40:]) / stream.truth.std(axis=0))[~stream.observed[40:]]
    true = np.sqrt(np.mean(wrong**2))
    assert 0.4 * true < model.recent_error_ < 2.5 * true


def test_the_history_of_errors(new, holes):
    model = new(self_score="watch").partial_fit(holes[:160])
    history = model.error_history_
    assert history.dtype.names == ("samples", "error", "entries")
    assert history["samples"][-1] == 160
    assert (np.diff(history["samples"]) > 0).all()
    mean_square = np.average(history["error"] ** 2, weights=history["entries"])
    assert model.recent_error_ == pytest.approx(np.sqrt(mean_square))
    history["error"] = 0  # is a copy
    assert (model.error_history_["error"] > 0).all()


def test_without_scores_nothing_is_hidden(new, holes):
    model = new(self_score="off").partial_fit(holes[:200])
    assert np.isnan(model.recent_error_)
    assert len(model.error_history_) == 0
    if model.mode == "window":
        assert np.isnan(model._stream.memory.guess).all()


def test_fitted_attributes(new, mode, holes):
    model = new().partial_fit(holes[:110])
    assert model.n_samples_seen_ == 110
    assert model.n_iter_ == {"window": 4, "paper": 5}[mode]
    assert model.dictionary_.shape == (model.n_components_, 8)
    assert np.abs(model.dictionary_).max() < 5 * np.nanmax(np.abs(holes))
    assert isinstance(model.kernel_, RBF)
    assert model.kernel_.sigma > 0
    assert isinstance(new(kernel="poly").partial_fit(holes[:50]).kernel_, Poly)


def test_every_parameter_matters(new, mode, holes):
    def result(**change):
        # A tolerance matters from the tenth step on.
        model = new(**{"max_iter": 20 if "tol" in change else 5, **change})
        return model.partial_fit(holes[:60]).transform(holes[:100])

    base = result()
    changes = [
        {"max_iter": 20},
        {"n_components": 12},
        {"batch_size": 10},
        {"n_start": 30},
        {"kernel": RBF(2.0)},
        {"bandwidth": 2.5},
        {"beta": 1e-3},
        {"scale": False},
    ]
    changes += [{"window": 50}, {"self_score": "off"}] if mode == "window" else []
    for change in changes:
        assert (result(**change) != base).any(), change
    one, *others = (
        result(kernel="poly", **change)
        for change in ({}, {"degree": 3}, {"offset": 0.5}, {"alpha": 0.1})
    )
    assert all((one != other).any() for other in others)
    assert (result(tol=0.5) != result(tol=1e-6)).any()


def test_verbose_tells_of_each_batch_once(holes, capsys):
    for verbose, lines in ((1, 2), (2, 4)):
        model = OnlineKFMC(**QUICK, verbose=verbose, self_score="off")
        fed(model, holes[:105], range(1, 105))
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == lines
        assert err.startswith("[OnlineKFMC] 40 rows, started; recent error nan")
