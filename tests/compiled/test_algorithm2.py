import signal
import threading
import time

import numpy as np
import pytest
from helpers.compiled import EXTREMES, assert_as_numpy, layouts, tables
from hypothesis import given
from hypothesis import strategies as st

from hirank import _compiled
from hirank.kernels import RBF, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.path import Setting

KERNELS = {"rbf": Setting(RBF(2.0), 1e-2), "poly": Setting(Poly(), 1e-1, 1e-3)}


def run(X, observed, D, setting=KERNELS["rbf"], **options):
    """Pass over X; everything that the pass returns."""
    options = {"max_inner": 3, **options}
    Z = np.zeros((len(X), len(D)))
    return tuple(paper_pass(X, observed, Z, Algorithm2State.start(D), setting, **options))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((40, 7)), rng.standard_normal((10, 7))
    return X, rng.random(X.shape) < 0.6, D


@given(tables(), st.integers(1, 40), st.sampled_from([1, 2, 5, 30]), st.sampled_from(list(KERNELS)))
def test_any_shape_gives_the_values_of_numpy(table, r, batch_size, kernel):
    X, observed = table
    D = np.random.default_rng(1).standard_normal((r, X.shape[1]))
    # Over 1500 random examples the largest difference was 0.0013 of this tolerance.
    assert_as_numpy(
        lambda: run(X, observed, D, KERNELS[kernel], batch_size=batch_size), rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", EXTREMES)
def test_extreme_numbers_are_rejected_or_kept_as_by_numpy(table, kernel, number):
    X, observed, D = table
    X, observed = X.copy(), observed.copy()
    X[11, 3], observed[11, 3] = number, True
    X[25, 2], observed[25, 2] = number, False
    assert_as_numpy(lambda: run(X, observed, D, KERNELS[kernel]), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-310, 1e-150, 1e150])
def test_tables_of_extreme_units_are_as_by_numpy(table, unit):
    X, observed, D = table
    assert_as_numpy(lambda: run(X * unit, observed, D * unit), rtol=1e-7, atol=1e-8 * unit)


def test_layouts_give_the_same_bits(table, instruction_set):
    X, observed, D = table
    expected = run(X, observed, D)
    for other, known, points in zip(layouts(X), layouts(observed), layouts(D), strict=True):
        for one, two in zip(run(other, known, points)[:2], expected[:2], strict=True):
            assert (one == two).all()


def test_arrays_that_are_not_contiguous_doubles_are_refused(table, core):
    X, observed, D = table
    zeros = np.zeros((40, 10)), np.zeros((10, 7)), np.zeros((40, 2))
    options = (0, 1.0, 1e-2, 0.0, 1, 3, 1e-5, 0.5, 1.1)
    for wrong in (X.astype(np.float32), np.asfortranarray(X), X.tolist()):
        with pytest.raises(TypeError):
            core.algorithm2_pass(wrong, zeros[0], observed, D, zeros[1], zeros[2], *options)


def test_threads_compute_the_same_as_one(table, core):
    X, observed, D = (np.tile(a, (20, 1)) if len(a) == 40 else a for a in table)
    expected, got = run(X, observed, D), []
    name = _compiled.instruction_set()

    def work():
        with _compiled.using(name):
            got.append(run(X, observed, D))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    for one in got:
        assert (one[0] == expected[0]).all()


def test_a_signal_ends_a_pass(core):
    """One batch of hours: the signal must be seen inside it."""
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((600, 40)), rng.standard_normal((300, 40))
    observed = rng.random(X.shape) < 0.5
    sent = []
    # Where tests run in the background, SIGINT is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.15, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(X, observed, D, batch_size=600, max_inner=10**8, tol=0.0)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert sent
