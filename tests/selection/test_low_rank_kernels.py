"""Low-rank kernel matrices as a family, and dictionaries that start from them."""

from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest
from helpers import selection
from helpers.selection import SMALL, missing_error

from hirank import Imputer
from hirank.core.bounds import Bounds
from hirank.datasets import polynomial_manifolds
from hirank.models.fit_schatten import EXACT_SMOOTHINGS, SchattenEnd, SchattenFitter
from hirank.models.weighted import WeightedModel
from hirank.optim.trace import Monitor, TrialFinished
from hirank.selection import low_rank_kernels, low_rank_paths
from hirank.selection.candidates import LowRank
from hirank.selection.config import DictionaryConfig, SchattenConfig
from hirank.selection.dictionary_search import Dictionaries
from hirank.selection.low_rank_kernels import LowRankKernels
from hirank.selection.low_rank_paths import PathFit, _poly
from hirank.selection.search import _best_of_each_family
from hirank.selection.trial import SearchData

WHOLE_PATH = replace(SMALL, schatten=SchattenConfig(bandwidths=(3.0,), n_models=1))
make_data = partial(selection.make_data, config=WHOLE_PATH)

POLY, RBF = "low-rank kernel (poly)", "low-rank kernel (rbf)"


@pytest.fixture
def quadratic(rng):
    """A surface of degree 2 in ten dimensions without noise, 60 x 10; 20 % are missing."""
    a, b = rng.uniform(-1, 1, size=(2, 60))
    X = np.column_stack([a, b, a * b, a**2, b**2]) @ rng.normal(size=(5, 10))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, rng.random(X.shape) >= 0.2


class KnownFit(low_rank_paths.PathFit):
    """A path with a given loss instead of fits: what is compared depends on losses alone."""

    given = iter(())

    def __init__(self, spec, data, starts):
        super().__init__(spec, data, starts)
        self.known = next(self.given, 0.5)

    def take_stages(self, until):
        for fold in self.folds:
            end = SchattenEnd(fold.start, fold.start, None, None)
            fold.ends.extend([end] * (until - len(fold.ends)))
        self.losses += [self.known] * (until - len(self.losses))


@pytest.fixture
def run_known(monkeypatch):
    """Return a function that runs the trials with given losses, one per path."""

    def run_known(losses, data, best=None):
        monkeypatch.setattr(KnownFit, "given", iter(losses))
        for module in (low_rank_kernels, low_rank_paths):
            monkeypatch.setattr(module, "PathFit", KnownFit)
        monkeypatch.setattr(SchattenFitter, "average_places", lambda self, end: end.X)
        return run(data, best)

    return run_known


def with_schatten(data, **changes):
    config = replace(data.config, schatten=replace(data.config.schatten, **changes))
    return replace(data, config=config)


def run(data, best=None):
    return [*LowRankKernels().trials(data, best)]


def make_late(data):
    """Return the same data at a time at which the search has to end."""
    late = replace(data, monitor=Monitor(lambda line: True))
    late.monitor.record(0.0)
    return late


def make_rival(data, loss, *, linear=False):
    """Return a trial of another family with a given loss."""
    (factors,) = LowRank().trials(data, None)
    # On the first fold the loss is that of the table.
    scale = loss / factors.loss
    filled = [
        np.where(held_out, data.X + scale * (table - data.X), table)
        for table, held_out in zip(factors.filled, data.folds, strict=True)
    ]
    return replace(factors, filled=filled, loss=loss, linear=linear)


class EqualLosses(SearchData):
    """Data on which all models are equally good, so that a search takes the same decisions."""

    def loss(self, filled):
        return 1.0


class AlwaysImproved(EqualLosses):
    """The same, and all are fitted to all folds."""

    def can_improve(self, trial, others):
        return True


