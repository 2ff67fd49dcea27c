"""Families other than dictionaries; none of them sees the entries that it is scored on."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import CONFIG, SMALL, make_data, with_other_values

from hirank.models.als import ALSConfig
from hirank.models.em import EMConfig
from hirank.optim.trace import Monitor, TrialFinished
from hirank.selection.candidates import ColumnMeans, GaussianMixtures, LowRank
from hirank.selection.dictionary_search import _starts
from hirank.selection.search import _held_out
from hirank.selection.trial import SearchData


class EqualLosses(SearchData):
    """Data on which all models are equally good, so that a search takes the same decisions."""

    def loss(self, filled):
        return 1.0


def test_trials_are_scored_on_held_out_entries_alone(noise):
    data = make_data(*noise)
    filled = [np.where(held_out, data.X + 0.5, 1e9) for held_out in data.folds]

    assert data.loss(filled) == pytest.approx(0.5)
    rms = np.sqrt(np.mean(data.truth**2))
    assert data.error(filled) == pytest.approx(0.5 / rms)
    for training, held_out in zip(data.training, data.folds, strict=True):
        assert (training | held_out == data.observed).all()
        assert not (training & held_out).any()


def test_column_means_have_error_1(noise):
    (trial,) = ColumnMeans().trials(make_data(*noise), None)

    assert trial.error == pytest.approx(1, abs=0.05)
    assert trial.family == "column means"


def test_mixtures_do_not_see_held_out_entries(clusters):
    data = make_data(*clusters, CONFIG, kind=EqualLosses)

    one, other = ([*GaussianMixtures().trials(d, None)] for d in (data, with_other_values(data)))

    assert [trial.params for trial in one] == [trial.params for trial in other]
    assert max(trial.params["n_components"] for trial in one) > 1
    for a, b in zip(one, other, strict=True):
        assert (a.filled[0] == b.filled[0]).all()
        assert (a.filled[1] != b.filled[1]).any()  # there they are observed


def test_factors_do_not_see_held_out_entries(low_rank):
    config = replace(SMALL, low_rank=ALSConfig(ranks=(4,), ridges=(1e-2,)))
    data = make_data(*low_rank, config)

    (one,), (other,) = (LowRank().trials(d, None) for d in (data, with_other_values(data)))

    assert (one.filled[0] == other.filled[0]).all()
    assert (one.filled[1] != other.filled[1]).any()


def test_dictionaries_do_not_start_from_held_out_entries(low_rank):
    data = make_data(*low_rank)
    (factors,) = LowRank().trials(data, None)

    for best in (None, factors):
        for each in (data, with_other_values(data)):
            for start, held_out in zip(_starts(each, best), each.folds, strict=True):
                assert (start[held_out] != each.X[held_out]).all()


def test_conditional_deviations_do_not_depend_on_held_out_entries(clusters):
    config = replace(SMALL, mixture=EMConfig(max_components=1))
    data = make_data(*clusters, config)
    trial = next(GaussianMixtures().trials(data, None))

    one, other = (
        _held_out([trial], np.ones(1), d).deviation for d in (data, with_other_values(data))
    )

    first = int(data.folds[0].sum())
    assert (one[:first] == other[:first]).all()


def test_mixtures_that_fail_late_leave_the_smaller_ones(clusters):
    events = []

    def fail_after_three_trials(line):
        if len(events) >= 3:
            raise np.linalg.LinAlgError("singular")

    monitor = Monitor(fail_after_three_trials, subscriber=events.append)
    data = make_data(*clusters, CONFIG, monitor=monitor)

    trials = [*GaussianMixtures().trials(data, None)]

    assert len(trials) == 4
    assert all(isinstance(event, TrialFinished) for event in events)
    assert not any(trial.failure for trial in trials[:3])
    assert trials[3].failure == "singular"
    assert trials[3].loss == np.inf


def test_a_mixture_that_fails_at_once_is_an_error(clusters):
    def fail(line):
        raise np.linalg.LinAlgError("singular")

    data = make_data(*clusters, monitor=Monitor(fail))

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        next(GaussianMixtures().trials(data, None))
