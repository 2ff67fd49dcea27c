"""KFMC as it comes: everything chosen by hidden entries."""

import pickle
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from helpers.plain import plain
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from hirank import KFMC
from hirank.baselines import LRF, SoftImpute
from hirank.core.masking import MaskingConfig, make_folds
from hirank.estimators.summary import _verdict
from hirank.metrics import missing_relative_error

FEW_STEPS = {"max_iter": 5, "random_state": 0}
ONE = {**FEW_STEPS, "n_components": 15, "kernel": "rbf", "bandwidth": "path", "n_starts": 1}
"""One recipe, few steps: where accuracy is not the point."""


@pytest.fixture(scope="module", autouse=True)
def quick():
    """What is tested here holds for two folds as for five."""
    with pytest.MonkeyPatch.context() as patch:
        two_folds = partial(make_folds, config=MaskingConfig(max_folds=2))
        patch.setattr("hirank.selection.search.make_folds", two_folds)
        patch.setattr("hirank.selection.temporal.make_folds", two_folds)
        patch.setattr("hirank.models.em.LARGEST", 4)
        yield


def holes(rng, X, part=0.2):
    observed = rng.random(X.shape) >= part
    observed[:, 0] |= ~observed.any(axis=1)
    return np.where(observed, X, np.nan)


