from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hirank.estimators.search_plan import plan_of

from hirank import KFMC
from hirank.core.init import soft_impute
from hirank.core.masking import MaskingConfig, make_folds
from hirank.core.threads import Workers
from hirank.datasets import polynomial_manifolds
from hirank.models.als import select_rank
from hirank.models.em import EMConfig
from hirank.optim.path import SolverConfig
from hirank.optim.trace import Monitor
from hirank.selection import refit as fitting
from hirank.selection import search as search_module
from hirank.selection.candidates import (
    Bench,
    Tried,
    fit_factors,
    fit_mixtures,
    try_factors,
    try_mixtures,
)
from hirank.selection.dictionary_path import Walker
from hirank.selection.dictionary_search import Kernelized
from hirank.selection.search import search

ONE_RECIPE = {"n_components": 15, "kernel": "rbf", "bandwidth": "path"}


def options(max_iter=15):
    return SolverConfig(max_iter=max_iter, tol=1e-3)


def plan(n, max_iter=15, **settings):
    return plan_of(KFMC(**settings), n, options(max_iter), None)


def choose(X, observed, max_iter=15, max_time=None, seed=0, **settings):
    return search(
        np.where(observed, X, np.nan),
        observed,
        plan(len(X), max_iter, **settings),
        Workers(1),
        Monitor(max_time=max_time),
        np.random.default_rng(seed),
    )


def weights(chosen):
    found = {}
    for one, weight in chosen.results:
        found[one.name] = found.get(one.name, 0) + weight
    return found


def holes(rng, X, part=0.2):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    observed = rng.random(X.shape) >= part
    observed[:, 0] |= ~observed.any(axis=1)
    return X, observed


def error(chosen, X, observed):
    return np.abs(chosen.X - X)[~observed].mean()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """What is tested here holds for two folds as for five."""
    two_folds = partial(make_folds, config=MaskingConfig(max_folds=2))
    monkeypatch.setattr(search_module, "make_folds", two_folds)
    smaller = partial(EMConfig, max_components=8)
    monkeypatch.setattr("hirank.selection.candidates.EMConfig", smaller)


@pytest.fixture
def low_rank(rng):
    X = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 12)) + 0.02 * rng.normal(size=(120, 12))
    return holes(rng, X)


@pytest.fixture
def noise(rng):
    return holes(rng, rng.normal(size=(100, 6)))


@pytest.fixture
def curve(rng):
    t = rng.uniform(-2, 2, size=120)
    return holes(rng, np.column_stack([t, t**2, np.sin(2 * t), np.cos(3 * t), t**3 - 2 * t]))


@pytest.fixture
def clusters(rng):
    centers, maps = 6 * rng.normal(size=(2, 6)), rng.normal(size=(2, 2, 6))
    parts = [rng.normal(size=(90, 2)) @ A + c for A, c in zip(maps, centers, strict=True)]
    return holes(rng, np.vstack(parts) + 0.1 * rng.normal(size=(180, 6)))


def test_a_linear_model_is_taken_for_a_low_rank_table(low_rank):
    X, observed = low_rank
    chosen = choose(X, observed)
    found = weights(chosen)
    assert found["linear"] + found["low rank"] > 0.75
    assert error(chosen, X, observed) < 0.05


def test_nothing_better_than_means_is_made_of_noise(noise, monkeypatch):
    monkeypatch.setattr(search_module, "make_folds", make_folds)  # few folds suggest structure
    X, observed = noise
    chosen = choose(X, observed, **ONE_RECIPE)
    means = np.nanmean(np.where(observed, X, np.nan), axis=0)
    by_means = np.abs(X - means)[~observed].mean()
    assert error(chosen, X, observed) < 1.05 * by_means


def test_a_dictionary_is_taken_for_a_curve(curve):
    X, observed = curve
    chosen = choose(X, observed, max_iter=60, kernel="rbf", n_starts=1)
    found = weights(chosen)
    assert found["kernelized"] + found["locally linear"] > 0.9
    assert found["kernelized"] > 0.3
    assert error(chosen, X, observed) < 0.15


def test_several_gaussians_are_taken_for_clusters(clusters):
    X, observed = clusters
    chosen = choose(X, observed, max_iter=5, **ONE_RECIPE)
    assert weights(chosen)["locally linear"] > 0.3
    linear = min(one.error for one, _ in chosen.results if one.name in ("linear", "low rank"))
    best = min(one.error for one, weight in chosen.results if weight)
    assert best < 0.8 * linear


