import numpy as np
import pytest
from helpers.estimators import fast_imputer, remove_entries

from hirank.estimators.summary import _Errors, _gains, _verdict


def test_the_verdict_compares_the_errors_that_are_shown():
    assert "has 1.05 times the error." in _verdict(0.7, 1.05, 1.09)
    assert "has 1.09 times the mean absolute error." in _verdict(0.7, 1.01, 1.09)
    assert "A linear method does as well" in _verdict(0.7, 1.01, 1.02)
    assert "No linear method" in _verdict(0.7, np.nan, np.nan)


def test_the_summary_names_a_feature_that_is_unrelated_to_the_others(fitted):
    summary = fitted.summary()

    assert {"error", "linear_error", "mean_error", "features", "verdict"} <= set(summary)
    remarks = {row["feature"]: row["remark"] for row in summary["features"]}
    assert "related" in remarks[5]
    assert not any(remarks[j] for j in (0, 1, 2))
    assert sum(row["n_held_out"] for row in summary["features"]) == summary["n_held_out"]


def test_the_summary_lists_the_selected_trials(fitted):
    summary, results = fitted.summary(), fitted.search_results_

    assert sum(one["weight"] for one in summary["selected"]) == pytest.approx(1)
    selected = results["family"][results["weight"] > 0].tolist()
    assert [one["family"] for one in summary["selected"]] == selected


def test_the_summary_prints_as_text(fitted):
    summary = fitted.summary()

    text = str(summary)

    assert text == repr(summary)
    assert all(word in text for word in ("held-out entries", "feature", summary["verdict"]))


def test_sparsely_observed_rows_are_counted(table):
    sparse = table.copy()
    sparse[:4, 1:] = np.nan
    sparse[:4, 0] = 0.5

    summary = fast_imputer().fit(sparse).summary()

    others = (~np.isnan(table[4:])).sum(axis=1) <= 2
    assert summary["sparse_rows"] == 4 + others.sum()
    assert "2 observed entries or fewer" in str(summary)


def test_errors_are_relative_to_the_column_mean_in_any_units():
    rng = np.random.default_rng(0)
    X = remove_entries(rng, 1000 + rng.normal(size=(100, 5)))

    summary = fast_imputer(scale=False).fit(X).summary()

    assert 0.9 < summary["error"] < 1.5
    assert all(row["remark"] for row in summary["features"] if row["error"] > 0.9)


@pytest.mark.filterwarnings("ignore::hirank.exceptions.FewEntriesWarning")
def test_the_summary_of_a_table_without_held_out_entries():
    X = remove_entries(np.random.default_rng(0), np.random.default_rng(1).normal(size=(9, 4)))

    summary = fast_imputer().fit(X).summary()

    assert summary["n_held_out"] == 0
    assert "error" not in summary
    assert "is not known" in summary["verdict"]
    assert "nan" not in str(summary)


def test_errors_are_in_the_units_of_the_data_where_tails_are_compressed():
    rng = np.random.default_rng(0)
    size = rng.standard_t(3, size=(300, 1))
    truth = np.exp(size + rng.normal(scale=0.3, size=(300, 6)))  # amounts with heavy tails
    X = remove_entries(rng, truth)
    model = fast_imputer().fit(X)

    held_out, summary = model.held_out_, model.summary()

    assert model._fitted.columns.scaling.tails.compressed.all()
    feature = summary["features"][0]
    mine = held_out["feature"] == 0
    miss = held_out["imputed"][mine] - held_out["truth"][mine]
    from_mean = np.nanmean(X[:, 0]) - held_out["truth"][mine]
    expected = np.sqrt(np.mean(miss**2) / np.mean(from_mean**2))
    assert feature["error"] == pytest.approx(expected)


def test_a_gain_that_may_be_chance_is_not_stated():
    rng = np.random.default_rng(0)
    rows, linear = np.arange(60), rng.exponential(size=60)
    better = _Errors(rows, rows * 0, linear * 0.7, linear, np.ones(60))
    by_chance = _Errors(rows, rows * 0, rng.permutation(linear) * 0.97, linear, np.ones(60))

    assert min(_gains(better)) > 1.4
    assert max(_gains(by_chance)) <= 1.0


def test_missing_entries_unlike_any_observed_ones_are_stated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1)) + rng.normal(scale=0.1, size=(120, 6))
    X[:60, :3] = np.nan  # nothing shows how well one half is imputed from the other
    X[60:, 3:] = np.nan

    summary = fast_imputer().fit(X).summary()

    assert summary["unjudged"] == 1.0
    assert "100% of the missing entries" in str(summary)
    assert "cannot be judged" in str(summary)
