"""Estimators that several threads use at once."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from helpers.estimators import fast_imputer
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC, load
from hirank.baselines import OnlineLRF


def rows(n, seed=0):
    t = np.random.default_rng(seed).uniform(-1, 1, n)
    X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    X[::3, 1] = np.nan
    return X


STREAMS = [
    OnlineImputer(10, n_warmup=30, window=60, batch_size=10, max_iter=5, random_state=0),
    OnlineKFMC(10, n_warmup=30, max_iter=5, random_state=0),
    OnlineLRF(2, n_warmup=30, random_state=0),
]


class Paused:
    """Rows that are handed out only when `go` is set, so that a call can be held inside."""

    def __init__(self, X):
        self.X, self.asked, self.go = X, threading.Event(), threading.Event()
        self.shape = X.shape

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        self.asked.set()
        assert self.go.wait(20)
        return self.X


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: type(stream).__name__)
@pytest.mark.parametrize("method", ["partial_fit", "partial_fit_transform", "fit"])
def test_a_second_thread_that_learns_is_told_so_and_changes_nothing(stream, method):
    model, alone = (clone(stream).partial_fit(rows(50)) for _ in range(2))
    more = Paused(rows(20, seed=1))

    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(model.partial_fit, more)
        assert more.asked.wait(20)
        with pytest.raises(RuntimeError, match="learning in another thread"):
            getattr(model, method)(rows(40, seed=2))
        during = model.transform(rows(9, seed=3))
        more.go.set()
        learning.result()

    assert (during == alone.transform(rows(9, seed=3))).all()
    alone.partial_fit(rows(20, seed=1))
    assert (model.transform(rows(9, seed=3)) == alone.transform(rows(9, seed=3))).all()
    model.partial_fit(rows(20, seed=4))  # the other thread has left


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: type(stream).__name__)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_can_learn_while_the_original_does(stream, duplicate):
    model = clone(stream).partial_fit(rows(50))
    more = Paused(rows(20, seed=1))

    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(model.partial_fit, more)
        assert more.asked.wait(20)
        other = duplicate(model).partial_fit(rows(20, seed=1))
        clone(model).partial_fit(rows(50))
        more.go.set()
        learning.result()

    assert (model.transform(rows(9)) == other.transform(rows(9))).all()


def test_a_call_that_fails_does_not_keep_other_threads_out():
    model = clone(STREAMS[0]).partial_fit(rows(50))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(np.zeros((3, 7)))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.partial_fit, rows(20)).result()

    assert model.n_samples_seen_ == 70


def test_an_imputer_gives_the_same_bits_in_several_threads_as_in_one():
    model = fast_imputer(n_init=1).fit(rows(80))
    parts = [rows(300, seed) for seed in range(6)]

    with threadpool_limits(2, user_api="blas"):
        alone = [model.transform(X) for X in parts]
        with ThreadPoolExecutor(3) as pool:
            together = [*pool.map(model.transform, parts)]

    for one, other in zip(alone, together, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize(
    "model",
    [
        fast_imputer(),
        KFMC(20, max_iter=10, random_state=0),
        OnlineImputer(20, n_warmup=40, window=80, batch_size=20, max_iter=10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_results_do_not_depend_on_the_number_of_threads(model, monkeypatch):
    monkeypatch.setattr("hirank.core.threads.MIN_SHARED_COST", 0)  # everything is shared
    X, new = rows(100), rows(60, seed=1)

    def results(n_jobs):
        own = clone(model).set_params(n_jobs=n_jobs)
        found = [own.fit_transform(X), own.transform(new)]
        if not isinstance(own, OnlineImputer):
            found += [own.trace_[name] for name in ("step", "stage", "objective")]
        if isinstance(own, Imputer):
            found += own.interval(new)
        return found

    alone = results(1)
    for n_jobs in (2, 3):
        for one, other in zip(alone, results(n_jobs), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_a_wrong_number_of_threads_is_an_error(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or a number of threads"):
        Imputer(n_jobs=n_jobs).fit(rows(20))


def test_a_row_is_imputed_without_threads(monkeypatch):
    monkeypatch.setattr("hirank.core.threads._Pool", None)  # cannot be called
    model = fast_imputer(n_init=1).fit(rows(80)).set_params(n_jobs=-1)

    assert np.isfinite(model.transform(rows(1))).all()


def test_the_number_of_threads_is_not_part_of_a_saved_model(tmp_path):
    model = KFMC(10, max_iter=3, n_jobs=7, random_state=0).fit(rows(40))
    model.save(tmp_path / "model.hirank")

    assert load(tmp_path / "model.hirank").n_jobs is None


def test_tasks_of_joblib_give_the_same_bits(monkeypatch):
    monkeypatch.setattr("hirank.core.threads.MIN_SHARED_COST", 0)
    model, parts = (
        KFMC(15, max_iter=5, n_jobs=2, random_state=0),
        [rows(40, seed) for seed in range(3)],
    )
    alone = [clone(model).fit_transform(X) for X in parts]

    run = joblib.delayed(lambda X: clone(model).fit_transform(X))
    together = joblib.Parallel(3, prefer="threads")(run(X) for X in parts)

    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