def test_what_is_told_of_hidden_entries_is_true(low_rank):
    X, observed = low_rank
    chosen = choose(X, observed, max_iter=5, **ONE_RECIPE)
    held_out, used = chosen.held_out, [weight for _, weight in chosen.results if weight]
    np.testing.assert_allclose(held_out.fill, held_out.fills @ used)
    assert (observed[held_out.rows, held_out.columns]).all()
    np.testing.assert_array_equal(held_out.truth, X[held_out.rows, held_out.columns])
    assert len(set(zip(held_out.rows, held_out.columns, strict=True))) == len(held_out.truth)
    assert (held_out.spread > 0).all()
    assert len(held_out.first(7).truth) == 7


def test_observed_entries_stay_and_fills_are_those_of_the_parts(low_rank):
    X, observed = low_rank
    chosen = choose(X, observed, max_iter=5, n_starts=1, **ONE_RECIPE)
    assert (chosen.X[observed] == X[observed]).all()
    assert chosen.blend.weights.sum() == pytest.approx(1)
    again = chosen.blend.complete(X, observed)
    assert np.abs(again - chosen.X).mean() < 0.1 * np.abs(X - chosen.X)[~observed].mean() + 0.02


def raising(error):
    def attempt(*args, **kwargs):
        raise error

    return attempt


@pytest.mark.parametrize(
    ("where", "what", "kind", "name"),
    [
        (search_module, "try_factors", np.linalg.LinAlgError, "low rank"),
        (search_module, "try_mixtures", FloatingPointError, "linear"),
        (Walker, "probe", FloatingPointError, "kernelized"),
    ],
)
def test_a_candidate_that_fails_is_recorded_and_others_used(
    low_rank, monkeypatch, where, what, kind, name
):
    X, observed = low_rank
    monkeypatch.setattr(where, what, raising(kind("no way")))
    chosen = choose(X, observed, max_iter=5)
    (lost,) = [(one, weight) for one, weight in chosen.results if one.failure]
    assert (lost[0].name, lost[0].failure, lost[1]) == (name, "no way", 0)
    assert lost[0].error == np.inf
    assert sum(weight for _, weight in chosen.results) == pytest.approx(1)
    assert error(chosen, X, observed) < 0.2
    assert len(chosen.dictionary.D)


def test_if_all_fail_means_are_filled_in(low_rank, monkeypatch):
    X, observed = low_rank
    for where, what in [
        (search_module, "try_factors"),
        (search_module, "try_mixtures"),
        (Walker, "probe"),
    ]:
        monkeypatch.setattr(where, what, raising(np.linalg.LinAlgError("singular")))
    with pytest.warns(UserWarning, match=r"No model could be fitted.*column means"):
        chosen = choose(X, observed)
    means = np.broadcast_to(np.nanmean(np.where(observed, X, np.nan), axis=0), X.shape)
    np.testing.assert_allclose(chosen.X[~observed], means[~observed], atol=1e-12)
    assert sum(bool(one.failure) for one, _ in chosen.results) == 3
    assert chosen.held_out is None


@pytest.mark.parametrize("step", ["further", "larger"])
def test_a_failure_on_the_way_does_not_cost_what_was_found(curve, monkeypatch, step):
    X, observed = curve
    monkeypatch.setattr(Walker, step, raising(np.linalg.LinAlgError("too large")))
    chosen = choose(X, observed, max_iter=5, kernel="rbf", n_starts=1)
    assert any(one.name == "kernelized" and not one.failure for one, _ in chosen.results)


def test_mixtures_that_fail_late_leave_the_smaller_ones(clusters, monkeypatch):
    X, observed = clusters
    monkeypatch.setattr("hirank.models.em.split_components", raising(np.linalg.LinAlgError("no")))
    found = try_mixtures(bench(X, observed))
    assert [one.name for one in found[:-1]] == ["linear"] * (len(found) - 1)
    assert len(found) > 1
    assert (found[-1].name, found[-1].failure) == ("locally linear", "no")


def test_out_of_time_at_once_still_fills(low_rank):
    X, observed = low_rank
    chosen = choose(X, observed, max_time=1e-9)
    assert np.isfinite(chosen.X).all()
    assert np.isfinite(chosen.blend.complete(X, observed)).all()
    assert sum(weight for _, weight in chosen.results) == pytest.approx(1)
    assert error(chosen, X, observed) < 1.5 * np.abs(X).mean()


def test_a_callback_that_stops_at_once_still_fills(low_rank):
    X, observed = low_rank
    record = Monitor(lambda line: True)
    chosen = search(X, observed, plan(len(X)), Workers(1), record, np.random.default_rng(0))
    assert record.steps == 1
    assert np.isfinite(chosen.X).all()