def test_held_out_entries_are_not_seen(quadratic):
    data = make_data(*quadratic, kind=AlwaysImproved)
    # With the opposite sign, the squares that set the constant of the kernel are the same: it is
    # measured on all observed entries, like the scaling.
    other = replace(data, X=np.where(data.folds[0], -data.X, data.X), monitor=Monitor())

    for a, b in zip(run(data), run(other), strict=True):
        assert a.params == b.params
        assert (a.filled[0] == b.filled[0]).all()
        assert (a.filled[1] != b.filled[1]).any()  # there they are observed
        for training, filled in zip(data.training, a.filled, strict=True):
            assert (filled == data.X)[training].all()


def test_each_kernel_is_a_family_of_its_own(quadratic):
    events = []
    data = make_data(*quadratic, monitor=Monitor(subscriber=events.append))

    trials = run(data)

    assert [trial.family for trial in trials] == [POLY, RBF]
    assert all(trial.rejected or trial in _best_of_each_family(trials) for trial in trials)
    assert [trial.params["kernel"] for trial in trials] == ["poly", "rbf"]
    assert [trial.params.get("bandwidth") for trial in trials] == [None, 3.0]
    assert all(trial.params["n_components"] <= len(data.X) for trial in trials)
    assert [type(event) for event in events] == [TrialFinished] * 2
    assert [event.family for event in events] == [POLY, RBF]


@pytest.mark.parametrize(("limit", "axis"), [("max_rows", 0), ("max_features", 1)])
def test_nothing_is_fitted_to_a_table_that_is_too_large(quadratic, run_known, limit, axis):
    data = make_data(*quadratic)
    size = data.X.shape[axis]

    counts = [len(run_known([], with_schatten(data, **{limit: most}))) for most in (size - 1, size)]

    assert counts == [0, 2]


def test_nothing_is_fitted_when_it_is_late_or_another_family_is_perfect(quadratic, run_known):
    data = make_data(*quadratic)
    perfect = data.config.schatten.perfect_error

    assert not run_known([], make_late(data))
    assert not run_known([], data, make_rival(data, 0.9 * perfect))
    assert run_known([], data, make_rival(data, 1.1 * perfect))


def test_a_search_that_gets_late_ends_after_the_trial(quadratic):
    data = make_data(*quadratic, monitor=Monitor(lambda line: line.step == 5))

    (trial,) = run(data)

    assert trial.family == POLY
    assert trial.state.number == 0
    assert np.isfinite(trial.loss)


def test_an_exact_polynomial_table_is_recovered_far_better_than_by_linear_models(quadratic):
    data = make_data(*quadratic, max_iter=30)
    (factors,) = LowRank().trials(data, None)

    trials = run(data, factors)

    best = min((one for one in trials if not one.rejected), key=lambda one: one.loss)
    assert best.loss < 0.2 * factors.loss  # 0.07 here
    assert best.state.spec.path.power == data.config.schatten.power
    assert LowRankKernels.is_ahead(best, 0.2)
    assert not LowRankKernels.is_ahead(best, 0.0)


def test_other_families_are_never_ahead_and_a_first_family_always_is(quadratic):
    data = make_data(*quadratic)
    (factors,) = LowRank().trials(data, None)

    assert not LowRankKernels.is_ahead(factors, 1e9)
    assert LowRankKernels.is_ahead(run(data)[0], 0.0)


def test_noisy_tables_are_fitted_roughly_and_in_their_own_units(noise):
    data = replace(make_data(*noise), spread=np.linspace(1, 2, 6))
    config = data.config.schatten

    trials = run(data, make_rival(data, 0.9))

    assert [trial.family for trial in trials] == [POLY, RBF]
    for trial in trials:
        path = trial.state.spec.path
        assert path.power == config.noisy_power != config.power
        assert path.tol == config.rough_tol * data.solver.tol
        assert (trial.state.spec.weights == 1).all()


