"""The tasks of offline experiments: what they measure, and that the same cell gives the same."""

from dataclasses import replace

import numpy as np
import pytest

from hirank.cluster import SSC
from hirank.metrics import (
    clustering_error,
    missing_relative_error,
    relative_error,
    standardized_rmse,
)
from reproduction.cells import Cell, Method
from reproduction.data import SMOOTH, SURFACES, DataNotFoundError, load_table, structure
from reproduction.evaluate import MaskedTable, fit_cell, make_masked_table, measure_errors
from reproduction.methods import make_estimator
from reproduction.tasks import (
    clustering,
    completion,
    growth,
    ranks,
    samples,
    sampling,
    snapshots,
)

MEAN = Method("mean", "mean", "peer")
NEWTON = Method(
    "KFMC (RBF)",
    "KFMC",
    "paper",
    {
        "n_components": 8,
        "kernel": "rbf",
        "bandwidth": 1.0,
        "solver": "newton",
        "scale": False,
        "max_iter": 20,
        "tol": 0.0,
    },
)
TIMES = ("fit seconds", "seconds per sample", "seconds per new sample", "peak MB")


def cell(task: str, method: Method = MEAN, **changes) -> Cell:
    small = {"data": {"n_samples": 20, "n_features": 8, "latent": 2, "degree": 2}}
    usual = Cell(task, "three curved surfaces", "random", 0.3, 0, method, small)
    return replace(usual, **changes)


def numbers(found) -> list:
    return [m for m in found if m.measure not in TIMES]


def one(found, measure: str) -> float:
    (value,) = [m.value for m in found if m.measure == measure]
    return value


@pytest.mark.parametrize("method", [MEAN, NEWTON], ids=lambda method: method.name)
def test_completion_measures_the_metrics(method):
    given = cell("completion", method)
    table = make_masked_table(given)
    filled = fit_cell(given, table.X).filled
    np.testing.assert_array_equal(filled[table.observed], table.truth[table.observed])
    found = list(completion.run(given))
    assert one(found, "relative error") == relative_error(filled, table.truth)
    known = table.truth, table.observed
    assert one(found, "missing error") == missing_relative_error(filled, *known)
    # Up to rounding: columns are picked on the way, and sums taken in another order.
    wanted = standardized_rmse(filled, *known)
    assert one(found, "standardized error") == pytest.approx(wanted, rel=1e-12)
    assert one(found, "fit seconds") >= 0


def test_same_cell_same_numbers_and_another_seed_others():
    given = cell("completion", NEWTON)
    first = numbers(completion.run(given))
    assert first == numbers(completion.run(given))
    assert first != numbers(completion.run(replace(given, seed=1)))


def test_a_window_imputes_rows_as_a_stream():
    online = Method("hirank online", "OnlineImputer", "hirank", {"n_warmup": 40, "max_iter": 5})
    given = cell("completion", online)
    table = make_masked_table(given)
    model = make_estimator(online, 0)
    first = model.partial_fit_transform(table.X[:50])
    second = model.partial_fit_transform(table.X[50:])
    filled = fit_cell(given, table.X).filled
    np.testing.assert_array_equal(filled, np.concatenate([first, second]))


def test_features_of_rounding_errors_do_not_count_as_standardized():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(30, 3))
    truth[:, 2] = 1e-15 * rng.normal(size=30)
    observed = rng.random(truth.shape) < 0.7
    filled = np.where(observed, truth, 0.0)
    filled[:, 2] = 1.0
    found = list(measure_errors(filled, MaskedTable(truth, observed, None)))
    assert one(found, "standardized error") < 1.5
    assert one(found, "relative error") > 0.5


def test_a_fit_that_leaves_missing_entries_is_an_error():
    given = np.array([[1.0, np.nan], [2.0, 3.0]])
    table = MaskedTable(np.nan_to_num(given, nan=1.0), ~np.isnan(given), None)
    with pytest.raises(ValueError, match="NaN"):
        list(measure_errors(given, table))