def test_as_many_dictionaries_as_asked_for(curve):
    X, observed = curve
    chosen = choose(X, observed, n_starts=3, mix=False, max_iter=5)
    assert chosen.blend.kinds == ("kernelized",) * 3
    np.testing.assert_allclose(chosen.blend.weights, 1 / 3)
    first, *others = (part.D for part in chosen.blend.parts)
    assert all(not np.array_equal(first, D) for D in others)


def test_dictionaries_alone_if_nothing_is_to_be_mixed_in(curve):
    X, observed = curve
    chosen = choose(X, observed, mix=False, n_starts=1, max_iter=5)
    assert {one.name for one, _ in chosen.results} == {"kernelized"}
    assert chosen.mixture is None
    assert np.isnan(chosen.held_out.linear).all()
    assert (chosen.held_out.spread == 0).all()


def test_the_same_chance_gives_the_same_bits(curve):
    X, observed = curve
    one, same, other = (
        choose(X, observed, max_iter=5, seed=seed, **ONE_RECIPE) for seed in (3, 3, 4)
    )
    assert (one.X == same.X).all()
    assert [w for _, w in one.results] == [w for _, w in same.results]
    assert (one.X != other.X).any()


def test_what_stands_at_missing_entries_does_not_matter(clusters):
    X, observed = clusters
    one, other = (
        search(
            np.where(observed, X, junk),
            observed,
            plan(len(X), 3, **ONE_RECIPE),
            Workers(1),
            Monitor(),
            np.random.default_rng(0),
        )
        for junk in (0.0, 1e7)
    )
    assert (one.X == other.X).all()


def test_too_few_entries_are_said_to_be_too_few(rng):
    X, observed = holes(rng, rng.normal(size=(9, 5)))
    with pytest.warns(UserWarning, match="too few to choose"):
        chosen = choose(X, observed)
    assert np.isfinite(chosen.X).all()
    assert chosen.held_out is None


# What candidates see of the entries they are judged by: nothing.


def bench(X, observed, max_time=None):
    hidden = make_folds(observed, np.random.default_rng(1), config=MaskingConfig(max_folds=2))
    return Bench(np.where(observed, X, 0), observed, hidden, Workers(1), Monitor(max_time=max_time))


def two_benches(X, observed, fold=0):
    """The same folds, but other values at the entries that one of them hides."""
    one = bench(X, observed)
    other = replace(one, X=np.where(one.folds[fold], 50.0 + one.X**2, one.X), record=Monitor())
    return one, other


def test_mixtures_do_not_see_what_is_hidden(clusters, monkeypatch):
    benches = two_benches(*clusters)
    # The choice may depend on hidden entries, the fills must not: let both go the same way.
    monkeypatch.setattr(Bench, "error", lambda self, fills: 1.0)
    one, other = (try_mixtures(each) for each in benches)
    assert [a.settings for a in one] == [b.settings for b in other]
    assert max(a.settings["n_components"] for a in one) > 1
    for a, b in zip(one, other, strict=True):
        assert not (a.fills[0] != b.fills[0])[benches[0].folds[0]].any()
        assert (a.fills[0] == b.fills[0]).all()
        assert (a.fills[1] != b.fills[1]).any()  # there they are known


def test_factors_do_not_see_what_is_hidden(low_rank, monkeypatch):
    benches = two_benches(*low_rank)
    candidates = "hirank.selection.candidates"

    monkeypatch.setattr(f"{candidates}.select_rank", partial(select_rank, rank=4, ridge=1e-2))
    (one,), (other,) = (try_factors(each) for each in benches)
    assert (one.fills[0] == other.fills[0]).all()
    assert (one.fills[1] != other.fills[1]).any()


def test_dictionaries_do_not_see_what_is_hidden(curve):
    benches = two_benches(*curve)
    ends = []
    for each in benches:
        starts = [soft_impute(each.X, seen) for seen in each.seen()]
        walker = Walker(each, options(5), None, np.random.default_rng(0))
        walks = walker.probe(plan(len(each.X)).recipes[0], starts, 3)
        assert len(walks.steps) == 3 or walks.ended
        ends.append(walks)
    for one, other in zip(ends[0].steps, ends[1].steps, strict=False):
        assert (one[0].X == other[0].X).all()
        assert (one[0].D == other[0].D).all()
        assert (one[1].X != other[1].X).any()


def test_nor_when_they_walk_once_more(curve):
    ends = []
    for each in two_benches(*curve):
        starts = [soft_impute(each.X, seen) for seen in each.seen()]
        walker = Walker(each, options(5), None, np.random.default_rng(0))
        grown = walker.larger(walker.probe(plan(len(each.X)).recipes[0], starts, 3), 30, 0.0)
        assert grown.first > 0
        again = walker.again(grown)
        assert (again.first, len(again.steps[-1][0].D)) == (0, 30)
        for step, seen in zip(again.steps[-1], each.seen(), strict=True):
            assert (step.X == each.X)[seen].all()
        ends.append(again.steps[-1][0].X)
    assert (ends[0] == ends[1]).all()


