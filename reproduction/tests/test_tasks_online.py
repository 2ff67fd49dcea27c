"""Tasks that run sample by sample, fit a complete table, or trace an objective."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hirank import OnlineKFMC
from hirank.metrics import missing_relative_error, relative_error
from reproduction.cells import Cell, Method
from reproduction.data import draw_observed, load_table
from reproduction.evaluate import make_masked_table
from reproduction.methods import ESTIMATORS
from reproduction.published import Algorithm1, OutOfSampleKFMC, OutOfSampleLRF, algorithm_1
from reproduction.runner import execute
from reproduction.tasks import (
    convergence,
    missing_patterns,
    new_samples,
    online_cost,
    passes,
)

SMALL = {"n_samples": 40, "n_features": 8, "latent": 2}
STREAM = {**SMALL, "shuffle": True}
PAPER = {"n_components": 10, "bandwidth": 1.0, "beta": 1e-2, "scale": False}
POLY = {**PAPER, "kernel": "poly", "alpha": 0.1}
TIMES = {"fit seconds", "seconds per sample"}


def cell(task, estimator, settings=None, **options):
    options.setdefault("data", SMALL)
    method = Method("method", estimator, "paper", settings or {})
    return Cell(task, "three curved surfaces", "random", 0.3, 0, method, options)


def numbers(found):
    return [m for m in found if m.measure not in TIMES]


def values(found, measure):
    return [m.value for m in found if m.measure == measure]


def run_twice(module, one):
    """Return the measurements of a task, which are the same through the runner."""
    found = list(module.run(one))
    result = execute(one)
    assert not result.failure
    assert numbers(found) == numbers(result.measurements)
    return found


@pytest.mark.parametrize("settings", [PAPER, POLY], ids=["rbf", "poly"])
def test_passes_of_algorithm_2_are_those_of_the_estimator(settings):
    one = cell("passes", "OnlineKFMC", settings, passes=3, data=STREAM)
    found = run_twice(passes, one)
    table = make_masked_table(one)
    for number in (1, 3):
        model = OnlineKFMC(**settings, n_passes=number, random_state=0)
        filled = model.fit_transform(table.X)
        at = {m.measure: m.value for m in found if m.at == number}
        assert at["relative error"] == relative_error(filled, table.truth)
        assert at["missing error"] == missing_relative_error(filled, table.truth, table.observed)
    assert [m.at for m in found if m.measure == "relative error"] == [1, 2, 3]
    assert values(found, "fit seconds")[0] >= 0


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("OnlineLRF", {"rank": 3, "scale": False}),
        ("GROUSE", {"rank": 1, "scale": False}),
        ("DLSR", {"n_components": 12, "l1": 0.1}),
        ("OnlineImputer", {"max_iter": 3, "n_components": 20}),
    ],
)
def test_tables_can_be_shorter_than_the_warm_up(estimator, settings):
    one = cell("passes", estimator, settings, passes=2, data=STREAM)
    found = run_twice(passes, one)
    errors = values(found, "missing error")
    assert len(errors) == 2
    assert max(errors) < 1
    # Whether earlier passes are measured does not change the last one.
    last = [*passes.run(cell("passes", estimator, settings, passes=2, data=STREAM, each=False))]
    assert numbers(last) == [m for m in numbers(found) if m.at == 2]


def test_a_method_may_have_passes_of_its_own():
    one = cell("passes", "OnlineKFMC", {**PAPER, "n_passes": 2}, passes=5, data=STREAM)
    assert [m.at for m in passes.run(one) if m.measure == "relative error"] == [1, 2]


def test_a_pass_that_cannot_start_is_a_failure():
    result = execute(cell("passes", "OnlineLRF", {"rank": 99}, passes=1, data=STREAM))
    assert "rank" in result.failure
    assert not result.measurements


@pytest.mark.parametrize("settings", [PAPER, POLY], ids=["rbf", "poly"])
def test_cost_and_error_are_running_means_over_the_stream(settings):
    settings = {**settings, "drift_detection": "off"}
    one = cell("online_cost", "OnlineKFMC", settings, data=STREAM, every=1)
    found = run_twice(online_cost, one)
    table = make_masked_table(one)
    model = OnlineKFMC(**settings, random_state=0)
    filled, losses = online_cost.run_algorithm_2(model, table.X)
    count = np.arange(1, len(losses) + 1)
    errors = np.linalg.norm(filled - table.truth, axis=1) / np.linalg.norm(table.truth, axis=1)
    assert_allclose(values(found, "empirical cost"), np.cumsum(losses) / count)
    assert_allclose(values(found, "empirical error"), np.cumsum(errors) / count)
    assert_array_equal([m.at for m in found if m.measure == "empirical cost"], count)
    assert losses.min() > 0
    coarse = list(
        online_cost.run(cell("online_cost", "OnlineKFMC", settings, data=STREAM, every=50))
    )
    assert coarse == [m for m in found if m.at % 50 == 0]


def test_the_loss_is_that_of_the_paper():
    """1/2 |phi(x) - phi(D) z|^2 + beta/2 |z|^2 + alpha/2n |phi(D)|^2, of the first sample."""
    one = cell("online_cost", "OnlineKFMC", {**POLY, "drift_detection": "off"}, data=STREAM)
    X = make_masked_table(one).X
    model = OnlineKFMC(**POLY, drift_detection="off", random_state=0)
    filled, losses = online_cost.run_algorithm_2(model, X)
    stream = passes.make_stream(model, X.shape[1]).start(X, model._config())
    D, x = stream.model.D, filled[0]
    G, k = (D @ D.T + 1) ** 2, (D @ x + 1) ** 2
    z = np.linalg.solve(G + 1e-2 * np.eye(len(D)), k)
    fit = ((x @ x + 1) ** 2 - 2 * k @ z + z @ G @ z + 1e-2 * z @ z) / 2
    assert_allclose(losses[0], fit + 0.1 * np.trace(G) / (2 * len(X)), rtol=1e-6)


def test_the_window_has_errors_on_arrival():
    settings = {"n_warmup": 60, "max_iter": 3}
    found = run_twice(online_cost, cell("online_cost", "OnlineImputer", settings, data=STREAM))
    assert not values(found, "empirical cost")
    errors = values(found, "empirical error")
    assert len(errors) == 120
    assert errors[-1] < errors[20]  # means before there is a model


def test_online_cost_is_for_one_estimator():
    result = execute(cell("online_cost", "GROUSE", data=STREAM))
    assert "OnlineKFMC" in result.failure


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("OSE-LRF", {}),
        ("DLSR", {"n_components": 12, "l1": 0.1, "n_passes": 2}),
        ("OSE-KFMC", {"n_components": 20, "max_iter": 60, "beta": 1e-4, "bandwidth": 3.0}),
        ("OSE-KFMC", {"n_components": 20, "max_iter": 60, "kernel": "poly", "beta": 0.01}),
    ],
)
def test_new_samples(estimator, settings):
    found = run_twice(
        new_samples, cell("new_samples", estimator, settings, data=SMALL | {"n_samples": 80})
    )
    assert {m.measure for m in found} > {"relative error", "missing error", *TIMES}
    assert values(found, "relative error")[0] < values(found, "missing error")[0]


def test_new_samples_are_not_fitted():
    """Every second row is new, and each surface has as many of both."""
    seen = {}

    class Spy(OutOfSampleLRF):
        def fit(self, X):
            seen["known"] = X
            return super().fit(X)

        def transform(self, X):
            seen["new"] = X
            return super().transform(X)

    one = cell("new_samples", "OSE-LRF", {"ridge": 1e-5}, data=SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ESTIMATORS, "OSE-LRF", Spy)
        list(new_samples.run(one))
    X, labels = load_table(one.data, 0, **SMALL)
    observed = draw_observed(X[1::2], "random", 0.3, 0)
    assert_array_equal(seen["known"], X[::2])
    assert_array_equal(seen["new"], np.where(observed, X[1::2], np.nan))
    assert_array_equal(np.bincount(labels[::2]), np.bincount(labels[1::2]))


def test_a_model_is_fitted_once_for_all_rates():
    fits = []

    class Spy(OutOfSampleLRF):
        def fit(self, X):
            fits.append(X)
            return super().fit(X)

    settings = {"ridge": 1e-4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ESTIMATORS, "OSE-LRF", Spy)
        one = cell("new_samples", "OSE-LRF", settings)
        few, many = ([*new_samples.run(replace(one, rate=rate))] for rate in (0.2, 0.4))
        [*new_samples.run(replace(one, seed=1))]
    assert len(fits) == 2
    assert values(few, "relative error")[0] < values(many, "relative error")[0]


def test_low_rank_new_samples_are_exact_and_full_rank_ones_shrink_to_zero():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 8))
    given = np.where(draw_observed(flat, "random", 0.3, 0), flat, np.nan)
    assert_allclose(OutOfSampleLRF(1e-10).fit(flat).transform(given), flat, atol=1e-6)
    full = rng.normal(size=(40, 8))  # every direction is free: missing entries shrink to 0
    given = np.where(draw_observed(full, "random", 0.3, 0), full, np.nan)
    filled = OutOfSampleLRF().fit(full).transform(given)
    assert_allclose(filled[np.isnan(given)], 0, atol=1e-6)


def test_an_unknown_kernel_is_an_error():
    with pytest.raises(ValueError, match="'rbf' or 'poly'"):
        OutOfSampleKFMC(3, kernel="cosine").fit(np.eye(4))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_convergence_follows_algorithm_1(kernel):
    settings = {"n_components": 15, "kernel": kernel, "momentum": 0.3, "alpha": 0.1, "beta": 0.1}
    one = cell("convergence", "Algorithm 1", settings, iterations=40)
    found = run_twice(convergence, one)
    objectives = values(found, "objective")
    assert [m.at for m in found if m.measure == "objective"] == list(range(41))
    table, rng = make_masked_table(one), np.random.default_rng(0)
    states = algorithm_1(table.truth, table.observed, Algorithm1(**settings), rng)
    first = [next(states).objective for _ in range(3)]
    assert objectives[:3] == pytest.approx(first, rel=1e-9)
    done = int(values(found, "iterations to converge")[0])
    close = min(objectives) + 0.01 * (objectives[0] - min(objectives))
    assert objectives[done] <= close < objectives[done - 1]
    assert values(found, "diverged") == [0]


def test_divergence_is_detected():
    settings = {"n_components": 15, "kernel": "poly", "momentum": 1.5, "alpha": 0.1, "beta": 0.1}
    found = list(convergence.run(cell("convergence", "Algorithm 1", settings, iterations=60)))
    assert values(found, "diverged") == [1]
    assert not values(found, "iterations to converge")
    objectives = values(found, "objective")
    assert 1 < len(objectives) < 61
    assert max(objectives) <= 10 * objectives[0]


def test_both_solvers_start_from_the_same_objective_and_hirank_s_never_rises():
    settings = {"n_components": 15, "kernel": "rbf"}
    paper, own = (
        values(
            list(convergence.run(cell("convergence", name, settings, iterations=40))), "objective"
        )
        for name in ("Algorithm 1", "L-BFGS")
    )
    assert own[0] == pytest.approx(paper[0])
    assert (np.diff(own) <= 1e-9 * own[0]).all()
    assert own[-1] < own[0] / 2


@pytest.mark.parametrize("name", ["OSE-LRF", "OSE-KFMC"])
def test_convergence_is_for_these_solvers(name):
    settings = {"n_components": 5} if name == "OSE-KFMC" else {}
    result = execute(cell("convergence", name, settings, iterations=2))
    assert "'Algorithm 1' or 'L-BFGS'" in result.failure


def test_long_curves_are_thinned():
    for count in (1, 150, 151, 500, 5000):
        kept = convergence.thin(count)
        assert len(kept) <= 150
        assert (kept[0], kept[-1]) == (0, count - 1)
        assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("pattern", ["random", "gaps"])
def test_missing_patterns_yields_all_gaps(pattern):
    one = Cell("missing_patterns", "shape of mocap", pattern, 0.3, 0, Method("missing", "mean"))
    found = run_twice(missing_patterns, one)
    missing = np.zeros((3392, 62), bool)
    for m in found:
        assert not missing[max(int(m.at) - 1, 0) : int(m.at + m.value) + 1, m.item].any()
        missing[int(m.at) : int(m.at + m.value), m.item] = True
    assert_array_equal(~missing, draw_observed(np.zeros(missing.shape), pattern, 0.3, 0))
    if pattern == "gaps":
        assert {m.value for m in found} == {20, 21}  # 68 * 0.3
