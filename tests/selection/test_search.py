"""The search as a whole: what is selected for which table, and what happens when fits fail."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.selection import CONFIG, SMALL, missing_error, run_search

from hirank.core.masking import MaskingConfig
from hirank.datasets import missing_gaps
from hirank.exceptions import FewEntriesWarning, NoModelWarning, StopReason
from hirank.optim.trace import Monitor
from hirank.selection.candidates import ColumnMeans, GaussianMixtures, LowRank
from hirank.selection.config import DictionaryConfig
from hirank.selection.dictionary_search import Dictionaries
from hirank.selection.search import CANDIDATES


def weights(selected):
    """Return the weight of each family in the stack."""
    found = {}
    for trial in selected.result.trials:
        found[trial.family] = found.get(trial.family, 0) + trial.weight
    return found


def test_linear_models_are_selected_for_a_low_rank_table(low_rank):
    X, observed = low_rank

    selected = run_search(X, observed)

    found = weights(selected)
    assert found["Gaussian"] + found["low rank"] > 0.75
    assert missing_error(selected.filled, X, observed) < 0.05


def test_independent_columns_are_imputed_about_as_well_as_by_column_means(noise):
    X, observed = noise
    # With two folds, chance looks like structure.
    config = replace(SMALL, masking=MaskingConfig(max_folds=5))

    selected = run_search(X, observed, config)

    means = np.nanmean(np.where(observed, X, np.nan), axis=0)
    baseline = missing_error(np.broadcast_to(means, X.shape), X, observed)
    assert missing_error(selected.filled, X, observed) < 1.05 * baseline


def test_a_dictionary_is_selected_for_a_curve(curve):
    X, observed = curve
    config = replace(CONFIG, dictionary=DictionaryConfig(n_models=1))

    selected = run_search(X, observed, config, max_iter=60)

    found = weights(selected)
    assert found["dictionary"] + found["Gaussian mixture"] > 0.9
    assert found["dictionary"] > 0.3
    assert missing_error(selected.filled, X, observed) < 0.15


def test_a_mixture_is_selected_for_clusters(clusters):
    X, observed = clusters

    selected = run_search(X, observed, CONFIG)

    assert weights(selected)["Gaussian mixture"] > 0.1
    trials = selected.result.trials
    linear = min(one.loss for one in trials if one.family in ("Gaussian", "low rank"))
    assert min(one.loss for one in trials if one.weight) < 0.8 * linear


def test_held_out_entries_are_observed_entries_and_what_the_stack_imputed(low_rank):
    X, observed = low_rank

    selected = run_search(X, observed)

    held_out = selected.result.held_out
    used = [trial.weight for trial in selected.result.selected]
    np.testing.assert_allclose(held_out.imputed, held_out.by_family @ used)
    assert observed[held_out.rows, held_out.columns].all()
    np.testing.assert_array_equal(held_out.truth, X[held_out.rows, held_out.columns])
    assert len(set(zip(held_out.rows, held_out.columns, strict=True))) == len(held_out.truth)
    assert (held_out.deviation > 0).all()
    assert len(held_out.take(slice(7)).truth) == 7


def test_observed_entries_stay_and_the_stack_imputes_like_the_fit(low_rank):
    X, observed = low_rank

    selected = run_search(X, observed)

    assert (selected.filled[observed] == X[observed]).all()
    assert selected.stack.weights.sum() == pytest.approx(1)
    again = selected.stack.complete(X, observed)
    error = missing_error(selected.filled, X, observed)
    assert np.abs(again - selected.filled).mean() < 0.1 * error + 0.02


@dataclass(frozen=True)
class Failing:
    """A family whose fits fail."""

    family: str
    error: Exception

    def trials(self, data, best):
        raise self.error
        yield

    def refit(self, trial, data, n_models):
        raise self.error


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (LowRank, np.linalg.LinAlgError("singular")),
        (GaussianMixtures, FloatingPointError("overflow")),
        (Dictionaries, ValueError("not finite")),
    ],
)
def test_a_family_that_fails_is_recorded_and_the_others_are_used(low_rank, failing, error):
    X, observed = low_rank
    candidates = [
        Failing(one.family, error) if isinstance(one, failing) else one for one in CANDIDATES
    ]

    selected = run_search(X, observed, candidates=candidates)

    (failed,) = [trial for trial in selected.result.trials if trial.failure]
    assert (failed.family, failed.failure, failed.weight) == (failing.family, str(error), 0)
    assert failed.loss == failed.error == np.inf
    assert sum(weights(selected).values()) == pytest.approx(1)
    assert missing_error(selected.filled, X, observed) < 0.2


def test_column_means_are_imputed_if_all_families_fail(low_rank):
    X, observed = low_rank
    failing = [Failing(one.family, np.linalg.LinAlgError("singular")) for one in CANDIDATES[1:]]

    with pytest.warns(NoModelWarning) as caught:
        selected = run_search(X, observed, candidates=[ColumnMeans(), *failing])

    reasons = dict(caught[0].message.reasons)
    assert {one.family: reasons[one.family] for one in failing} == {
        one.family: "singular" for one in failing
    }
    means = np.broadcast_to(np.nanmean(np.where(observed, X, np.nan), axis=0), X.shape)
    np.testing.assert_allclose(selected.filled[~observed], means[~observed], atol=1e-12)
    assert sum(bool(trial.failure) for trial in selected.result.trials) == len(failing)
    assert selected.result.held_out is None


def test_entries_are_held_out_in_gaps_if_they_are_missing_in_gaps(low_rank):
    X = low_rank[0]
    observed = missing_gaps(X.shape, 0.4, gaps=3, random_state=0)
    held_out = np.zeros(X.shape, bool)

    entries = run_search(X, observed).result.held_out
    held_out[entries.rows, entries.columns] = True

    unknown = held_out | ~observed
    assert observed[held_out].all()
    next_to_unknown = np.pad(unknown, ((1, 1), (0, 0)))
    beside = (next_to_unknown[2:] | next_to_unknown[:-2])[held_out]
    assert beside.mean() > 0.95


def test_errors_that_are_not_numerical_are_raised(low_rank):
    failing = Failing("low rank", TypeError("a defect"))

    with pytest.raises(TypeError, match="a defect"):
        run_search(*low_rank, candidates=[ColumnMeans(), failing])


def test_a_search_that_is_out_of_time_at_once_still_imputes(low_rank):
    X, observed = low_rank
    monitor = Monitor(max_time=1e-9)

    selected = run_search(X, observed, monitor=monitor)

    assert monitor.reason is StopReason.MAX_TIME
    assert np.isfinite(selected.filled).all()
    assert np.isfinite(selected.stack.complete(X, observed)).all()
    assert sum(weights(selected).values()) == pytest.approx(1)
    assert missing_error(selected.filled, X, observed) < 1.5 * np.abs(X).mean()


def test_a_search_that_a_callback_stops_at_once_still_imputes(low_rank):
    monitor = Monitor(lambda line: True)

    selected = run_search(*low_rank, monitor=monitor)

    assert monitor.steps == 1
    assert np.isfinite(selected.filled).all()


def test_as_many_dictionaries_as_asked_for_are_averaged(curve):
    selected = run_search(*curve, candidates=[Dictionaries()], n_init=3)

    assert selected.stack.families == ("dictionary",) * 3
    np.testing.assert_allclose(selected.stack.weights, 1 / 3)
    first, *others = (model.D for model in selected.stack.models)
    assert all(not np.array_equal(first, D) for D in others)


def test_dictionaries_alone_have_no_linear_model_to_compare_with(curve):
    selected = run_search(*curve, candidates=[Dictionaries()])

    assert {trial.family for trial in selected.result.trials} == {"dictionary"}
    assert selected.mixture is None
    assert np.isnan(selected.result.held_out.linear).all()
    assert (selected.result.held_out.deviation == 0).all()


def test_the_same_seed_gives_the_same_bits(curve):
    one, same, other = (run_search(*curve, seed=seed) for seed in (3, 3, 4))

    assert (one.filled == same.filled).all()
    assert weights(one) == weights(same)
    assert (one.filled != other.filled).any()


def test_values_at_missing_entries_do_not_matter(clusters):
    X, observed = clusters

    one, other = (run_search(np.where(observed, X, junk), observed) for junk in (0.0, 1e7))

    assert (one.filled == other.filled).all()


def test_too_few_entries_are_imputed_by_one_gaussian_with_a_warning(rng):
    X = rng.normal(size=(9, 5))
    observed = rng.random(X.shape) >= 0.2

    with pytest.warns(FewEntriesWarning) as caught:
        selected = run_search(X, observed)

    assert caught[0].message.count == observed.sum()
    assert np.isfinite(selected.filled).all()
    assert selected.result.held_out is None
    assert [trial.family for trial in selected.result.selected] == ["Gaussian"]


def test_where_columns_fail_together_errors_are_judged_on_rows_that_miss_them_all():
    rng = np.random.default_rng(0)
    # Columns of a group are nearly equal; the groups are hardly related.
    X = np.repeat(rng.normal(size=(400, 3)) + rng.normal(size=(400, 1)) / 2, 3, axis=1)
    X += rng.normal(scale=0.1, size=X.shape)
    fails = rng.random((400, 3)) < 0.2
    fails[fails.all(axis=1)] = False
    observed = np.repeat(~fails, 3, axis=1)

    selected = run_search(X, observed, candidates=(ColumnMeans(), GaussianMixtures()))

    held_out, missing = selected.result.held_out, X[~observed]
    reported = np.std(held_out.imputed - held_out.truth) / np.std(held_out.truth)
    true = np.std(selected.filled[~observed] - missing) / np.std(missing)
    # Single held-out entries are recovered with an error of 0.1, missing ones with 0.98.
    assert 0.85 < reported / true < 1.15


@pytest.mark.parametrize("seed", range(3))
def test_column_means_are_selected_for_unrelated_counts(seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.2, (200, 6)).astype(float)
    observed = rng.random(X.shape) >= 0.3

    selected = run_search(X, observed)

    # Models that impute less than the mean have smaller absolute and larger squared errors.
    means = np.nanmean(np.where(observed, X, np.nan), axis=0)
    baseline = np.sqrt(np.mean((means - X)[~observed] ** 2))
    assert np.sqrt(np.mean((selected.filled - X)[~observed] ** 2)) < 1.02 * baseline