def test_a_dictionary_that_grew_walks_its_path_again_if_that_pays():
    X, observed = holes(np.random.default_rng(1), polynomial_manifolds(100, random_state=1))
    given = bench(X, observed)
    starts = [soft_impute(given.X, seen) for seen in given.seen()]
    walker = Walker(given, options(100), None, np.random.default_rng(0))
    walks = Kernelized(walker, starts).search(plan(len(X)).recipes[:1], 60, np.inf)
    large = [one for one in walks if one.recipe.n_components == 60]
    assert [one.first > 0 for one in large] in ([True, False], [False, True])
    kept, other = walks[-1].error, walks[-2].error
    assert kept < other / 0.97
    if walks[-1].first == 0:
        assert kept < 0.97 * other


@pytest.mark.parametrize(("shared", "expected"), [(0.0, 0.5), (1.0, 1.0)])
def test_two_dictionaries_tell_what_four_gain(low_rank, monkeypatch, shared, expected):
    """Errors of their own fall with the root of their number, errors that all make stay."""
    given = bench(*low_rank)
    rng = np.random.default_rng(0)
    common = 0.05 * rng.standard_normal(given.X.shape)

    def fill():
        own = 0.05 * rng.standard_normal(given.X.shape)
        return given.X + shared * common + (1 - shared) * own

    walks = SimpleNamespace(error=0.05, recipe=SimpleNamespace(n_components=20))
    found = [SimpleNamespace(X=fill()) for _ in range(2)]
    monkeypatch.setattr(fitting, "members", lambda *_: found)
    one = Tried("kernelized", {}, [fill()], 0.05, 1.0, None)
    walker = Walker(given, options(), None, rng)
    choice = fitting.Choice(given, plan(len(given.X)), [one], np.ones(1), walker, walks)
    assert fitting.gain(choice) ** 2 == pytest.approx(
        expected, rel=0.35
    )  # half of it, in logarithms, is believed


def test_nor_does_it_where_dictionaries_start(low_rank):
    X, observed = low_rank
    given = two_benches(X, observed)
    for best in (None, *try_factors(given[0])):
        for each in given:
            for start, hidden in zip(
                search_module._starts(each, plan(len(X)), best), each.folds, strict=True
            ):
                assert (start[hidden] != each.X[hidden]).all()


def test_spreads_are_told_without_what_is_hidden(clusters, monkeypatch):
    one, other = two_benches(*clusters)
    single = partial(EMConfig, max_components=1)
    monkeypatch.setattr("hirank.selection.candidates.EMConfig", single)
    tried = try_mixtures(one)[:1]
    spreads = [search_module._held_out(each, tried, np.ones(1)).spread for each in (one, other)]
    first = int(one.folds[0].sum())
    assert (spreads[0][:first] == spreads[1][:first]).all()


def test_all_is_used_in_the_end(low_rank):
    """After the choice nothing is hidden any more: the last fit knows every entry."""
    given = bench(*low_rank)
    fill, rows = fit_factors(given, try_factors(given)[0])
    assert (fill[given.observed] == given.X[given.observed]).all()
    first = try_mixtures(given)[0]
    for mixed, _ in fit_mixtures(given, first, 3):
        assert (mixed[given.observed] == given.X[given.observed]).all()
    assert np.abs(rows.complete(given.X, given.observed) - fill).mean() < 0.1


def test_factors_out_of_time_are_those_of_a_fold(low_rank):
    X, observed = low_rank
    given = bench(X, observed)
    (tried,) = try_factors(given)
    late = replace(given, record=Monitor(lambda line: True))
    late.record.record(0.0)
    fill, rows = fit_factors(late, tried)
    means = np.abs(X)[~observed].mean()
    assert np.abs(fill - X)[~observed].mean() < 0.2 * means
    assert np.abs(rows.complete(given.X, observed) - X)[~observed].mean() < 0.2 * means


def test_a_bench_judges_by_hidden_entries_alone(rng):
    X, observed = holes(rng, rng.normal(size=(60, 4)))
    given = bench(X, observed)
    fills = [np.where(hidden, given.X + 0.5, 1e9) for hidden in given.folds]
    assert given.error(fills) == pytest.approx(0.5)
    for seen, hidden in zip(given.seen(), given.folds, strict=True):
        assert (seen | hidden == observed).all()
        assert not (seen & hidden).any()
    assert isinstance(try_factors(given)[0], Tried)
