import pickle
import warnings

import numpy as np
import pytest
from helpers.plain import plain
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hirank import KFMC
from hirank.estimators.validation import components_of
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error


@pytest.fixture(scope="module")
def fitted(curved):
    return plain(40).fit(curved.holes[:80])


def test_it_fills_curved_data_far_better_than_the_mean(curved):
    filled = KFMC(random_state=0).fit_transform(curved.holes)
    mean = np.where(curved.observed, curved.truth, np.nanmean(curved.holes, axis=0))
    error = missing_relative_error(filled, curved.truth, curved.observed)
    assert error < 0.1 * missing_relative_error(mean, curved.truth, curved.observed)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_observed_entries_come_back_bit_for_bit(curved, dtype, kernel, solver):
    X = curved.holes.astype(dtype)
    model = plain(30, kernel=kernel, solver=solver)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert filled.dtype == dtype
        assert np.isfinite(filled).all()
        assert (filled[curved.observed] == X[curved.observed]).all()


@given(
    X=arrays(float, (9, 4), elements=st.floats(-1e6, 1e6, allow_subnormal=False)),
    observed=arrays(bool, (9, 4)),
)
def test_whatever_the_table_observed_entries_stay_and_fills_are_finite(X, observed):
    observed[0] = True
    holes = np.where(observed, X, np.nan)
    model = KFMC(mix=False, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1?[0-9] sample", UserWarning)
        for filled in (model.fit_transform(holes), model.transform(holes)):
            assert (filled[observed] == X[observed]).all()
            assert np.isfinite(filled).all()


def test_the_table_of_the_user_is_not_touched(curved):
    X = curved.holes.copy()
    model = plain(30)
    for result in (model.fit_transform(X), model.transform(X)):
        assert not np.shares_memory(result, X)
        np.testing.assert_array_equal(X, curved.holes)


def test_transform_changes_nothing(curved, fitted):
    before = pickle.dumps(fitted)
    first = fitted.transform(curved.holes)
    assert pickle.dumps(fitted) == before
    assert (fitted.transform(curved.holes) == first).all()


def test_a_row_is_completed_the_same_alone_and_in_a_batch(curved, fitted):
    together = fitted.transform(curved.holes)
    for i in (0, 7, 90):
        alone = fitted.transform(curved.holes[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-9)


def test_new_samples_are_completed(curved, fitted):
    filled = fitted.transform(curved.holes[80:])
    assert missing_relative_error(filled, curved.truth[80:], curved.observed[80:]) < 0.3


def test_a_pickled_model_gives_the_same_bits(curved, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(curved.holes) == fitted.transform(curved.holes)).all()


def test_a_clone_with_the_same_seed_gives_the_same_result(curved):
    model = plain(30)
    assert (model.fit_transform(curved.holes) == clone(model).fit_transform(curved.holes)).all()


def test_scaling_of_features_does_not_matter(curved):
    units = np.geomspace(1e-6, 1e6, 12)
    usual = plain(30).fit_transform(curved.holes)
    scaled = plain(30).fit_transform(curved.holes * units + 5 * units) / units - 5
    np.testing.assert_allclose(scaled, usual, atol=0.02)


def test_fitted_attributes(curved):
    model = plain(30).fit(curved.holes)
    assert model.n_components_ == 30
    assert model.dictionary_.shape == (30, 12)
    # The dictionary is in the units of the data and as large as they are.
    assert np.abs(model.dictionary_).max() < 5 * np.abs(curved.truth).max()
    assert isinstance(model.kernel_, RBF)
    assert model.kernel_.sigma > 0
    assert model.n_iter_ == len(model.trace_) > 0
    assert model.trace_["objective"][-1] == model.objective_
    assert model.stop_reason_.endswith(".")


def test_every_parameter_reaches_the_solver(curved):
    """Each of them, changed alone, changes the result."""
    base = plain(33, kernel="poly").fit_transform(curved.holes)
    for change in (
        {"n_components": 20},
        {"kernel": "rbf"},
        {"kernel": Poly(2, 0.5)},
        {"degree": 3},
        {"offset": 0.5},
        {"alpha": 0.1},
        {"beta": 1e-3},
        {"solver": "newton"},
        {"scale": False},
        {"max_iter": 10},
        {"tol": 0.5},
        {"random_state": 1},
    ):
        model = clone(plain(33, kernel="poly")).set_params(**change)
        assert (model.fit_transform(curved.holes) != base).any(), change
    one, two = (plain(30, bandwidth=b).fit_transform(curved.holes) for b in ("path", 2.0))
    assert (one != two).any()


def test_a_number_as_bandwidth_stays_along_the_path(curved):
    model = plain(30, bandwidth=2.0).fit(curved.holes)
    assert len(np.unique(model.trace_["stage"])) > 1
    given = plain(30, kernel=RBF(3.0)).fit(curved.holes)
    assert given.kernel_ == RBF(3.0)


def test_usual_number_of_components_grows_with_the_samples():
    sizes = [components_of(KFMC(), n) for n in (1, 2, 5, 100, 1000, 5000)]
    assert sizes == [1, 2, 5, 60, 240, 400]


def test_verbose_reports_to_standard_error(curved, capsys):
    plain(20, max_iter=2, verbose=1, random_state=0).fit(curved.holes)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("[KFMC] stage 1, step 1: objective ")
    model = plain(20, max_iter=2, verbose=2, random_state=0).fit(curved.holes)
    assert err.count("\n") == len(np.unique(model.trace_["stage"]))
    assert capsys.readouterr().err.count("\n") == model.n_iter_


def test_it_works_in_a_pipeline_and_a_search(curved):
    order = np.random.default_rng(0).permutation(120)
    y = curved.truth[order].sum(axis=1)
    pipeline = make_pipeline(plain(20), RandomForestRegressor(n_estimators=5, random_state=0))
    search = GridSearchCV(pipeline, {"kfmc__n_components": [10, 30]}, cv=2)
    search.fit(curved.holes[order], y)
    assert search.best_score_ > 0


def test_new_features_come_from_the_codes(curved):
    old, new = slice(0, 8), slice(8, 12)
    model = plain(60, max_iter=250)
    filled = model.fit_transform(curved.holes[:, old])
    completed = model.complete_features(filled, curved.holes[:, new])
    seen = curved.observed[:, new]
    assert (completed[seen] == curved.truth[:, new][seen]).all()
    assert missing_relative_error(completed, curved.truth[:, new], seen) < 0.1
    from_holes = model.complete_features(curved.holes[:, old], curved.holes[:, new])
    assert missing_relative_error(from_holes, curved.truth[:, new], seen) < 0.2
    with pytest.raises(ValueError, match="same samples"):
        model.complete_features(filled[:5], curved.holes[:, new])
    with pytest.raises(ValueError, match=r"\[1\] have no observed entry"):
        model.complete_features(filled, np.column_stack([y := filled[:, 0], y * np.nan]))