def test_clustering_measures_the_best_and_the_default_alpha():
    options = {"data": {"n_samples": 15, "n_features": 8, "latent": 2, "degree": 1}}
    given = cell("clustering", options=options | {"alphas": [2.0, 50.0]})
    table = make_masked_table(given)
    filled = fit_cell(given, table.X).filled
    by_hand = {
        alpha: clustering_error(
            table.labels, SSC(3, alpha=alpha, random_state=0).fit_predict(filled)
        )
        for alpha in (2.0, 50.0, 800.0)
    }
    found = list(clustering.run(given))
    assert one(found, "clustering error") == min(by_hand.values())
    assert one(found, "clustering error, default") == by_hand[800.0]
    assert one(found, "relative error") == relative_error(filled, table.truth)


def test_clustering_requires_labels():
    with pytest.raises(ValueError, match="requires a table with labels"):
        list(clustering.run(cell("clustering", data="twisted cubic", options={})))


def cubic(method: Method, **changes) -> Cell:
    options = {"data": {"n_samples": 12}, "iterations": [0, 3, 9]}
    usual = Cell("snapshots", "twisted cubic", "per sample", 1 / 3, 0, method, options)
    return replace(usual, **changes)


def values(found, measure: str, at: float) -> np.ndarray:
    """Features x samples."""
    return np.array(
        [[m.value for m in found if m.measure == f"{measure}{j}" and m.at == at] for j in (1, 2, 3)]
    )


def test_snapshots_lead_from_zeros_to_the_fit():
    given = cubic(NEWTON)
    table = make_masked_table(given)
    found = list(snapshots.run(given))
    assert {m.at for m in found if m.measure == "x2"} == {0, 3, 9}
    np.testing.assert_array_equal(values(found, "true x", 0).T, table.truth)
    np.testing.assert_array_equal(values(found, "observed x", 0).T, table.observed)
    assert table.observed.sum(axis=1).tolist() == [2] * 12
    np.testing.assert_array_equal(
        values(found, "x", 0).T, np.where(table.observed, table.truth, 0.0)
    )
    last = values(found, "x", 9).T
    np.testing.assert_array_equal(last[table.observed], table.truth[table.observed])
    assert one(found, "relative error") == relative_error(last, table.truth)
    assert not np.array_equal(last, values(found, "x", 3).T)
    along = {m.at: m.value for m in found if m.measure == "snapshot error"}
    assert along[0] == 1.0
    assert along[9] == one(found, "missing error")


def test_iterations_of_a_longer_fit_begin_like_a_shorter_one():
    short = list(snapshots.run(cubic(NEWTON)))
    options = {"data": {"n_samples": 12}, "iterations": [3, 9, 15]}
    long = list(snapshots.run(cubic(NEWTON, options=options)))
    np.testing.assert_array_equal(values(short, "x", 9), values(long, "x", 9))


def test_a_method_without_iterations_has_one_snapshot():
    found = list(snapshots.run(cubic(MEAN)))
    assert {m.at for m in found if m.measure == "x1"} == {9}


def test_growth_measures_at_n():
    given = cell("growth", NEWTON)
    given = replace(given, options=given.options | {"n": 31, "new": 8})
    found = list(growth.run(given))
    assert {m.at for m in found} == {31}
    assert one(found, "seconds per sample") == one(found, "fit seconds") / 31
    assert one(found, "seconds per new sample") >= 0
    larger = list(growth.run(replace(given, options=given.options | {"n": 310})))
    assert one(larger, "peak MB") > 2 * one(found, "peak MB") > 0
    assert numbers(found) == numbers(growth.run(given))


