"""Dictionaries along paths, on all folds at once, and how the search lets them grow."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import CONFIG, SMALL, make_data, with_other_values

from hirank.core.init import soft_impute
from hirank.datasets import polynomial_manifolds
from hirank.optim.trace import Monitor
from hirank.selection.candidates import ColumnMeans
from hirank.selection.dictionary_path import PathFitter
from hirank.selection.dictionary_search import (
    Dictionaries,
    FittedPath,
    _DictionarySearch,
    _Rival,
    _specs,
)
from hirank.selection.trial import SearchData, Trial

NO_RIVAL = _Rival(np.inf, None)


def make_starts(data):
    return [soft_impute(data.X, training) for training in data.training]


def probe(data):
    """Return a fitter, and the first three stages of the usual path."""
    fitter = PathFitter(data, data.solver)
    spec = _specs(len(data.X), data.config.dictionary)[0]
    return fitter, fitter.probe(spec, make_starts(data), 3)


def test_dictionaries_do_not_see_held_out_entries(curve):
    data = make_data(*curve)

    (_, one), (_, other) = (probe(d) for d in (data, with_other_values(data)))

    assert len(one.ends) == 3
    for a, b in zip(one.ends, other.ends, strict=False):
        assert (a[0].X == b[0].X).all()
        assert (a[0].D == b[0].D).all()
        assert (a[1].X != b[1].X).any()  # there they are observed


def test_dictionaries_do_not_see_held_out_entries_when_the_path_is_repeated(curve):
    data = make_data(*curve)
    tables = []

    for each in (data, with_other_values(data)):
        fitter, path = probe(each)
        larger = fitter.enlarge(path, 30, 0.0)
        assert larger.first > 0
        again = fitter.repeat(larger)
        assert (again.first, len(again.ends[-1][0].D)) == (0, 30)
        for end, training in zip(again.ends[-1], each.training, strict=True):
            assert (end.X == each.X)[training].all()
        tables.append(again.ends[-1][0].X)

    assert (tables[0] == tables[1]).all()


class Equal(SearchData):
    """Data on which all stages are equally good."""

    def loss(self, filled):
        return 0.5


@pytest.mark.parametrize(("rough", "n_stages"), [(True, 2), (False, 7)])
def test_a_rough_path_ends_with_the_first_stage_that_gains_nothing(curve, rough, n_stages):
    data = make_data(*curve, kind=Equal, max_iter=1)
    spec = _specs(len(data.X), data.config.dictionary)[0]
    fitter = replace(PathFitter(data, data.solver), rough=rough)

    path = fitter.probe(spec, make_starts(data), None)

    assert len(path.ends) == n_stages
    assert fitter.is_finished(path)


@pytest.mark.parametrize(("max_first", "n_stages"), [(0.4, 1), (0.6, 3)])
def test_a_path_that_is_far_behind_after_its_first_stage_ends(curve, max_first, n_stages):
    data = make_data(*curve, kind=Equal, max_iter=1)
    spec = _specs(len(data.X), data.config.dictionary)[0]

    path = PathFitter(data, data.solver).probe(spec, make_starts(data), 3, max_first)

    assert len(path.ends) == n_stages


@pytest.mark.parametrize(("large_size", "expected"), [(0, 0.625), (10**9, np.inf)])
def test_paths_are_given_up_on_large_tables_only(curve, large_size, expected):
    data = make_data(*curve, replace(SMALL, large_size=large_size), kind=Equal, max_iter=1)
    limits = []

    def probe(self, spec, tables, n_stages, max_first):
        limits.append(max_first)
        return PathFitter.probe(self, spec, tables, n_stages)

    fitter = type("Known", (PathFitter,), {"probe": probe})(data, data.solver)
    specs = _specs(len(data.X), data.config.dictionary)[:2]
    _DictionarySearch(fitter, make_starts(data), NO_RIVAL)._probe(specs)

    assert limits == [np.inf, expected]


def grow(data, rival, losses, beside=None):
    """Return the sizes of dictionaries with known losses, in order of growth; the last is taken."""
    known = iter(losses)

    def enlarge(self, trial, r, max_loss):
        return replace(trial, spec=replace(trial.spec, n_components=r), losses=[next(known)])

    fitter = type("Known", (PathFitter,), {"enlarge": enlarge})(data, data.solver)
    spec = replace(_specs(len(data.X), data.config.dictionary)[0], n_components=2)
    path = replace(fitter.probe(spec, make_starts(data), 1), losses=[next(known)])
    done = [path]
    _DictionarySearch(fitter, make_starts(data), _Rival(rival, beside))._grow(done, 54)
    return [one.spec.n_components for one in done]


@pytest.mark.parametrize(
    ("rival", "losses", "sizes"),
    [
        (0.9, (0.8, 0.7, 0.6, 0.5), [2, 6]),  # noisy: a gain of an eighth is not worth more points
        (0.9, (0.8, 0.6, 0.5, 0.4), [2, 6, 18, 54]),  # a gain of a quarter is
        (0.09, (0.08, 0.07, 0.06, 0.05), [2, 6, 18, 54]),  # nearly exact
    ],
)
def test_dictionaries_on_noisy_tables_grow_on_after_a_large_gain_only(curve, rival, losses, sizes):
    assert grow(make_data(*curve, max_iter=1), rival, losses) == sizes


@pytest.mark.parametrize(("gain", "taken"), [(0.03, 6), (0.01, 2)])
def test_a_larger_dictionary_behind_other_families_is_taken_if_it_improves_the_stack(
    curve, gain, taken
):
    class Stacked(SearchData):
        losses = iter((0.5, 0.5 * (1 - gain)))  # with few points, with many

        def stacked_loss(self, tables):
            assert tables[0] == "beside"
            return next(self.losses)

    data = make_data(*curve, kind=Stacked, max_iter=1)

    *_, last = grow(data, 0.5, (0.7, 0.68), "beside")

    assert last == taken


def test_the_path_of_a_dictionary_that_grew_is_repeated_and_kept_if_it_is_better():
    rng = np.random.default_rng(1)
    X = polynomial_manifolds(100, random_state=1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    data = make_data(X, rng.random(X.shape) >= 0.2, CONFIG, max_iter=100)
    search = _DictionarySearch(PathFitter(data, data.solver), make_starts(data), NO_RIVAL)

    paths = search.run(_specs(len(X), data.config.dictionary)[:1], 60)

    large = [path for path in paths if path.spec.n_components == 60]
    assert [path.first > 0 for path in large] in ([True, False], [False, True])
    kept, other = paths[-1].loss, paths[-2].loss
    min_improvement = data.config.dictionary.min_improvement
    assert kept < other / (1 - min_improvement)
    if paths[-1].first == 0:
        assert kept < (1 - min_improvement) * other


class Late(Monitor):
    """A monitor of a fit that has to end its search, but has time for refits."""

    late = True


def test_a_path_ends_when_the_search_is_late_so_that_time_is_left_for_the_refit(curve):
    data = make_data(*curve, monitor=Late())

    _, path = probe(data)

    assert len(path.ends) == 1
    (refit,) = Dictionaries().refit(
        Trial.scored(
            Dictionaries(), "", {}, path.filled, data, 0.0, state=FittedPath(probe(data)[0], path)
        ),
        data,
        1,
    )
    assert (refit.filled == data.X)[data.observed].all()


def fail(*args, **kwargs):
    raise np.linalg.LinAlgError("singular")


@pytest.mark.parametrize("method", ["resume", "enlarge", "repeat"])
def test_a_failure_on_the_way_does_not_lose_what_was_fitted(curve, method):
    data = make_data(*curve, CONFIG)
    fitter = type("Failing", (PathFitter,), {method: fail})(data, data.solver)
    search = _DictionarySearch(fitter, make_starts(data), NO_RIVAL)

    paths = search.run(_specs(len(data.X), data.config.dictionary), 45)

    assert np.isfinite(paths[-1].loss)


def test_paths_that_all_fail_are_an_error(curve):
    data = make_data(*curve)
    fitter = type("Failing", (PathFitter,), {"probe": fail})(data, data.solver)
    search = _DictionarySearch(fitter, make_starts(data), NO_RIVAL)

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        search.run(_specs(len(data.X), data.config.dictionary), 45)


def test_only_the_last_path_is_preferred(curve):
    trials = [*Dictionaries().trials(make_data(*curve, SMALL), None)]

    assert [trial.rejected for trial in trials] == [True] * (len(trials) - 1) + [False]
    assert {trial.params["kernel"] for trial in trials} == {"rbf", "poly"}


def test_no_dictionary_is_fitted_to_a_table_that_is_too_wide_if_there_is_another_model(curve):
    data = make_data(*curve, SMALL)
    (trial, *_) = Dictionaries().trials(data, None)
    most = data.X.shape[1] - 1
    dictionary = replace(data.config.dictionary, max_features=most)
    narrow = replace(data, config=replace(data.config, dictionary=dictionary))

    assert not [*Dictionaries().trials(narrow, trial)]
    assert [*Dictionaries().trials(narrow, None)]


def test_no_dictionary_is_fitted_where_another_family_is_perfect(curve):
    data = make_data(*curve, SMALL)
    (trial, *_) = Dictionaries().trials(data, None)

    assert not [*Dictionaries().trials(data, replace(trial, loss=1e-9))]


def test_stages_of_a_large_noisy_table_are_rough_where_a_dictionary_is_ahead(curve):
    X, observed = curve
    X = X + 0.2 * np.random.default_rng(0).normal(size=X.shape)
    tolerances, losses = [], []
    for size in (0, 10**9):  # a table counts as large, or not
        data = make_data(X, observed, replace(SMALL, large_size=size), max_iter=100)
        (means,) = ColumnMeans().trials(data, None)

        *_, trial = Dictionaries().trials(data, means)

        assert trial.loss < 0.9 * means.loss
        tolerances.append(trial.state.fitter.solver.tol / data.solver.tol)
        losses.append(trial.loss)

    assert tolerances == [10.0, 1.0]
    assert losses[0] < 1.1 * losses[1]
