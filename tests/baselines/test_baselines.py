"""What holds for every baseline: scikit-learn's checks, and the conventions of KFMC."""

import pickle
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from hirank.baselines import (
    DLSR,
    GROUSE,
    LRF,
    NLMC,
    NNM,
    SFMC,
    VMC,
    GroupSparse,
    OnlineLRF,
    SoftImpute,
)
from hirank.metrics import missing_relative_error

BASELINES = [
    DLSR(n_passes=3),
    GROUSE(),
    GroupSparse(max_iter=4),
    LRF(),
    NLMC(max_iter=20),
    NNM(),
    OnlineLRF(),
    SFMC(max_iter=15),
    SoftImpute(),
    VMC(max_iter=20),
]
QUICK = [
    DLSR(10, 0.01, n_passes=5),
    GROUSE(3, 0.1, cut=0.3),
    GroupSparse(0.01),
    LRF(4),
    NLMC(1.0, max_iter=20),
    NNM(),
    OnlineLRF(4),
    SFMC(10, 0.01),
    SoftImpute(0.02),
    VMC(max_iter=20),
]

every = pytest.mark.parametrize("model", QUICK, ids=lambda model: type(model).__name__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(BASELINES)
def test_scikit_learn(estimator, check):
    check(estimator)


def seeded(model, seed=0):
    model = clone(model)
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


@every
def test_observed_entries_come_back_and_others_are_imputed_better_than_by_means(model, curved):
    filled = seeded(model).fit_transform(curved.X)
    assert (filled[curved.observed] == curved.truth[curved.observed]).all()
    means = SimpleImputer().fit_transform(curved.X)
    error = missing_relative_error(filled, curved.truth, curved.observed)
    assert error < 0.9 * missing_relative_error(means, curved.truth, curved.observed)


@every
def test_a_new_row_is_completed_on_its_own_and_better_than_by_means(model, curved):
    fitted = seeded(model).fit(curved.X[::2])
    X_missing, truth, observed = curved.X[1::2], curved.truth[1::2], curved.observed[1::2]
    together = fitted.transform(X_missing)
    for i in range(0, len(X_missing), 9):
        np.testing.assert_allclose(
            fitted.transform(X_missing[i : i + 1])[0], together[i], atol=1e-8
        )
    means = SimpleImputer().fit(curved.X[::2]).transform(X_missing)
    error = missing_relative_error(together, truth, observed)
    assert error < 0.9 * missing_relative_error(means, truth, observed)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(X_missing) == together).all()


@every
def test_the_fit_is_described_and_repeats(model, curved):
    first = seeded(model).fit(curved.X)
    assert first.trace_.dtype.names == ("step", "stage", "objective", "seconds")
    assert len(first.trace_) == first.n_iter_ >= 1
    assert first.objective_ == first.trace_["objective"][-1]
    assert first.stop_reason_.endswith(".")
    second = seeded(model).fit(curved.X)
    assert (first.transform(curved.X) == second.transform(curved.X)).all()


@every
def test_verbose_writes_to_standard_error(model, curved, capsys):
    seeded(model).set_params(verbose=2).fit(curved.X)
    out = capsys.readouterr()
    assert type(model).__name__ in out.err
    assert not out.out


@every
def test_a_callback_can_stop_the_fit(model, curved):
    pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9 or later")

    class StopAtTwo:
        steps = 0

        def setup(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            self.steps += context.task_name == "step"
            return self.steps == 2

        def teardown(self, estimator, context): ...

    stopped = seeded(model).set_callbacks(StopAtTwo()).fit(curved.X)
    assert stopped.n_iter_ == 2
    assert stopped.stop_reason_ == "Stopped by the callback at step 2."
    assert np.isfinite(stopped.transform(curved.X)).all()


@every
def test_rows_and_columns_without_values(model, curved):
    X_missing = curved.X.copy()
    X_missing[3], X_missing[:, 5] = np.nan, np.nan
    with pytest.warns(UserWarning, match="Imputed 1 row without observed values"):
        filled = seeded(model).fit_transform(X_missing)
    assert filled.shape == (len(X_missing), X_missing.shape[1] - 1)
    np.testing.assert_allclose(filled[3], np.nanmean(np.delete(X_missing, 5, axis=1), axis=0))


@every
@pytest.mark.parametrize("scale", [True, False])
def test_features_that_do_not_vary_are_known(model, scale, curved):
    X_missing = np.column_stack([curved.X, np.where(curved.observed[:, 0], 7.0, np.nan)])
    filled = seeded(model).set_params(scale=scale).fit_transform(X_missing)
    assert (filled[:, -1] == 7).all()
    constant = np.where(curved.observed, 3.0, np.nan)
    assert (seeded(model).set_params(scale=scale).fit_transform(constant) == 3).all()


@every
def test_a_table_without_values_is_an_error(model):
    with pytest.raises(ValueError, match="no observed values"):
        seeded(model).fit(np.full((5, 3), np.nan))


@every
def test_single_precision_comes_back_as_it_came(model, curved):
    X_missing = curved.X.astype(np.float32)
    filled = seeded(model).fit_transform(X_missing)
    assert filled.dtype == np.float32
    assert (filled[curved.observed] == X_missing[curved.observed]).all()


@every
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, curved):
    fitted = seeded(model).fit(curved.X)
    before = fitted.transform(curved.X)
    with pytest.raises(ValueError, match="no observed values"):
        fitted.fit(np.full((5, 3), np.nan))
    assert (fitted.transform(curved.X) == before).all()
    unfitted = seeded(model)
    with pytest.raises(ValueError, match="no observed values"):
        unfitted.fit(np.full((5, 3), np.nan))
    with pytest.raises(NotFittedError):
        unfitted.transform(curved.X)


@every
@pytest.mark.parametrize("unit", [1e-120, 1e-6, 1e120])
def test_units_of_the_table_do_not_matter(model, unit, curved):
    fitted = seeded(model).fit(curved.X)
    other = seeded(model).fit(unit * curved.X)
    error = np.abs(other.transform(unit * curved.X) / unit - fitted.transform(curved.X))
    assert np.median(error[~curved.observed]) < 1e-3
    assert error.max() < 0.5 * np.abs(curved.truth).max()


@every
def test_wrong_flags_and_unknown_arguments_are_errors(model, curved):
    for name in ("scale", "add_indicator", "keep_empty_features"):
        with pytest.raises(ValueError, match=f"{name}.*True or False"):
            seeded(model).set_params(**{name: "no"}).fit(curved.X)
    with pytest.raises(ValueError, match="verbose"):
        seeded(model).set_params(verbose="x").fit(curved.X)
    with pytest.raises(TypeError, match="sample_weight"):
        seeded(model).fit_transform(curved.X, sample_weight=1)


@every
def test_a_row_beyond_all_bounds_is_an_error_or_filled_with_finite_numbers(model, curved):
    fitted = seeded(model).fit(curved.X)
    row = curved.X[:1].copy()
    row[0, np.flatnonzero(curved.observed[0])[0]] = 1.7e308
    with np.errstate(all="ignore"), suppress(ValueError):
        assert np.isfinite(fitted.transform(row)).all()