@pytest.fixture(scope="module")
def truth():
    """Five features of two latent variables and one that is unrelated, 110 x 6."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 110))
    X = np.column_stack([a, b, a + 2 * b, a * b, np.sin(2 * a) + b, rng.normal(size=110)])
    return X + 0.05 * rng.normal(size=X.shape) * [1, 1, 1, 1, 1, 0]


@pytest.fixture(scope="module")
def table(truth):
    return holes(np.random.default_rng(1), truth)


@pytest.fixture(scope="module")
def fitted(table):
    return KFMC(**FEW_STEPS).fit(table)


def test_results_are_a_table(fitted):
    results = fitted.search_results_
    assert len({len(column) for column in results.values()}) == 1
    assert {"candidate", "error", "seconds", "weight", "failure"} <= set(results)
    assert results["weight"].sum() == pytest.approx(1)
    assert (results["weight"] >= 0).all()
    assert (np.isfinite(results["error"]) | (results["failure"] != "")).all()
    assert {"linear", "low rank", "kernelized"} <= set(results["candidate"])
    assert len(pd.DataFrame(results)) == len(results["error"])
    assert "hidden entries" in fitted.stop_reason_


def test_what_stands_at_missing_entries_can_not_matter(truth, table):
    """The same holes, told as NaN and by a marker: the truth below them is in no way there."""
    marked = np.where(np.isnan(table), -999.0, truth)
    by_nan = KFMC(**ONE).fit_transform(table)
    by_marker = KFMC(missing_values=-999.0, **ONE).fit_transform(marked)
    assert (by_nan == by_marker).all()


def error_of(model, truth, X):
    return missing_relative_error(model.fit_transform(X), truth, ~np.isnan(X))


def rivals():
    return [LRF(random_state=0), SoftImpute(), IterativeImputer(random_state=0)]


def best_of(models, truth, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some do not converge
        return min(error_of(model, truth, X) for model in models)


def test_a_low_rank_table_is_filled_as_well_as_by_linear_methods():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 20))
    truth += 0.01 * rng.normal(size=truth.shape)
    X = holes(rng, truth)
    model = KFMC(max_iter=10, random_state=0)
    assert error_of(model, truth, X) < 1.03 * best_of(rivals(), truth, X)
    assert "linear" in model.summary()["verdict"]
    assert "nothing is gained by curved models" in str(model.summary()).replace("\n", " ")


def test_noise_is_filled_as_well_as_by_linear_methods(monkeypatch):
    monkeypatch.setattr("hirank.selection.search.make_folds", make_folds)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 10))
    X = holes(rng, truth)
    model = KFMC(max_iter=10, random_state=0)
    assert error_of(model, truth, X) < 1.03 * best_of(rivals(), truth, X)
    assert "hardly recovered better than by column means" in str(model.summary())


# Time


def test_time_is_kept_and_said_to_be_over():
    rng = np.random.default_rng(0)
    latent = rng.uniform(-1, 1, size=(1500, 3))
    truth = np.sin(latent @ rng.normal(size=(3, 30)) * 2)
    X = holes(rng, truth, 0.3)
    model = KFMC(max_time=0.5, random_state=0)
    filled = model.fit_transform(X)
    assert model._seconds < 0.5 + 3
    assert "max_time=0.5" in model.stop_reason_
    missing = np.isnan(X)
    means = np.nanmean(X, axis=0)
    assert np.abs(filled - truth)[missing].mean() < 0.9 * np.abs(truth - means)[missing].mean()
    assert np.isfinite(model.transform(X[:20])).all()


def test_time_is_kept_with_all_settings_given(table):
    model = plain(30, max_iter=100_000, tol=0.0, max_time=0.1).fit(table)
    assert "max_time=0.1" in model.stop_reason_


# What is known of single features


BOUNDS = [
    (-0.5, 0.5),
    [(-0.5, 0.5)] * 6,
    {2: (-0.5, 0.5), -1: (0, None), 0: (None, None)},
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=["one pair", "a list", "by number"])
def test_fills_are_within_bounds(table, bounds):
    model = KFMC(bounds=bounds, **ONE)
    missing = np.isnan(table)
    with pytest.warns(UserWarning, match="observed values lie beyond bounds"):
        fitted = model.fit_transform(table)
    lower, upper = np.full((2, 6), np.inf) * [[-1], [1]]
    if isinstance(bounds, dict):
        lower[[2, 5]], upper[2] = (-0.5, 0), 0.5
    else:
        lower[:], upper[:] = -0.5, 0.5
    for filled in (fitted, model.transform(table), *model.sample(table, 2), *model.interval(table)):
        assert (filled[~missing] == table[~missing]).all()
        assert ((lower <= filled) & (filled <= upper) | ~missing).all()


def test_bounds_by_name(table):
    frame = pd.DataFrame(table, columns=list("abcdef"))
    model = KFMC(bounds={"c": (-0.5, 0.5)}, **ONE)
    with pytest.warns(UserWarning, match=r"beyond bounds, in columns c\."):
        filled = model.fit_transform(frame)
    assert np.abs(filled[np.isnan(table[:, 2]), 2]).max() <= 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": (1, 0)}, "contradict"),
        ({"bounds": {1: (3, 2)}}, "contradict"),
        ({"bounds": [(0, 1)] * 5}, "5 pairs, but X has 6 columns"),
        ({"bounds": {"a": (0, 1)}}, "no column names"),
        ({"bounds": {6: (0, 1)}}, "no column 6"),
        ({"bounds": {0: 1}}, "pairs"),
        ({"bounds": (0, np.nan)}, "NaN|room"),
        ({"bounds": 3}, "pair"),
        ({"bounds": (np.inf, None)}, "room"),
        ({"bounds": (0.2, 0.8), "integers": True}, "no whole number"),
        ({"integers": "all"}, "integers must be"),
        ({"integers": [7]}, "no column 7"),
        ({"order": "when"}, "no column names"),
        ({"order": 6}, "no column 6"),
        ({"max_gap": 3}, "needs ordered rows"),
        ({"max_gap": 0, "order": "time"}, "max_gap"),
        ({"max_time": 0}, "max_time"),
        ({"n_starts": 0}, "n_starts"),
        ({"solver": "newton", "order": "time"}, "order needs"),
        ({"solver": "newton", "max_time": 1}, "max_time"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*beyond bounds")
def test_what_can_not_be_is_an_error(table, settings, message):
    with pytest.raises(ValueError, match=message):
        KFMC(**{**ONE, **settings}).fit(table)


@pytest.fixture(scope="module")
def counts():
    """Two features of counts and one of numbers, 100 x 3."""
    rng = np.random.default_rng(0)
    level = rng.uniform(1, 20, 100)
    X = np.column_stack([rng.poisson(level), np.round(level), level + rng.normal(size=100)])
    return holes(rng, X)


@pytest.mark.parametrize(
    ("integers", "whole"), [("auto", [0, 1]), ([1], [1]), (True, [0, 1, 2]), (None, [])]
)
def test_whole_numbers_where_asked_for(counts, integers, whole):
    model = KFMC(integers=integers, bounds=(0, 17.5), **ONE)
    missing = np.isnan(counts)
    with pytest.warns(UserWarning, match="beyond bounds"):
        fitted = model.fit_transform(counts)
    for filled in (fitted, model.transform(counts), *model.sample(counts, 2)):
        fills = [filled[missing[:, j], j] for j in range(3)]
        assert [j for j in range(3) if (fills[j] == np.round(fills[j])).all()] == whole
        assert all(column.min() >= 0 and column.max() <= 17.5 for column in fills)


# Order


@pytest.fixture(scope="module")
def series():
    """Times and three features that change with them, 120 x 4; a long gap in column 2."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 20, 120))
    X = np.column_stack([t, np.sin(t), np.cos(t), np.cumsum(rng.normal(size=120))])
    gone = rng.random(X.shape) < 0.15
    gone[:, 0], gone[50:62, 2] = False, True
    return np.where(gone, np.nan, X)


