"""The refit of selected models to all entries, and what remains when it fails."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import SMALL, make_data, missing_error

from hirank.models.dictionary import Dictionary
from hirank.models.low_rank import Subspace
from hirank.models.mixture import Mixture
from hirank.optim.trace import Monitor, RefitFailed
from hirank.selection.candidates import ColumnMeans, GaussianMixtures, LowRank
from hirank.selection.dictionary_path import PathFitter
from hirank.selection.dictionary_search import Dictionaries, FittedPath
from hirank.selection.refit import averaging_factor, refit


def fail(*args):
    raise np.linalg.LinAlgError("singular")


def with_failing_refit(trial):
    """Return a trial whose family cannot be refitted."""
    kind = type(trial.candidate)
    return replace(trial, candidate=type("Failing", (kind,), {"refit": fail})())


def test_refits_use_all_observed_entries(low_rank):
    data = make_data(*low_rank)
    (factors,) = LowRank().trials(data, None)
    gaussian = next(GaussianMixtures().trials(data, None))

    ((filled, rows),) = LowRank().refit(factors, data, None)
    mixtures = GaussianMixtures().refit(gaussian, data, 3)

    for table in (filled, *(one.filled for one in mixtures)):
        assert (table[data.observed] == data.X[data.observed]).all()
    assert len(mixtures) == 1  # there is always one Gaussian
    assert np.abs(rows.complete(data.X, data.observed) - filled).mean() < 0.1


@pytest.mark.parametrize(
    ("n_models", "max_cost", "count"), [(None, 1e9, 4), (3, 1e9, 3), (4, 0, 2)]
)
def test_where_folds_are_few_more_mixtures_are_grown_if_they_are_cheap(
    clusters, n_models, max_cost, count
):
    config = replace(SMALL, mixture=replace(SMALL.mixture, max_growth_cost=max_cost))
    data = make_data(*clusters, config)
    *_, mixture = GaussianMixtures().trials(data, None)
    assert len(data.folds) == 2

    refits = GaussianMixtures().refit(mixture, data, n_models)

    assert len(refits) == count
    assert len({one.filled.tobytes() for one in refits}) == count
    for one in refits:
        assert (one.filled == data.X)[data.observed].all()
        assert missing_error(one.filled, *clusters) < 0.3  # 0.9 with column means


def test_factors_that_are_out_of_time_are_those_of_a_fold(low_rank):
    X, observed = low_rank
    data = make_data(X, observed)
    (trial,) = LowRank().trials(data, None)
    late = replace(data, monitor=Monitor(lambda line: True))
    late.monitor.record(0.0)

    ((filled, rows),) = LowRank().refit(trial, late, None)

    means = np.abs(X)[~observed].mean()
    assert missing_error(filled, X, observed) < 0.2 * means
    assert missing_error(rows.complete(data.X, observed), X, observed) < 0.2 * means


def test_a_refit_that_fails_is_reported_and_the_other_models_are_used(low_rank):
    events = []
    data = make_data(*low_rank, monitor=Monitor(subscriber=events.append))
    (factors,) = LowRank().trials(data, None)
    (means,) = ColumnMeans().trials(data, None)
    events.clear()

    stacked = refit([means, with_failing_refit(factors)], np.array([0.3, 0.7]), data)

    (failed,) = [event for event in events if isinstance(event, RefitFailed)]
    assert (failed.family, failed.problem) == ("low rank", "singular")
    assert failed.label == factors.label
    assert stacked.stack.families == ("column means",)
    assert stacked.stack.weights.tolist() == [1.0]


def test_column_means_are_used_if_all_refits_fail(low_rank):
    events = []
    data = make_data(*low_rank, monitor=Monitor(subscriber=events.append))
    (factors,) = LowRank().trials(data, None)

    stacked = refit([with_failing_refit(factors)], np.ones(1), data)

    assert sum(isinstance(event, RefitFailed) for event in events) == 1
    assert stacked.stack.families == ("column means",)
    assert (stacked.filled[data.observed] == data.X[data.observed]).all()
    assert np.isfinite(stacked.filled).all()


def test_a_dictionary_that_cannot_be_refitted_is_taken_from_a_fold(curve):
    data = make_data(*curve, SMALL)
    *_, trial = Dictionaries().trials(data, None)
    fitter = type("Failing", (PathFitter,), {"fit_stages": fail})(data, data.solver)
    failing = replace(trial, state=FittedPath(fitter, trial.state.path))

    (taken,) = Dictionaries().refit(failing, data, 4)

    path = trial.state.path
    assert isinstance(taken.model, Dictionary)
    assert (taken.model.D == path.ends[path.best][0].D).all()
    assert (taken.filled[data.observed] == data.X[data.observed]).all()


def test_models_without_weight_are_not_refitted_except_for_their_deviations(low_rank):
    data = make_data(*low_rank)
    gaussian = next(GaussianMixtures().trials(data, None))
    (factors,) = LowRank().trials(data, None)

    stacked = refit([gaussian, factors], np.array([0.0, 1.0]), data)

    assert [type(model) for model in stacked.stack.models] == [Subspace]
    assert isinstance(stacked.mixture, Mixture)


@pytest.mark.parametrize(("shared", "expected"), [(0.0, 0.5), (1.0, 1.0)])
def test_disagreement_shows_what_averaging_four_models_gains(shared, expected):
    """Errors of their own fall with the root of their number; errors that all share stay."""
    common, *own = np.random.default_rng(0).normal(size=(6, 500))
    *refits, scored = (shared * common + (1 - shared) * one for one in own)

    factor = averaging_factor(refits, scored)

    # Half of the gain, in logarithms, is taken.
    assert factor**2 == pytest.approx(expected, rel=0.1)


def test_one_model_gains_nothing_by_averaging():
    assert averaging_factor([np.ones(3)], np.ones(3)) == 1