@pytest.mark.parametrize("along", ["r", "m"])
@pytest.mark.parametrize(
    ("method", "measure"),
    [
        (NEWTON, "seconds per iteration"),
        (Method("online", "OnlineImputer", "hirank", {"n_warmup": 20}), "seconds per sample"),
        (Method("OSE", "OSE-KFMC", "paper", {"n_components": 5}), "seconds per new sample"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_along_r_and_m_the_time_of_a_step_is_measured(method, measure, along):
    given = cell("growth", method, options={"n": 60, "new": 10, along: 12})

    (found,) = growth.run(given)

    assert (found.measure, found.at) == (measure, 12)
    assert found.value > 0


def test_the_options_r_and_m_set_the_dictionary_and_the_features():
    table, new = growth.make_tables(cell("growth", options={"n": 30, "new": 4, "m": 9}))
    assert (table.truth.shape, new.truth.shape) == ((30, 9), (4, 9))
    with pytest.raises(ValueError, match="n_components is 31"):
        list(growth.run(cell("growth", NEWTON, options={"n": 30, "r": 31})))


@pytest.mark.parametrize("name", SMOOTH)
def test_a_larger_table_of_smooth_functions_begins_with_a_smaller_one(name):
    small, large = (load_table(name, 3, n_samples=n).X for n in (10, 25))
    assert large.shape == (25, 20)
    np.testing.assert_array_equal(small, large[:10])
    assert np.linalg.matrix_rank(load_table(name, 3, n_samples=100).X, rtol=1e-6) > 10


def test_samples_are_imputed_at_n():
    given = cell("samples", data="sines", pattern="per sample", options={"n": 40})

    found = list(samples.run(given))

    assert {m.at for m in found} == {40}
    assert one(found, "missing error") > 0


def test_new_samples_are_timed_only_if_required_and_possible():
    given = cell("growth", Method("lines", "interpolation", "peer"))
    measures = {m.measure for m in growth.run(replace(given, options={"n": 30, "new": 5}))}
    assert "seconds per new sample" not in measures
    measures = {m.measure for m in growth.run(cell("growth", options={"n": 30}))}
    assert "seconds per new sample" not in measures


@pytest.mark.parametrize(
    ("data", "rank"),
    [("one curved surface", 19), ("three curved surfaces", 30), ("ten linear subspaces", 30)],
)
def test_ranks_are_those_of_the_paper(data, rank):
    found = list(ranks.run(cell("ranks", data=data, pattern="none", rate=0.0, options={})))
    assert one(found, "rank") == one(found, "rank, theory") == rank


@pytest.mark.parametrize(
    ("data", "kfmc", "low"), [("three quadratic surfaces", 0.56, 0.91), ("ten planes", 0.64, 1.45)]
)
def test_rates_are_those_of_the_paper(data, kfmc, low):
    found = list(ranks.run(cell("ranks", data=data, pattern="none", rate=0.0, options={})))
    assert round(one(found, "observed, KFMC in theory"), 2) == kfmc
    assert round(one(found, "observed, low rank in theory"), 2) == low


def test_sampling_measures_whether_a_table_was_recovered():
    given = cell("sampling", data="ten planes", options={"recovered": 2.0})
    found = list(sampling.run(given))
    assert one(found, "recovered") == 1
    assert 0 < one(found, "observed, KFMC in theory") < 1
    strict = list(sampling.run(replace(given, options={"recovered": 1e-6})))
    assert one(strict, "recovered") == 0


@pytest.mark.parametrize("name", SURFACES)
def test_structure_counts_all_rows(name):
    parts = structure(name, degree=2, shuffle=True)
    assert load_table(name, 0).X.shape == (parts["n_samples"], parts["n_features"])
    assert parts["degree"] == 2
    assert "shuffle" not in parts


def test_absent_data_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("HIRANK_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match="1R2RC"):
        list(clustering.run(cell("clustering", data="1R2RC", options={})))


def test_memory_of_a_stream_does_not_grow_with_its_rows():
    settings = {"n_components": 8, "n_warmup": 100, "max_iter": 5}
    given = cell("growth", Method("OL-KFMC (RBF)", "OnlineKFMC", "paper", settings))
    peaks = [
        one(growth.run(replace(given, options=given.options | {"n": n})), "peak MB")
        for n in (400, 1600)
    ]
    assert peaks[1] < 1.5 * peaks[0]


def test_interpolation_and_last_value():
    nan = np.nan
    X = np.array([[nan, 1.0], [2.0, nan], [nan, nan], [6.0, 7.0]])
    between, last = (
        make_estimator(Method("a", name, "peer"), 0) for name in ("interpolation", "last value")
    )
    np.testing.assert_allclose(between.fit_transform(X), [[2, 1], [2, 3], [4, 5], [6, 7]])
    np.testing.assert_array_equal(last.fit_transform(X), [[0, 1], [2, 1], [2, 1], [6, 7]])
