"""Single rows with a fixed dictionary: compiled and in NumPy, and each row by itself."""

import copy
import pickle
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from hirank import _compiled
from hirank.core.bounds import Bounds
from hirank.core.curvature import sample_hessians
from hirank.core.objective import Basis, gradient_without, sample_gradient
from hirank.kernels import RBF, Poly
from hirank.models.dictionary import Dictionary
from hirank.models.out_of_sample import MAX_CURVED, PLANS, RowImputer
from hirank.optim.path import Setting
from hirank.optim.rows import RowRules, RowSolver

RULES = RowRules(rounds=30, memory=6, tolerance=1e-7, min_decrease=1e-15, damping=0.03)
PLAIN = RowRules(rounds=14, memory=6)
MODULES = _compiled.available()
needs_core = pytest.mark.skipif(not MODULES, reason="The compiled core was not built.")


def rows_of_a_surface(n, m=9, seed=0):
    """Return points of a curved surface in m dimensions, and which of their entries are seen."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, (n, 2))
    features = np.column_stack([z, z**2, z[:, :1] * z[:, 1:]])
    X = features @ np.random.default_rng(99).standard_normal((5, m))
    observed = rng.random((n, m)) >= 0.4
    observed[:, 0], observed[:, 1] = True, False
    return X, observed


def make_basis(kernel, r=37, m=9, beta=1e-4):
    D = rows_of_a_surface(r, m, seed=5)[0]
    return Basis(kernel, D, beta * float(kernel.diag(D).mean()))


KERNELS = [RBF(4.0), RBF(1.5), Poly(2, 1.0), Poly(3, 0.5), Poly(1, 0.0)]


@pytest.fixture(params=KERNELS, ids=str)
def basis(request):
    return make_basis(request.param)


@pytest.fixture(params=[*MODULES, "off"])
def core(request):
    with _compiled.using(request.param):
        yield request.param


def minimize(basis, X, observed, rules=RULES, **options):
    """Return the rows at the end, their values and evaluations."""
    x = np.where(observed, X, 0.1)
    if options.get("bounds") is not None:
        x = options["bounds"].clip(x, observed)
    result = RowSolver.prepare(basis).minimize(x, observed, rules, **options)
    return x, result.value, result.evaluations


@needs_core
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("beta", [1e-2, 1e-8])
@pytest.mark.parametrize("without", [False, True], ids=["all points", "without a point"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_one_evaluation_agrees_with_numpy(kernel, beta, without, name):
    basis, (X, _) = make_basis(kernel, beta=beta), rows_of_a_surface(20)
    points = np.arange(20) % 37
    left_out = np.where(without, points, -1)

    def in_numpy(basis, points):
        if without:
            return gradient_without(X, basis, points, np.ones(20, bool))
        return sample_gradient(X, basis)

    value, gradient = in_numpy(basis, points)
    with _compiled.using(name):
        compiled = RowSolver.prepare(basis)._compiled()
    own_value, own_gradient = compiled.evaluate(X, left_out)

    unit = float(kernel.diag(X).max())
    order = np.random.default_rng(0).permutation(37)
    other = in_numpy(replace(basis, D=basis.D[order]), np.argsort(order)[points])
    spread = 3 * np.abs(other[1] - gradient).max()
    np.testing.assert_allclose(
        own_value,
        value,
        rtol=0,
        atol=max(1e-14 * unit * 20 / 2, 3 * np.abs(other[0] - value).max()),
    )
    exact = 1e-10 * np.abs(gradient).max() if beta == 1e-2 else 1e-10 * unit
    np.testing.assert_allclose(own_gradient, gradient, rtol=0, atol=max(exact, spread))


@needs_core
@pytest.mark.parametrize("rules", [RULES, PLAIN], ids=["curved", "plain"])
@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
def test_a_minimization_takes_the_same_steps_as_numpy(basis, rules, bounded):
    X, observed = rows_of_a_surface(50)
    bounds = Bounds(np.full(9, -0.5), np.linspace(0.3, 1.5, 9)) if bounded else None
    rules = replace(rules, rounds=6)  # later, rounding makes a difference
    with _compiled.using("off"):
        x, value, evaluations = minimize(basis, X, observed, rules, bounds=bounds)
    for name in MODULES:
        with _compiled.using(name):
            own_x, own_value, own_evaluations = minimize(basis, X, observed, rules, bounds=bounds)
        # The compiled core stores the curvature of points in single precision.
        np.testing.assert_allclose(own_x, x, rtol=0, atol=1e-4)
        np.testing.assert_allclose(own_value, value, rtol=1e-4, atol=1e-8 * abs(value).max())
        assert np.mean(own_evaluations == evaluations) > 0.9


def test_the_end_is_a_minimum_within_the_bounds(basis, core):
    X, observed = rows_of_a_surface(30)
    bounds = Bounds(np.full(9, -0.2), np.full(9, np.inf))
    rules = replace(RULES, rounds=200, min_decrease=0.0)

    x, value, _ = minimize(basis, X, observed, rules, bounds=bounds)

    assert (x[observed] == X[observed]).all()
    assert (x[~observed] >= -0.2).all()
    values, gradient = sample_gradient(x, basis)
    np.testing.assert_allclose(values, value, rtol=1e-6, atol=1e-9 * np.abs(values).max())
    projected = np.where((x <= -0.2) & (gradient > 0), 0, np.where(observed, 0, gradient))
    start = sample_gradient(bounds.clip(np.where(observed, X, 0.1), observed), basis)[1]
    assert np.median(np.abs(projected).max(axis=1)) < 1e-4 * np.abs(start[~observed]).max()


@needs_core
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("rules", [RULES, PLAIN], ids=["curved", "plain"])
def test_a_row_is_the_same_to_the_bit_alone_and_in_any_batch(basis, rules, name):
    X, observed = rows_of_a_surface(40)
    left_out = np.where(np.arange(40) % 3 == 0, np.arange(40) % 37, -1)
    with _compiled.using(name):
        together = minimize(basis, X, observed, rules, left_out=left_out)[0]
        for rows in (*np.arange(40)[:, None], np.arange(40)[::-1], np.arange(3, 12)):
            part = minimize(basis, X[rows], observed[rows], rules, left_out=left_out[rows])[0]
            assert (part == together[rows]).all()


@needs_core
def test_threads_that_share_a_solver_do_not_change_rows(basis):
    X, observed = rows_of_a_surface(60)
    alone, solver = minimize(basis, X, observed)[0], RowSolver.prepare(basis)
    found = [np.where(observed, X, 0.1) for _ in range(4)]
    threads = [threading.Thread(target=solver.minimize, args=(x, observed, RULES)) for x in found]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all((x == alone).all() for x in found)


@needs_core
@pytest.mark.parametrize("name", MODULES)
def test_the_curvature_makes_rows_end_earlier_at_the_same_values(name):
    basis, (X, observed) = make_basis(RBF(4.0)), rows_of_a_surface(60)
    with _compiled.using(name):
        _, curved, few = minimize(basis, X, observed, replace(RULES, rounds=100))
        _, plain, many = minimize(basis, X, observed, replace(RULES, rounds=100, damping=0.0))

    assert few.mean() < 0.8 * many.mean()
    assert np.median(curved / plain) < 1.01


@needs_core
def test_a_signal_ends_a_minimization():
    basis, (X, observed) = make_basis(RBF(4.0)), rows_of_a_surface(100)
    X, observed = np.tile(X, (2000, 1)), np.tile(observed, (2000, 1))

    def interrupt(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):  # all rows would take a minute
            minimize(basis, X, observed, replace(PLAIN, rounds=300))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MODEL = tuple(Setting(RBF(sigma), beta) for sigma, beta in ((3.0, 1e-2), (4.0, 1e-4), (6.0, 1e-6)))


@pytest.fixture
def model():
    return Dictionary(rows_of_a_surface(40, seed=5)[0], MODEL)


def test_rows_may_come_in_any_layout_and_precision(model, core):
    X, observed = rows_of_a_surface(12)
    expected = model.complete(X, observed)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.repeat(X, 2, axis=1)[:, ::2]

    for given in (np.asfortranarray(X), frozen, wide):
        assert (model.complete(given, np.asfortranarray(observed)) == expected).all()
    single = model.complete(X.astype(np.float32), observed)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-3)
    single_points = replace(model, D=model.D.astype(np.float32))
    np.testing.assert_allclose(single_points.complete(X, observed), expected, atol=1e-3)


def test_extreme_tables_are_completed(model, core):
    X, observed = rows_of_a_surface(12)
    complete = np.ones_like(observed)
    assert (model.complete(X, complete) == X).all()
    assert model.complete(X[:0], observed[:0]).shape == (0, 9)
    assert np.isfinite(model.complete(X, np.zeros_like(observed))).all()
    for value in (1e-310, 1e100, 1e300):
        far = np.where(observed, value, 0)
        with np.errstate(all="ignore"):
            filled = model.complete(far, observed)
        assert (filled[observed] == value).all()
    for r, m in ((1, 9), (40, 1), (1, 1)):
        small = Dictionary(model.D[:r, :m], MODEL)
        assert np.isfinite(small.complete(X[:, :m], np.zeros((12, m), bool))).all()
    assert (Dictionary(model.D, ()).complete(X, observed) == X).all()


@needs_core
def test_all_compiled_modules_and_numpy_complete_the_same_rows(model):
    X, observed = rows_of_a_surface(50)
    with _compiled.using("off"):
        expected = model.complete(X, observed)
    for name in MODULES:
        with _compiled.using(name):
            np.testing.assert_allclose(model.complete(X, observed), expected, atol=1e-5)


def test_wide_rows_are_solved_without_curvature(core):
    m = MAX_CURVED + 1
    D = rows_of_a_surface(20, m, seed=5)[0]
    X, observed = rows_of_a_surface(4, m)
    model = Dictionary(D, (Setting(RBF(20.0), 1e-4),))

    filled = model.complete(X, observed)

    before = np.linalg.norm((D[0] - X)[~observed])
    assert np.linalg.norm((filled - X)[~observed]) < 0.5 * before


@needs_core
def test_curvature_beyond_the_limit_of_memory_is_computed_again_with_the_same_bits(
    basis, monkeypatch
):
    X, observed = rows_of_a_surface(30)
    with _compiled.using("off"):
        expected = minimize(basis, X, observed)[0]
        monkeypatch.setattr("hirank.optim.rows.MAX_TABLE", 0)
        assert (minimize(basis, X, observed)[0] == expected).all()


def test_the_curvature_of_a_point_is_that_of_a_sample(basis):
    solver = RowSolver.prepare(basis)
    H = solver._curvature(7).H
    np.testing.assert_allclose(H, sample_hessians(basis.D, basis)[7], atol=1e-9 * np.abs(H).max())


def test_rows_with_more_missing_entries_go_through_more_stages():
    counts = [len(plan.stages(7)) for plan in PLANS]
    assert counts == [2, 4, 7]
    for total in range(1, 12):
        for plan in PLANS:
            stages = plan.stages(total)
            assert stages == sorted(set(stages))
            assert stages[-1] == total - 1


def test_what_is_computed_once_is_neither_compared_nor_copied_nor_pickled(model):
    X, observed = rows_of_a_surface(3)
    filled = model.complete(X, observed)
    assert "_kept" in vars(model)

    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert set(vars(other)) == {"D", "settings", "rounds", "bounds"}
        assert (other.complete(X, observed) == filled).all()


def test_a_dictionary_that_is_too_large_keeps_nothing(model, monkeypatch):
    X, observed = rows_of_a_surface(3)
    expected = model.complete(X, observed)
    assert RowImputer(model.D, model.settings).nbytes > 0
    monkeypatch.setattr("hirank.models.dictionary.MAX_KEPT", 0)
    fresh = replace(model)

    assert (fresh.complete(X, observed) == expected).all()
    assert "solvers" not in vars(fresh._kept)


@needs_core
def test_wrong_arguments_of_the_compiled_solver_are_errors(basis):
    compiled = RowSolver.prepare(basis)._compiled()
    X, observed = rows_of_a_surface(3)
    rules = {"rounds": 3, "memory": 6, "tolerance": 0.0, "decrease": 0.0, "damping": 0.0}
    free = {"lower": None, "upper": None, "left_out": None}
    rows = np.arange(3)
    with pytest.raises(ValueError, match="n x m"):
        compiled.minimize(X[:, :5].copy(), observed, rows, **free, **rules)
    with pytest.raises(IndexError, match="positions"):
        compiled.minimize(X, observed, rows + 1, **free, **rules)
    with pytest.raises(IndexError, match="points"):
        compiled.minimize(X, observed, rows, **free | {"left_out": rows + 40}, **rules)
    with pytest.raises(ValueError, match="memory"):
        compiled.minimize(X, observed, rows, **free, **rules | {"memory": 99})
    with pytest.raises(TypeError):  # no silent copy, into which results would go
        compiled.minimize(X.astype(np.float32), observed, rows, **free, **rules)
