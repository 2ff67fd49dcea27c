"""Imputer: what it selects, within which time, and how accurate it is."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import FAST_SEARCH, FastImputer, fast_imputer, remove_entries
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from hirank import Imputer
from hirank.baselines import LRF, SoftImpute
from hirank.estimators.callbacks import subscribed
from hirank.exceptions import FewEntriesWarning, ParameterError, StopReason
from hirank.metrics import missing_relative_error
from hirank.optim.trace import Phase, PhaseStarted, TrialFinished
from hirank.selection.config import DictionaryConfig


def error(model, truth, X):
    return missing_relative_error(model.fit_transform(X), truth, ~np.isnan(X))


def lowest_linear_error(truth, X):
    models = LRF(random_state=0), SoftImpute(), IterativeImputer(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some do not converge
        return min(error(model, truth, X) for model in models)


def test_curved_data_are_imputed_far_better_than_by_column_means(curved):
    class TwoFolds(Imputer):
        _config = replace(FAST_SEARCH, dictionary=DictionaryConfig(n_models=2))

    filled = TwoFolds(max_iter=60, random_state=0).fit_transform(curved.X)

    means = np.where(curved.observed, curved.truth, np.nanmean(curved.X, axis=0))
    found = missing_relative_error(filled, curved.truth, curved.observed)
    # The ratio is 0.007 here, and 0.002 with five folds and max_iter=250.
    assert found < 0.05 * missing_relative_error(means, curved.truth, curved.observed)


def test_a_low_rank_table_is_imputed_as_well_as_by_linear_methods():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 20))
    truth += 0.01 * rng.normal(size=truth.shape)
    X = remove_entries(rng, truth)
    model = fast_imputer(max_iter=10)

    found = error(model, truth, X)

    assert found < 1.03 * lowest_linear_error(truth, X)
    assert model.summary()["verdict"].startswith("A linear method does as well")


def test_noise_is_imputed_as_well_as_by_linear_methods():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 10))
    X = remove_entries(rng, truth)
    model = Imputer(max_iter=10, random_state=0)  # with two folds, chance looks like structure

    found = error(model, truth, X)

    assert found < 1.03 * lowest_linear_error(truth, X)
    assert "hardly better than by column means" in model.summary()["verdict"]


def test_search_results_have_a_row_for_each_trial(fitted):
    results = fitted.search_results_

    assert len({len(column) for column in results.values()}) == 1
    assert next(iter(results)) == "family"
    assert {"error", "loss", "seconds", "weight", "failure"} <= set(results)
    assert {"column means", "Gaussian", "Gaussian mixture", "dictionary"} <= set(results["family"])
    assert results["weight"].sum() == pytest.approx(1)
    assert (results["weight"] >= 0).all()
    assert np.isfinite(results["error"]).all()
    assert results["error"][results["family"] == "column means"] == pytest.approx(1, abs=0.05)
    assert len(pd.DataFrame(results)) == len(results["error"])


def test_held_out_entries_are_observed_entries_in_the_units_of_the_data(fitted, truth, table):
    held_out = fitted.held_out_

    assert set(held_out) == {"row", "feature", "truth", "imputed", "linear"}
    assert len(held_out["row"]) == fitted.summary()["n_held_out"]
    entries = table[held_out["row"], held_out["feature"]]
    np.testing.assert_allclose(held_out["truth"], entries, atol=1e-12)
    assert np.isfinite(held_out["imputed"]).all()
    related = held_out["feature"] < 5
    wrong = np.abs(held_out["imputed"] - held_out["truth"])[related]
    assert wrong.mean() < 0.5 * truth[:, :5].std(axis=0).mean()


def test_an_imputer_does_not_publish_a_single_dictionary(fitted):
    for name in ("dictionary_", "kernel_", "objective_", "n_components_"):
        assert not hasattr(fitted, name)


def test_values_below_missing_entries_do_not_matter(truth, table):
    marked = np.where(np.isnan(table), -999.0, truth)

    by_nan = fast_imputer().fit_transform(table)
    by_marker = fast_imputer(missing_values=-999.0).fit_transform(marked)

    assert (by_nan == by_marker).all()


def test_the_number_of_averaged_models_can_be_set(curved):
    model = fast_imputer(n_init=3).fit(curved.X)

    families = list(model._fitted.model.families)
    assert families.count("dictionary") in (0, 3)
    # There are never more mixtures than folds, and always one Gaussian.
    assert families.count("Gaussian mixture") <= FAST_SEARCH.masking.max_folds
    assert families.count("Gaussian") <= 1


def test_the_time_limit_is_kept_and_reported():
    rng = np.random.default_rng(0)
    latent = rng.uniform(-1, 1, size=(4000, 3))
    truth = np.sin(latent @ rng.normal(size=(3, 30)) * 2)
    X = remove_entries(rng, truth, 0.3)
    model = Imputer(max_time=0.5, random_state=0)

    filled = model.fit_transform(X)

    assert model.summary()["seconds"] < 0.5 + 3
    assert model.status_ is StopReason.MAX_TIME
    assert "max_time=0.5" in model.stop_reason_
    missing, means = np.isnan(X), np.nanmean(X, axis=0)
    assert np.abs(filled - truth)[missing].mean() < 0.9 * np.abs(truth - means)[missing].mean()
    assert np.isfinite(model.transform(X[:20])).all()


def test_a_search_that_ends_by_itself_has_converged(fitted):
    assert fitted.status_ is StopReason.CONVERGED
    assert fitted.stop_reason_.startswith("Selected on ")
    assert fitted.n_iter_ == len(fitted.trace_) > 0


def test_progress_is_reported_as_events(table):
    events = []

    with subscribed(events.append):
        model = fast_imputer().fit(table)

    trials = [event for event in events if isinstance(event, TrialFinished)]
    assert {trial.family for trial in trials} >= {"Gaussian", "Gaussian mixture", "dictionary"}
    phases = [event.phase for event in events if isinstance(event, PhaseStarted)]
    assert phases == [Phase.REFIT]
    assert min(trial.error for trial in trials) == min(model.search_results_["error"])


def test_verbose_prints_a_line_per_trial(table, capsys):
    fast_imputer(verbose=1).fit(table)

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("[FastImputer] ")
    assert "mixture of" in err
    assert "step" not in err


def test_rows_beyond_the_limit_are_imputed_out_of_sample(curved):
    class FewRows(FastImputer):
        _config = replace(FAST_SEARCH, max_rows=80)

    events = []

    with subscribed(events.append):
        model = FewRows(max_iter=20, random_state=0)
        filled = model.fit_transform(curved.X)

    assert np.isfinite(filled).all()
    (phase,) = [e for e in events if getattr(e, "phase", None) is Phase.OUT_OF_SAMPLE]
    assert 0 < phase.n_rows <= 40
    assert model.held_out_["row"].max() > 80
    observed = curved.observed[model.held_out_["row"], model.held_out_["feature"]]
    assert observed.all()


def test_a_table_with_few_entries_is_imputed_with_a_warning():
    rng = np.random.default_rng(0)
    X = remove_entries(rng, rng.normal(size=(9, 5)))
    model = Imputer(random_state=0)

    with pytest.warns(FewEntriesWarning) as caught:
        filled = model.fit_transform(X)

    assert caught[0].message.count == (~np.isnan(X)).sum()
    assert np.isfinite(filled).all()
    assert np.isfinite(model.transform(X)).all()
    assert [one["family"] for one in model.summary()["selected"]] == ["Gaussian"]
    assert model.held_out_ == {}
    for call in (model.interval, model.sample):
        with pytest.raises(ValueError, match="too small to hold out entries"):
            call(X)


def test_an_outlier_is_kept_and_does_not_harm_other_rows(truth, table):
    spoiled = table.copy()
    row = int(np.flatnonzero(~np.isnan(table[:, 1]))[7])
    spoiled[row, 1] = 1e6
    missing = np.isnan(table)
    model = fast_imputer()

    filled = model.fit_transform(spoiled)

    assert filled[row, 1] == model.transform(spoiled)[row, 1] == 1e6
    clean = fast_imputer().fit_transform(table)
    spoiled_error, clean_error = (np.abs(each - truth)[missing].mean() for each in (filled, clean))
    assert spoiled_error < 1.15 * clean_error


def test_constant_and_duplicated_features(table):
    X = np.column_stack([table[:80], table[:80, 0], np.full(80, 3.0)])
    X[5:9, 7] = np.nan
    missing = np.isnan(X[:, 0])
    X[missing, 6] = 0.5  # the copy contains what is missing
    model = fast_imputer()

    for filled in (model.fit_transform(X), model.transform(X)):
        assert (filled[:, 7] == 3).all()
        assert np.isfinite(filled).all()
        assert np.abs(filled[missing, 0] - 0.5).mean() < 0.2
    lower, upper = model.interval(X)
    assert (lower[:, 7] == 3).all()
    assert (upper[:, 7] == 3).all()


def test_single_precision_comes_back(table):
    X = table.astype(np.float32)
    model = fast_imputer().fit(X)

    filled, (lower, upper) = model.transform(X), model.interval(X)

    assert {a.dtype for a in (lower, upper, filled, model.sample(X, 1))} == {X.dtype}
    assert ((lower <= filled) & (filled <= upper)).all()


def test_pickled_imputers_give_the_same_bits(fitted, table):
    new = table[:40]

    again = pickle.loads(pickle.dumps(fitted))

    assert (again.transform(new) == fitted.transform(new)).all()
    for one, other in zip(again.interval(new), fitted.interval(new), strict=True):
        assert (one == other).all()
    assert str(again.summary()) == str(fitted.summary())


def test_clones_have_the_same_parameters_and_are_not_fitted(fitted):
    model = Imputer(bounds=(0, 1), time=True, max_gap=3, n_init=2)

    assert clone(model).get_params() == model.get_params()
    assert not clone(fitted).__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_init", 0),
        ("n_init", "many"),
        ("max_gap", 3),  # without time
        ("max_time", 0),
        ("scale", "log"),
        ("max_iter", 0),
        ("tol", -1),
        ("tol", np.nan),
        ("missing_values", "?"),
        ("add_indicator", "yes"),
        ("verbose", -1),
    ],
)
def test_parameters_that_cannot_be_used_are_named(table, parameter, value):
    with pytest.raises(ParameterError) as caught:
        Imputer(**{parameter: value}).fit(table)

    assert caught.value.parameter == parameter