@pytest.mark.parametrize(("ratio", "n_poly", "n_rbf"), [(1.2, 8, 5), (1.3, 4, 3)])
def test_paths_that_are_far_behind_are_given_up_while_the_table_may_be_noisy(
    ratio, n_poly, n_rbf, quadratic, run_known
):
    # No path ends because it gains nothing.
    data = with_schatten(make_data(*quadratic), min_gain=np.inf)

    poly, rbf = run_known([0.3 * ratio, 0.3 * ratio], data, make_rival(data, 0.3))

    assert len(poly.state.stages[0]) == n_poly
    assert len(rbf.state.stages[0]) == n_rbf  # the smoothing falls by two decades at a time


def test_noisy_tables_have_few_landmarks_and_one_bandwidth_unless_they_are_narrow():
    config = SchattenConfig()

    usual, narrow = (config.rough(noisy=False, narrow=narrow) for narrow in (False, True))

    assert usual.bandwidths == config.bandwidths[:1]
    assert usual.n_landmarks(np.zeros((800, 10))) == 100
    assert usual.n_landmarks(np.zeros((800, 40))) == 160
    assert narrow.bandwidths == config.bandwidths
    assert narrow.n_landmarks(np.zeros((800, 10))) is None


def test_a_path_ends_where_nothing_is_gained_on_a_noisy_table_only(noise):
    data = make_data(*noise, kind=EqualLosses, max_iter=1)

    rough, exact = (run(data, one)[0] for one in (make_rival(data, 0.9), None))

    assert rough.state.number == 1
    assert exact.state.number == len(exact.state.spec.path.stages) - 1


@pytest.mark.parametrize(("losses", "ended"), [((0.4, 0.3, 0.31), False), ((0.4, 0.3, 0.32), True)])
def test_a_rough_path_ends_with_the_first_stage_that_is_clearly_worse(noise, losses, ended):
    data = make_data(*noise)
    for config, expected in ((data.config.schatten.rough(noisy=False), ended), (None, False)):
        spec = _poly(data, np.ones(data.X.shape[1]), config or data.config.schatten)
        fit = PathFit(spec, data, [data.X for _ in data.folds])
        fit.losses = [*losses]

        assert fit.has_ended == expected


@pytest.mark.parametrize(
    ("rival", "rough", "n_rough"),
    [
        (0.09, 0.08, 0),  # other families are nearly exact
        (0.5, 0.41, 1),  # the rough fit is ahead, so that the table is fitted exactly after all
        (0.5, 0.48, 2),  # it is not
    ],
)
def test_tables_are_fitted_roughly_while_they_may_be_noisy(
    rival, rough, n_rough, quadratic, run_known
):
    data = make_data(*quadratic)
    config = data.config.schatten

    trials = run_known([rough], data, make_rival(data, rival))

    powers = [trial.state.spec.path.power for trial in trials]
    n_exact = 0 if n_rough == 2 else 2
    assert powers == [config.noisy_power] * n_rough + [config.power] * n_exact
    assert trials[-1].family == RBF


@pytest.mark.parametrize(
    ("largest", "n_units"), [(1.0, 1), (4.0, 2), (29.0, 2), (31.0, 1), (100.0, 1)]
)
def test_a_common_unit_is_compared_if_spreads_are_alike_but_differ(
    largest, n_units, quadratic, run_known
):
    spread = np.array([largest, *np.ones(9)])
    data = replace(make_data(*quadratic), spread=spread)

    trials = [trial for trial in run_known([], data) if trial.family == POLY]

    weights = [trial.state.spec.weights for trial in trials]
    assert len(weights) == n_units
    assert (weights[0] == 1).all()
    for common in weights[1:]:
        np.testing.assert_allclose(common / common[1], spread)
        assert np.mean(common**2) == pytest.approx(1)


@pytest.mark.parametrize(("loss", "families"), [(0.01, [POLY]), (0.03, [POLY, RBF])])
def test_rbf_kernels_are_compared_unless_degree_2_is_far_ahead(
    loss, families, quadratic, run_known
):
    data = make_data(*quadratic)

    trials = run_known([loss], data, make_rival(data, 0.09))

    assert [trial.family for trial in trials] == families