def test_rows_need_not_be_sorted_by_time(series):
    shuffled = np.random.default_rng(1).permutation(len(series))
    frame = pd.DataFrame(series, columns=["when", "a", "b", "c"])
    model = KFMC(order="when", max_gap=5, **ONE)
    in_order = np.asarray(model.fit_transform(frame))
    again = np.asarray(model.transform(frame))
    by_chance = np.asarray(model.transform(frame.iloc[shuffled]))
    np.testing.assert_allclose(by_chance, again[shuffled], atol=1e-9)
    anew = np.asarray(model.fit_transform(frame.iloc[shuffled]))
    np.testing.assert_allclose(anew, in_order[shuffled], atol=1e-6)
    assert np.isnan(in_order[50:62, 2]).all()


def test_long_gaps_stay_and_short_ones_are_filled(series):
    model = KFMC(order="time", max_gap=5, **ONE)
    missing = np.isnan(series)
    tables = [model.fit_transform(series), model.transform(series)]
    tables += [*model.interval(series), *model.sample(series, 2)]
    for filled in tables:
        left = np.isnan(filled)
        assert left[50:62, 2].all()
        assert (filled[~missing] == series[~missing]).all()
        assert not left[:, [0, 1, 3]].any()
        assert left.sum() < 20
    new = np.where(missing[:, :1] | (np.arange(120) % 3 == 0)[:, None], np.nan, series[:, 3:] * 2)
    new[:2] = 1.0
    known = np.where(np.isnan(new), np.nan, np.nan_to_num(new))
    assert np.isfinite(model.complete_features(series, known)).all()


def test_neighbors_in_time_help():
    rng = np.random.default_rng(0)
    t = np.arange(150) / 8
    truth = np.column_stack([np.sin(t), np.cos(1.3 * t), np.sin(0.7 * t)])
    X = holes(rng, truth, 0.2)
    with_time, without = (error_of(KFMC(order=order, **ONE), truth, X) for order in ("time", None))
    assert with_time < 0.3 * without


@pytest.mark.parametrize(("entry", "message"), [("same", "another row has"), (np.nan, "no time")])
def test_a_column_that_is_no_time_is_told_of_once(series, entry, message):
    series = series.copy()
    series[3, 0] = series[4, 0] if entry == "same" else entry
    model = KFMC(order=0, **ONE)
    for call in (model.fit_transform, model.transform):
        with pytest.warns(UserWarning, match=message) as told:
            filled = call(series)
        assert len(told) == 1
        assert np.isfinite(filled).all()


