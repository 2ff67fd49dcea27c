import pickle
import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from helpers.estimators import fast_kfmc
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import hirank
from hirank import KFMC
from hirank.core.objective import sample_gradient
from hirank.exceptions import (
    BoundsWarning,
    EmptyRowsWarning,
    InputError,
    ParameterError,
    RelaxationWarning,
    StopReason,
)
from hirank.kernels import RBF, Kernel, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_dictionary import default_n_components
from hirank.optim.algorithm3 import Algorithm3Config, run_algorithm3


@pytest.fixture(scope="module")
def fitted(curved):
    return fast_kfmc(40).fit(curved.X[:80])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_observed_entries_come_back_bit_for_bit(curved, dtype, kernel, solver):
    X = curved.X.astype(dtype)
    model = fast_kfmc(30, kernel=kernel, solver=solver)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert filled.dtype == dtype
        assert np.isfinite(filled).all()
        assert (filled[curved.observed] == X[curved.observed]).all()


@given(
    X=arrays(float, (9, 4), elements=st.floats(-1e6, 1e6, allow_subnormal=False)),
    observed=arrays(bool, (9, 4)),
)
def test_observed_entries_stay_and_imputed_values_are_finite_whatever_the_table(X, observed):
    observed[0] = True
    table = np.where(observed, X, np.nan)
    model = KFMC(max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyRowsWarning)
        for filled in (model.fit_transform(table), model.transform(table)):
            assert (filled[observed] == X[observed]).all()
            assert np.isfinite(filled).all()


def test_the_table_that_is_given_does_not_change(curved):
    X = curved.X.copy()
    model = fast_kfmc(30)
    for result in (model.fit_transform(X), model.transform(X)):
        assert not np.shares_memory(result, X)
        np.testing.assert_array_equal(X, curved.X)


def test_transform_does_not_change_the_model(curved, fitted):
    before = pickle.dumps(fitted)
    first = fitted.transform(curved.X)
    assert pickle.dumps(fitted) == before
    assert (fitted.transform(curved.X) == first).all()