@pytest.mark.parametrize(("losses", "better"), [((0.4, 0.5), 0), ((0.5, 0.4), 1)])
def test_rbf_kernels_take_the_better_units(losses, better, quadratic, run_known):
    data = replace(make_data(*quadratic), spread=np.linspace(1, 3, 10))

    *polys, rbf = run_known(losses, data)

    assert [trial.family for trial in polys] == [POLY] * 2
    assert (rbf.state.spec.weights == polys[better].state.spec.weights).all()


def test_narrower_kernels_are_compared_until_one_is_worse(quadratic, run_known):
    data = with_schatten(make_data(*quadratic), bandwidths=(3.0, 1.0, 0.5, 0.3))

    trials = run_known([0.3, 0.5, 0.3, 0.4, 0.1], data)

    bandwidths = [one.state.spec.path.bandwidth for one in trials if one.family == RBF]
    assert bandwidths == [3.0, 1.0, 0.5]


def test_weighted_features_do_not_change_what_is_observed(quadratic):
    data = replace(make_data(*quadratic), spread=np.linspace(1, 3, 10))
    _, trial = islice(LowRankKernels().trials(data, None), 2)
    assert trial.family == POLY
    assert not (trial.state.spec.weights == 1).any()

    (refit,) = LowRankKernels().refit(trial, data, 1)

    for training, filled in zip(data.training, trial.filled, strict=True):
        assert (filled == data.X)[training].all()
    assert (refit.filled == data.X)[data.observed].all()
    assert missing_error(refit.filled, *quadratic) < 0.01
    again = refit.model.complete(data.X, data.observed)
    assert missing_error(again, *quadratic) < 0.01


def test_stages_are_compared_in_scaled_features(quadratic):
    class Checked(SearchData):
        def loss(self, filled):
            for table, training in zip(filled, self.training, strict=True):
                np.testing.assert_allclose(table[training], self.X[training])
            return super().loss(filled)

    data = make_data(*quadratic, kind=Checked, max_iter=1)
    data = replace(data, spread=np.linspace(1, 3, 10))

    _, trial = islice(LowRankKernels().trials(data, None), 2)

    assert not (trial.state.spec.weights == 1).any()


@pytest.fixture
def selected(quadratic):
    """Return data, and the trial of the polynomial kernel that would be refitted."""
    data = with_schatten(make_data(*quadratic), n_models=4)
    return data, next(LowRankKernels().trials(data, None))


def count_stages(trial, data, n_models):
    counted = replace(data, monitor=Monitor())
    refits = LowRankKernels().refit(trial, counted, n_models)
    return len(refits), counted.monitor.stages


def test_refits_take_the_whole_path_first_and_then_its_end_from_each_fold(selected):
    data, trial = selected
    last, later = trial.state.number, data.config.schatten.refit_stage
    assert last > later

    # The family is far ahead, so the last stage is fitted twice in each refit.
    assert count_stages(trial, data, 1) == (1, last + 2)
    assert count_stages(trial, data, 2) == (2, last + 2 + last + 2 - later)
    assert count_stages(trial, data, 5) == (3, last + 2 + 2 * (last + 2 - later))  # two folds


def test_the_last_stage_is_fitted_once_where_the_family_is_not_far_ahead(selected):
    data, trial = selected
    close = replace(trial, state=replace(trial.state, before=make_rival(data, 1.1 * trial.loss)))

    assert count_stages(close, data, 1) == (1, trial.state.number + 1)


def test_a_refit_from_a_fold_whose_path_ended_early_takes_its_last_stage(selected):
    data, trial = selected
    early = replace(trial, state=replace(trial.state, number=1))

    assert count_stages(early, data, 2) == (2, 3 + 2)


def test_fewer_refits_are_averaged_where_the_family_is_not_far_ahead(selected):
    data, trial = selected
    before = make_rival(data, 2 * trial.loss)
    close = make_rival(data, 1.1 * trial.loss)
    one = replace(data, config=replace(data.config, schatten=SchattenConfig(n_models_noisy=2)))

    counts = [
        len(LowRankKernels().refit(replace(trial, state=replace(trial.state, before=b)), one, None))
        for b in (before, close)
    ]

    assert counts == [3, 2]