# Intervals and draws


def test_intervals_hold_the_fills_and_grow_with_coverage(fitted, table):
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


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 3))
    truth = latent @ rng.normal(size=(3, 10)) + 0.3 * rng.normal(size=(400, 10))
    X = holes(rng, truth)
    model = KFMC(**ONE).fit(X)
    for coverage in (0.5, 0.9):
        lower, upper = model.interval(X, coverage)
        inside = ((lower <= truth) & (truth <= upper))[np.isnan(X)].mean()
        assert abs(inside - coverage) < 0.07


@pytest.mark.parametrize("seed", [0, 2])
def test_intervals_in_time_hold_the_truth_as_often(seed):
    rng = np.random.default_rng(seed)
    paths = np.cumsum(rng.normal(size=(400, 3)), axis=0)
    truth = paths @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(400, 6))
    X = holes(rng, truth, 0.3)
    lower, upper = KFMC(order="time", **ONE).fit(X).interval(X, 0.9)
    assert ((lower <= truth) & (truth <= upper))[np.isnan(X)].mean() > 0.84


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, np.nan, "0.9", None, True])
def test_coverage_is_a_probability(fitted, table, coverage):
    with pytest.raises(ValueError, match="coverage must be"):
        fitted.interval(table, coverage)


def test_without_hidden_entries_there_are_no_intervals(table):
    model = plain(10, max_iter=3).fit(table)
    for call in (model.interval, model.sample):
        with pytest.raises(ValueError, match="hidden no entries"):
            call(table)


def test_draws_vary_but_for_what_is_observed(fitted, table):
    missing = np.isnan(table)
    draws = fitted.sample(table, 5, random_state=0)
    assert draws.shape == (5, *table.shape)
    assert (draws[:, ~missing] == table[~missing]).all()
    assert (draws[:, missing].std(axis=0) > 0).all()
    np.testing.assert_array_equal(draws, fitted.sample(table, 5, random_state=0))
    assert (draws != fitted.sample(table, 5, random_state=1)).any()
    with pytest.raises(ValueError, match="n_draws"):
        fitted.sample(table, 0)


def test_draws_are_as_far_apart_as_intervals_say(fitted, table):
    missing = np.isnan(table)
    draws = fitted.sample(table, 60, random_state=0)[:, missing]
    lower, upper = (end[missing] for end in fitted.interval(table, 0.9))
    assert abs(((lower <= draws) & (draws <= upper)).mean() - 0.9) < 0.03


# Summary


def test_the_verdict_compares_the_errors_that_are_shown():
    assert "has 1.05 times the error." in _verdict(0.7, 1.05, 1.09)
    assert "has 1.09 times the mean absolute error." in _verdict(0.7, 1.01, 1.09)
    assert "A linear method does as well" in _verdict(0.7, 1.01, 1.02)


def test_the_summary_names_a_feature_that_is_unrelated(fitted):
    summary = fitted.summary()
    assert set(summary) >= {"chosen", "error", "linear_error", "features", "verdict", "n_hidden"}
    remarks = {row["feature"]: row["remark"] for row in summary["features"]}
    assert "mean" in remarks[5] or "hardly" in remarks[5]
    assert not any(remarks[j] for j in (0, 1, 2))
    assert sum(one["weight"] for one in summary["chosen"]) == pytest.approx(1)
    text = str(summary)
    assert all(word in text for word in ("hidden entries", "feature", summary["verdict"]))
    assert text == repr(summary)


def test_errors_are_over_those_of_the_mean_in_any_units():
    rng = np.random.default_rng(0)
    X = holes(rng, 1000 + rng.normal(size=(100, 5)))
    summary = KFMC(scale=False, **ONE).fit(X).summary()
    assert 0.9 < summary["error"] < 1.5
    assert all(row["remark"] for row in summary["features"] if row["error"] > 0.9)