def test_a_row_is_imputed_the_same_alone_and_in_a_batch(curved, fitted):
    together = fitted.transform(curved.X)
    for i in (0, 7, 90):
        alone = fitted.transform(curved.X[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-9)


def test_new_rows_are_imputed(curved, fitted):
    filled = fitted.transform(curved.X[80:])
    assert missing_relative_error(filled, curved.truth[80:], curved.observed[80:]) < 0.3


def test_a_pickled_model_gives_the_same_bits(curved, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(curved.X) == fitted.transform(curved.X)).all()


def test_a_clone_with_the_same_seed_gives_the_same_result(curved):
    model = fast_kfmc(30)
    assert (model.fit_transform(curved.X) == clone(model).fit_transform(curved.X)).all()


def test_units_of_features_do_not_matter(curved):
    units = np.geomspace(1e-6, 1e6, 12)
    usual = fast_kfmc(30).fit_transform(curved.X)
    scaled = fast_kfmc(30).fit_transform(curved.X * units + 5 * units) / units - 5
    np.testing.assert_allclose(scaled, usual, atol=0.02)


def test_fitted_attributes(curved):
    model = fast_kfmc(30).fit(curved.X)
    assert model.n_components_ == 30
    assert model.dictionary_.shape == (30, 12)
    # The dictionary is in the units of the data and as large as they are.
    assert np.abs(model.dictionary_).max() < 5 * np.abs(curved.truth).max()
    assert isinstance(model.kernel_, RBF)
    assert model.kernel_.sigma > 0
    assert model.n_iter_ == len(model.trace_) > 0
    assert model.trace_["objective"][-1] == model.objective_
    assert model.stop_reason_.endswith(".")
    assert model.status_ in (StopReason.CONVERGED, StopReason.MAX_ITER)


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": 10},
        {"kernel": "rbf"},
        {"kernel": Poly(2, 0.5)},
        {"degree": 3},
        {"offset": 0.5},
        {"alpha": 0.1},
        {"beta": 1e-3},
        {"solver": "newton"},
        {"bounds": (-5, 0.1)},
        {"scale": False},
        {"max_iter": 5},
        {"tol": 0.5},
        {"random_state": 1},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::hirank.exceptions.BoundsWarning")
def test_every_parameter_changes_the_result(curved, change):
    X, model = curved.X[:50], fast_kfmc(15, kernel="poly", max_iter=12)
    base = model.fit_transform(X)

    changed = clone(model).set_params(**change).fit_transform(X)

    assert (changed != base).any()


def test_the_bandwidth_changes_the_result(curved):
    one, two = (
        fast_kfmc(15, bandwidth=b, max_iter=5).fit_transform(curved.X[:50]) for b in ("path", 2.0)
    )

    assert (one != two).any()


def test_a_bandwidth_that_is_a_number_is_kept_along_the_path(curved):
    model = fast_kfmc(30, bandwidth=2.0).fit(curved.X)
    assert len(np.unique(model.trace_["stage"])) > 1
    given = fast_kfmc(30, kernel=RBF(3.0)).fit(curved.X)
    assert given.kernel_ == RBF(3.0)


def test_the_default_number_of_components_grows_with_the_rows():
    sizes = [default_n_components(n) for n in (1, 2, 5, 100, 1000, 5000)]
    assert sizes == [1, 2, 5, 60, 240, 400]


def test_verbose_reports_to_standard_error(curved, capsys):
    fast_kfmc(20, max_iter=2, verbose=1, random_state=0).fit(curved.X)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("[KFMC] stage 1, step 1: objective ")
    model = fast_kfmc(20, max_iter=2, verbose=2, random_state=0).fit(curved.X)
    assert err.count("\n") == len(np.unique(model.trace_["stage"]))
    assert capsys.readouterr().err.count("\n") == model.n_iter_


def test_it_works_in_a_pipeline_and_a_grid_search(curved):
    order = np.random.default_rng(0).permutation(120)
    y = curved.truth[order].sum(axis=1)
    pipeline = make_pipeline(fast_kfmc(20), RandomForestRegressor(n_estimators=5, random_state=0))
    search = GridSearchCV(pipeline, {"kfmc__n_components": [10, 30]}, cv=2)
    search.fit(curved.X[order], y)
    assert search.best_score_ > 0


def test_new_features_are_imputed_from_the_codes(curved):
    old, new = slice(0, 8), slice(8, 12)
    model = fast_kfmc(60, max_iter=250)
    filled = model.fit_transform(curved.X[:, old])
    completed = model.complete_features(filled, curved.X[:, new])
    seen = curved.observed[:, new]
    assert (completed[seen] == curved.truth[:, new][seen]).all()
    assert missing_relative_error(completed, curved.truth[:, new], seen) < 0.1
    from_missing = model.complete_features(curved.X[:, old], curved.X[:, new])
    assert missing_relative_error(from_missing, curved.truth[:, new], seen) < 0.2
    with pytest.raises(InputError, match="same rows"):
        model.complete_features(filled[:5], curved.X[:, new])
    with pytest.raises(InputError, match=r"\[1\] have no observed values"):
        model.complete_features(filled, np.column_stack([y := filled[:, 0], y * np.nan]))


def test_one_dictionary_has_no_search_and_no_intervals(fitted):
    for name in ("search_results_", "held_out_", "summary", "interval", "sample"):
        assert not hasattr(fitted, name)


def test_the_status_names_why_the_fit_stopped(table):
    limited = fast_kfmc(30, max_iter=100_000, tol=0.0, max_time=0.1).fit(table)
    short = fast_kfmc(30, max_iter=2).fit(table)
    constant = KFMC().fit(np.ones((5, 2)))

    assert limited.status_ is StopReason.MAX_TIME
    assert "max_time=0.1" in limited.stop_reason_
    assert short.status_ is StopReason.MAX_ITER
    assert constant.status_ is StopReason.NOTHING_TO_FIT


def test_algorithm_1_stops_at_its_time_limit(table):
    model = fast_kfmc(20, solver="newton", max_iter=100_000, tol=0.0, max_time=0.1).fit(table)

    assert model.status_ is StopReason.MAX_TIME


@pytest.fixture(scope="module", params=["rbf", "poly"])
def newton(request, curved):
    """A model of Algorithm 1, in the units of the data."""
    kernel = {"kernel": request.param, "beta": 1e-3 if request.param == "rbf" else 1e-2}
    steps = {"solver": "newton", "momentum": 0.4, "relaxation": 1.2, "max_iter": 60, "tol": 1e-4}
    return KFMC(30, **kernel, **steps, scale=False, random_state=0).fit(curved.X[:80])


def test_transform_of_algorithm_1_is_algorithm_3(curved, newton):
    X, observed = curved.X[80:], curved.observed[80:]
    basis = newton._fitted.model.settings[0].basis(newton.dictionary_)
    expected = Algorithm3Config(0.4, 1.2, max_iter=60, tol=1e-4)

    filled = newton.transform(X)

    end = run_algorithm3(np.where(observed, X, 0), observed, basis, expected).result()
    np.testing.assert_allclose(filled, end, rtol=0, atol=1e-7)
    assert (filled[observed] == X[observed]).all()


def test_transform_of_algorithm_1_has_the_objective_of_the_fit(curved, newton):
    """Imputed rows of the fit have nearly the lowest objective that Algorithm 3 finds."""
    X = curved.X[:80]
    longer = clone(newton).set_params(max_iter=400, tol=1e-6)
    filled = longer.fit_transform(X)
    basis = longer._fitted.model.settings[0].basis(longer.dictionary_)

    again = sample_gradient(longer.transform(X), basis)[0].sum()

    assert again == pytest.approx(sample_gradient(filled, basis)[0].sum(), rel=0.2)


def test_algorithm_3_imputes_a_row_the_same_alone_and_in_a_batch(curved, newton):
    together = newton.transform(curved.X)
    for i in (0, 7, 90):
        alone = newton.transform(curved.X[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-9)


def test_algorithm_3_respects_bounds(curved):
    bounds = (-0.5, 0.5)
    model = fast_kfmc(30, solver="newton", bounds=bounds)
    with pytest.warns(BoundsWarning):
        model.fit(curved.X[:80])

    filled = model.transform(curved.X[80:])

    imputed = filled[~curved.observed[80:]]
    assert imputed.min() >= -0.5
    assert imputed.max() <= 0.5
    assert ((imputed > -0.5) & (imputed < 0.5)).any()


def test_algorithms_1_and_3_take_kernels_that_are_not_hiranks(curved):
    poly = Poly(2, 1.0)

    class Own(Kernel):
        bind, diag, diag_gradient, metric = poly.bind, poly.diag, poly.diag_gradient, poly.metric
        dictionary_curvature = poly.dictionary_curvature
        sample_curvature = poly.sample_curvature

    own, known = (fast_kfmc(15, kernel=k, solver="newton").fit(curved.X) for k in (Own(), poly))

    assert (own.transform(curved.X) == known.transform(curved.X)).all()


@pytest.mark.parametrize("change", [{"momentum": 0.0}, {"relaxation": 1.5}], ids=str)
def test_momentum_and_relaxation_change_fit_and_transform(curved, change):
    X, model = curved.X[:60], fast_kfmc(15, solver="newton", max_iter=12)
    base, changed = model.fit(X), clone(model).set_params(**change).fit(X)
    steps = replace(base._fitted.model.config, **change)
    moved = copy(base)
    moved.__dict__["_record"] = replace(
        base._fitted, model=replace(base._fitted.model, config=steps)
    )

    assert (changed.dictionary_ != base.dictionary_).any()
    assert (moved.transform(curved.X) != base.transform(curved.X)).any()  # D is the same


def test_momentum_and_relaxation_have_the_values_of_the_paper_by_default(curved):
    X, model = curved.X[:60], fast_kfmc(15, solver="newton", max_iter=12)
    given = clone(model).set_params(momentum=0.5, relaxation=1.1)
    assert (given.fit_transform(X) == model.fit_transform(X)).all()


@pytest.mark.parametrize("parameter", ["momentum", "relaxation"])
def test_parameters_of_newton_are_an_error_with_another_solver(curved, parameter):
    model = KFMC(**{parameter: 0.5})
    with pytest.raises(ParameterError, match=r"requires solver='newton'; got solver='lbfgs'"):
        model.fit(curved.X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("relaxation", [1.0, 0.9])
def test_a_relaxation_of_at_most_1_is_a_warning_that_names_the_lemma(curved, relaxation, tmp_path):
    model = fast_kfmc(15, solver="newton", relaxation=relaxation)

    with pytest.warns(
        RelaxationWarning, match=f"relaxation={relaxation:g} is not above 1.*Lemma 3"
    ):
        filled = model.fit_transform(curved.X)

    assert np.isfinite(filled).all()
    model.transform(curved.X)  # a warning would be an error here, also while saving and loading
    model.save(tmp_path / "model.hirank")
    assert hirank.load(tmp_path / "model.hirank").relaxation == relaxation


@pytest.mark.filterwarnings("ignore::hirank.exceptions.RelaxationWarning")
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_steps_that_diverge_leave_finite_values(curved, kernel):
    model = KFMC(15, solver="newton", kernel=kernel, momentum=0.99, relaxation=0.1, random_state=0)
    for filled in (model.fit_transform(curved.X), model.transform(curved.X)):
        assert np.isfinite(filled).all()
        assert (filled[curved.observed] == curved.X[curved.observed]).all()


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_a_dictionary_of_complete_rows_imputes_new_rows(curved, solver):
    rows = np.random.default_rng(0).permutation(120)
    train, new = rows[:80], rows[80:]
    model = fast_kfmc(40, solver=solver, max_iter=150, tol=1e-5)

    unchanged = model.fit_transform(curved.truth[train])
    filled = model.transform(curved.X[new])

    assert (unchanged == curved.truth[train]).all()
    assert missing_relative_error(filled, curved.truth[new], curved.observed[new]) < 0.3


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_one_column(solver):
    column = np.array([[1.0], [2.0], [np.nan], [4.0]])
    model = KFMC(solver=solver, random_state=0)
    for method in (model.fit_transform, model.transform):
        with pytest.warns(EmptyRowsWarning):
            filled = method(column)
        assert filled[2] == pytest.approx(7 / 3)
    complete = column[[0, 1, 3]]
    assert (model.fit_transform(complete) == complete).all()
    assert (model.transform(complete) == complete).all()