def test_refits_recover_the_table_and_its_rows(selected, quadratic):
    data, trial = selected

    for filled, model in LowRankKernels().refit(trial, data, 2):
        assert isinstance(model, WeightedModel)
        assert len(model.model.settings) == trial.state.number + 1
        assert (filled == data.X)[data.observed].all()
        assert missing_error(filled, *quadratic) < 0.02  # the mean has 0.8
        again = model.complete(data.X, data.observed)
        assert missing_error(again, *quadratic) < 0.02


def test_rows_of_a_complete_table_are_smoothed_less_than_its_stages(quadratic):
    X, observed = quadratic
    numbers = []
    for complete in (False, True):
        data = make_data(X, observed | complete)
        trial = next(LowRankKernels().trials(data, None))
        last = len(trial.state.spec.path.stages) - 1
        trial = replace(trial, state=replace(trial.state, number=last))
        ((filled, model),) = LowRankKernels().refit(trial, data, 1)
        assert (filled == X)[data.observed].all()
        numbers.append(len(model.model.settings))

    assert numbers == [last + 1, last + 1 + len(EXACT_SMOOTHINGS)]


def test_without_time_the_table_of_a_fold_is_returned(selected):
    data, trial = selected

    ((filled, model),) = LowRankKernels().refit(trial, make_late(data), 4)

    end = trial.state.ends[0]
    assert (filled == data.X)[data.observed].all()
    assert (filled == end.X)[~data.observed].all()
    np.testing.assert_allclose(model.model.D, filled * model.weights)  # all rows are landmarks


def test_imputed_values_are_within_the_bounds(quadratic):
    X, observed = quadratic
    bounds = Bounds(np.full(10, -0.3), np.full(10, np.inf))
    spread = np.linspace(1, 3, 10)
    data = replace(make_data(X, observed, max_iter=2), bounds=bounds, spread=spread)
    trial = next(one for one in run(data) if not one.rejected)

    ((refitted, model),) = LowRankKernels().refit(trial, data, 1)

    tables = [*zip(trial.filled, data.training, strict=True), (refitted, observed)]
    tables.append((model.complete(data.X, observed), observed))
    for filled, fixed in tables:
        assert filled[~fixed].min() == pytest.approx(-0.3)


def make_start(data, trial, *, before):
    """Return the trial with a loss of 0.1, after a family with another one."""
    state = replace(trial.state, before=make_rival(data, before))
    return replace(trial, state=state, loss=0.1)


def test_dictionaries_start_later_from_a_table_that_is_far_ahead(selected):
    data, trial = selected
    best = make_start(data, trial, before=0.2)

    trials = [*Dictionaries().trials(data, best)]

    paths = [one.state.path for one in trials]
    assert {path.spec.first for path in paths} == set(DictionaryConfig().later_stages)
    assert {path.spec.name for path in paths} == {"poly"}  # as that of the start
    assert all(one.state.start is best for one in trials)
    assert all(path.first == path.spec.first for path in paths)
    # They start from the imputed table, and do not lose what it has recovered.
    assert trials[-1].loss < 0.1


def test_a_dictionary_that_gains_little_over_a_good_start_is_rejected(selected):
    data, trial = selected
    ahead = make_start(data, trial, before=0.2)
    *_, dictionary = Dictionaries().trials(data, ahead)
    close = replace(ahead, loss=dictionary.loss / 0.95)

    *_, again = Dictionaries().trials(data, close)

    assert not dictionary.rejected
    assert again.rejected


def test_dictionaries_start_from_the_family_before_one_that_is_not_ahead(selected):
    data, trial = selected
    best = make_start(data, trial, before=0.12)

    trials = [*Dictionaries().trials(data, best)]

    assert {one.state.path.spec.first for one in trials} == {0}
    assert all(one.state.start is best.state.before for one in trials)