@pytest.mark.parametrize("mix", [True, False])
def test_a_summary_without_hidden_entries_or_linear_models(table, mix):
    if mix:
        summary = plain(10, max_iter=3).fit(table).summary()
        assert "nothing is known" in summary["verdict"]
    else:
        summary = KFMC(**{**ONE, "mix": False, "bandwidth": "auto"}).fit(table).summary()
        assert "No linear method" in summary["verdict"]
    assert "nan" not in str(summary)


# Odd tables


def test_few_entries_are_filled_with_caution():
    rng = np.random.default_rng(0)
    X = holes(rng, rng.normal(size=(9, 5)))
    model = KFMC(random_state=0)
    with pytest.warns(UserWarning, match="too few to choose a model by"):
        filled = model.fit_transform(X)
    assert np.isfinite(filled).all()
    assert np.isfinite(model.transform(X)).all()
    assert "without a trial" in str(model.summary())
    assert model.summary()["chosen"]


def test_a_wild_value_spoils_no_other_and_stays(truth, table):
    spoiled = table.copy()
    row = int(np.flatnonzero(~np.isnan(table[:, 1]))[7])
    spoiled[row, 1] = 1e6
    missing = np.isnan(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may be told of
        model = KFMC(**ONE)
        filled = model.fit_transform(spoiled)
        assert model.transform(spoiled)[row, 1] == 1e6
    assert filled[row, 1] == 1e6
    clean = KFMC(**ONE).fit_transform(table)
    spoiled_error, clean_error = (np.abs(each - truth)[missing].mean() for each in (filled, clean))
    assert spoiled_error < 1.15 * clean_error


def test_constant_and_duplicated_features(table):
    X = np.column_stack([table[:80], table[:80, 0], np.full(80, 3.0)])
    X[5:9, 7] = np.nan
    missing = np.isnan(X[:, 0])
    X[missing, 6] = 0.5  # the copy tells what is missing
    model = KFMC(**ONE)
    for filled in (model.fit_transform(X), model.transform(X)):
        assert (filled[:, 7] == 3).all()
        assert np.isfinite(filled).all()
        assert np.abs(filled[missing, 0] - 0.5).mean() < 0.1
    lower, upper = model.interval(X)
    assert (lower[:, 7] == 3).all()
    assert (upper[:, 7] == 3).all()


# As an estimator


def test_copies_do_the_same(fitted, table):
    new = table[:40]
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(new) == fitted.transform(new)).all()
    for one, other in zip(again.interval(new), fitted.interval(new), strict=True):
        assert (one == other).all()
    assert str(again.summary()) == str(fitted.summary())
    model = clone(KFMC(bounds=(0, 1), order="time", max_gap=3, mix=False, n_starts=2))
    assert model.get_params()["max_gap"] == 3
    assert clone(model).get_params() == model.get_params()


@pytest.mark.filterwarnings("ignore:.*beyond bounds")
def test_a_fit_that_fails_leaves_the_old_model(table):
    model = KFMC(**ONE).fit(table)
    before = model.transform(table)
    for bounds in ((1, 0), (0.2, 0.8)):
        model.set_params(bounds=bounds, integers=True)
        with pytest.raises(ValueError, match=r"contradict|no whole"):
            model.fit(table)
    model.set_params(bounds=None, integers=None)
    assert (model.transform(table) == before).all()
    assert "hidden entries" in str(model.summary())


def test_single_precision_comes_back(table):
    model = KFMC(**ONE)
    X = table.astype(np.float32)
    lower, upper = model.fit(X).interval(X)
    assert {a.dtype for a in (lower, upper, model.transform(X), model.sample(X, 1))} == {X.dtype}
    filled = model.transform(X)
    assert ((lower <= filled) & (filled <= upper)).all()