def test_refits_of_dictionaries_that_started_later_start_from_a_refit(selected, quadratic):
    data, trial = selected
    *_, dictionary = Dictionaries().trials(data, make_start(data, trial, before=0.2))
    path = dictionary.state.path

    refits = Dictionaries().refit(dictionary, data, 2)

    assert len(refits) == 2
    for filled, model in refits:
        assert (filled == data.X)[data.observed].all()
        assert missing_error(filled, *quadratic) < 0.05
        # New rows go through all stages.
        assert len(model.settings) == path.last_stage + 1
        assert missing_error(model.complete(data.X, data.observed), *quadratic) < 0.05


def test_a_start_that_was_refitted_is_not_refitted_for_dictionaries_once_more(selected):
    data, trial = selected
    *_, dictionary = Dictionaries().trials(data, make_start(data, trial, before=0.2))
    start = dictionary.state.start
    (expected,) = Dictionaries().refit(dictionary, replace(data, rng=np.random.default_rng(3)), 1)
    data.refits[id(start)] = LowRankKernels().refit(start, data, 2)
    before = data.monitor.stages

    (refit,) = Dictionaries().refit(dictionary, replace(data, rng=np.random.default_rng(3)), 1)

    assert (refit.filled == expected.filled).all()
    path = dictionary.state.path
    assert data.monitor.stages - before == path.last_stage + 1 - path.spec.first


def test_without_time_such_a_dictionary_is_that_of_a_fold(selected):
    data, trial = selected
    *_, dictionary = Dictionaries().trials(data, make_start(data, trial, before=0.2))
    path = dictionary.state.path

    (refit,) = Dictionaries().refit(dictionary, make_late(data), 4)

    assert (refit.model.D == path.ends[path.best][0].D).all()
    assert (refit.filled == data.X)[data.observed].all()


@pytest.mark.parametrize(
    ("linear", "loss", "n_linear"), [(True, 10.0, 1), (True, 1e-2, 0), (False, 10.0, 0)]
)
def test_degree_1_is_compared_where_a_linear_family_was_best_before(
    quadratic, linear, loss, n_linear, run_known
):
    data = make_data(*quadratic)
    rival = make_rival(data, loss, linear=linear)

    trials = run_known([0.05, 0.05, 0.04, 0.04], data, rival)

    names = [trial.state.spec.name for trial in trials]
    assert names.count("linear") == n_linear
    assert [trial.linear for trial in trials] == [name == "linear" for name in names]


def test_degree_1_is_not_selected_where_new_rows_may_be_sparser_than_what_was_compared(
    quadratic, run_known
):
    X, observed = quadratic
    data = make_data(X, np.ones_like(observed))

    trials = run_known([0.05, 0.05, 1e-5, 1e-5], data, make_rival(data, 10.0, linear=True))

    degree_1 = [trial for trial in trials if trial.linear]
    assert degree_1
    assert all(trial.rejected for trial in degree_1)


def test_degree_1_is_not_fitted_where_degree_2_is_perfect(quadratic, run_known):
    data = make_data(*quadratic)

    trials = run_known([1e-4, 1e-4], data, make_rival(data, 10.0, linear=True))

    assert not any(trial.linear for trial in trials)


def test_kernels_that_cannot_improve_the_stack_are_fitted_to_the_first_fold_only(noise):
    data = make_data(*noise)
    truth = make_rival(data, 1e-6)
    rival = replace(truth, loss=0.9)  # so that the table counts as noisy

    trials = run(data, rival)

    assert trials
    assert all(trial.rejected for trial in trials)
    assert {len(trial.filled) for trial in trials} == {1}
    assert len(data.folds) > 1


def test_no_dictionary_takes_the_place_of_a_kernel_that_is_far_ahead_on_a_complete_table():
    X = polynomial_manifolds(200, 30, manifolds=1, random_state=0)[:100]

    results = Imputer(random_state=0).fit(X).search_results_

    assert "low-rank kernel (poly)" in results["family"]
    assert "dictionary" not in results["family"]
