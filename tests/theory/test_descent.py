"""Lemmas 3 to 6: what steps of Algorithms 1 and 2 do to the objective, and where the lemmas fail.

The numbers of counterexamples are those of docs/notes/theory.md.
"""

import numpy as np
import pytest

from hirank.datasets import polynomial_manifolds, uniform_missing
from hirank.kernels import RBF, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, Setting
from hirank.theory import (
    neglected_term,
    offline_decrease,
    online_decrease,
    trace_algorithm_1,
)
from hirank.theory.descent import _fixed_weight_derivatives

RIDGES = {"beta": 0.1, "alpha": 0.1}


def make_table(n_samples=60, n_features=6, seed=0):
    X = polynomial_manifolds(n_samples, n_features, latent=2, degree=2, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def fit_slope(x, y):
    """Return the exponent b of the power law y = a x^b that fits best."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def is_within(decrease, slack=1e-9):
    return decrease.actual >= decrease.guaranteed * (1 - slack)


# Lemma 3


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_lemma_3_holds_on_tables_with_more_samples_than_points(degree, seed):
    X = make_table(seed=seed)
    D = X[:5] + 0.1 * np.random.default_rng(seed).standard_normal((5, 6))

    for relaxation in (1.1, 2.0, 10.0):
        step = offline_decrease(X, D, Poly(degree, 1.0), relaxation=relaxation, **RIDGES)

        assert is_within(step)
        assert step.guaranteed > 0


@pytest.mark.parametrize("seed", range(3))
def test_lemma_3_holds_for_degree_1_if_and_only_if_tau_is_at_least_1(seed):
    """The objective is quadratic in D: a step lowers it by (1 / tau - 1 / (2 tau^2)) Tr(g/H g)."""
    X = make_table(seed=seed)
    D = np.random.default_rng(seed).standard_normal((5, 6))

    for tau in (0.4, 0.5, 0.6, 0.99, 1.0, 1.01, 3.0):
        step = offline_decrease(X, D, Poly(1, 1.0), relaxation=tau, **RIDGES)

        assert step.actual == pytest.approx((2 - 1 / tau) * step.guaranteed, abs=1e-9)
        assert is_within(step) == (tau >= 1)
        assert (step.actual < -1e-6) == (tau < 0.5)


def test_lemma_3_with_tau_below_a_half_the_objective_rises_in_the_smallest_case():
    """One sample, one feature, one point, degree 1: the step goes beyond the minimum."""
    steps = {
        tau: offline_decrease([[1.0]], [[2.0]], Poly(1, 0.0), beta=1.0, relaxation=tau)
        for tau in (0.4, 0.5, 1.0)
    }

    assert steps[0.4].actual < 0 < steps[0.4].guaranteed
    assert steps[0.5].actual == pytest.approx(0, abs=1e-12)
    assert steps[1.0].actual == pytest.approx(steps[1.0].guaranteed)


def test_lemma_3_fails_for_degree_2_with_tau_just_above_1():
    """The objective falls by 2.36, not by 3.18: one sample, one feature, one point."""
    small, large = (
        offline_decrease([[3.0]], [[4.0]], Poly(2, 1.0), beta=0.01, alpha=0.1, relaxation=tau)
        for tau in (1.1, 1.5)
    )

    assert small.actual == pytest.approx(2.358, abs=1e-3)
    assert small.guaranteed == pytest.approx(3.177, abs=1e-3)
    assert is_within(large)


def test_lemma_3_fails_for_degree_3_so_that_the_objective_rises():
    """By 129, where the lemma has a decrease of 59: one sample, one feature, one point."""
    small, large = (
        offline_decrease([[3.0]], [[0.5]], Poly(3, 1.0), beta=1.0, alpha=1.0, relaxation=tau)
        for tau in (1.1, 2.0)
    )

    assert small.actual == pytest.approx(-129.4, abs=0.1)
    assert small.guaranteed == pytest.approx(58.8, abs=0.1)
    assert is_within(large)


def test_lemma_3_no_tau_is_enough_for_all_dictionaries():
    """Two points that are close to each other: the curvature for fixed weights is nearly 0."""
    X, kernel = [[3.0]], Poly(2, 1.0)
    rises = {
        tau: offline_decrease(X, [[1.0], [1.1]], kernel, beta=0.1, alpha=1e-4, relaxation=tau)
        for tau in (1.1, 10, 100, 200)
    }

    assert [step.actual < 0 for step in rises.values()] == [True, True, True, False]
    assert is_within(rises[200])


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_lemma_3_holds_if_tau_is_large_enough(degree, seed):
    """The decrease is q Tr(g H^-1 g') / tau to first order: 2 q times what is guaranteed."""
    rng = np.random.default_rng(seed)
    X, D = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))

    step = offline_decrease(X, D, Poly(degree, 1.0), relaxation=1e5, **RIDGES)

    assert step.actual == pytest.approx(2 * degree * step.guaranteed, rel=1e-2)


def test_lemma_3_the_step_of_newton_is_equation_8():
    X, D = make_table(), make_table(5, seed=1)
    setting = Setting(Poly(2, 1.0), 0.1, 0.1)
    solver = Newton(np.ones(X.shape, bool), momentum=0.0, relaxation=1.3)
    state = solver.init(PathPoint(setting, X, D))

    g, H = _fixed_weight_derivatives(X, state.Z, state.basis, degree=2)

    np.testing.assert_allclose(D - solver.step(state).D(), np.linalg.solve(H, g) / 1.3)
    assert np.linalg.eigvalsh(H).min() > 0


def test_lemma_3_the_curvature_is_not_positive_definite_without_alpha():
    """Fewer samples than points, degree 1: Z'Z is singular, whatever Schur's theorem adds."""
    with pytest.raises(np.linalg.LinAlgError, match="Use alpha above 0"):
        offline_decrease([[1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], Poly(1, 1.0), beta=0.1)


# Lemma 4


def measure_neglected(n_samples=200, sigma=5.0, beta=1.0):
    """Return the term with a move of 1 % of D, over |X| |D - D_2|, and over what is kept."""
    X = make_table(n_samples, 10)
    D, move = X[:20], np.random.default_rng(1).standard_normal((20, 10))
    move *= 0.01 * np.linalg.norm(D) / np.linalg.norm(move)
    term = neglected_term(X, D, D + move, sigma=sigma, beta=beta)
    assert term.change <= term.bound
    return term.change / np.linalg.norm(X, 2) / np.linalg.norm(move), term.change / term.kept


def test_lemma_4_the_neglected_term_falls_with_the_square_of_sigma():
    """The lemma has the power -1; from three mean distances on it is -2, also beside the rest."""
    sigmas = np.array([12.0, 24.0, 48.0, 96.0])

    terms, shares = np.transpose([measure_neglected(sigma=sigma) for sigma in sigmas])

    assert fit_slope(sigmas, terms) == pytest.approx(-2, abs=0.15)
    assert fit_slope(sigmas, shares) == pytest.approx(-2, abs=0.25)


def test_lemma_4_the_neglected_term_does_not_fall_with_the_number_of_samples():
    """The lemma has the power -1/2; it is +1/2, and 0 beside the terms that are kept."""
    numbers = np.array([50, 100, 200, 400, 800])

    terms, shares = np.transpose([measure_neglected(n_samples=n) for n in numbers])

    assert fit_slope(numbers, terms) == pytest.approx(0.5, abs=0.1)
    assert fit_slope(numbers, shares) == pytest.approx(0, abs=0.05)


def test_lemma_4_requires_a_ridge_that_grows_with_the_samples():
    """With beta = n the codes fall like 1 / n, and the term as the lemma states."""
    numbers = np.array([50, 100, 200, 400, 800])

    terms = [measure_neglected(n_samples=n, beta=float(n))[0] for n in numbers]

    assert fit_slope(numbers, terms) == pytest.approx(-0.5, abs=0.2)


def test_lemma_4_no_constant_is_enough_for_equal_samples():
    """One feature, one point, n equal samples: the term is n times as large, the bound stays."""
    one, many = (
        neglected_term([[1.0]] * n, [[0.0]], [[0.1]], sigma=1.0, beta=0.1) for n in (1, 10_000)
    )

    assert many.printed == pytest.approx(one.printed)
    assert many.change == pytest.approx(10_000 * one.change)
    assert many.change > 3000 * many.printed


@pytest.mark.parametrize("beta", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("size", [0.01, 1.0])
def test_lemma_4_the_corrected_bound_holds(beta, sigma, size):
    X, rng = make_table(100), np.random.default_rng(0)
    D = X[:8]

    term = neglected_term(X, D, D + size * rng.standard_normal(D.shape), sigma=sigma, beta=beta)

    assert 0 < term.change <= term.bound


# Lemma 5


@pytest.mark.parametrize("momentum", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("kernel", "alpha"), [(RBF(3.0), 0.0), (Poly(2, 1.0), 0.1)])
def test_lemma_5_the_gradient_goes_to_zero_with_little_momentum(kernel, alpha, momentum):
    X = make_table(20, 3)
    observed = uniform_missing(X.shape, 0.2, random_state=0)

    course = trace_algorithm_1(
        np.where(observed, X, 0),
        X[:3],
        kernel,
        observed=observed,
        beta=0.1,
        alpha=alpha,
        momentum=momentum,
        n_steps=1000,
    )

    assert course.gradient_norms[-1] < 1e-4 * course.gradient_norms[0]
    assert course.objectives[-1] < course.objectives[0]
    if not momentum:
        assert (np.diff(course.objectives) <= 1e-12 * course.objectives[0]).all()


@pytest.mark.parametrize("momentum", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(("kernel", "alpha"), [(RBF(3.0), 0.0), (Poly(2, 1.0), 0.1)])
def test_lemma_5_much_momentum_diverges(kernel, alpha, momentum):
    X = make_table(40, 8)
    observed = uniform_missing(X.shape, 0.3, random_state=0)
    D = np.random.default_rng(0).standard_normal((10, 8))

    course = trace_algorithm_1(
        np.where(observed, X, 0), D, kernel, observed=observed, beta=0.1, alpha=alpha,
        momentum=momentum, n_steps=60,
    )  # fmt: skip

    assert len(course.objectives) < 61 or course.objectives[-1] > 10 * course.objectives[0]


def test_lemma_5_without_momentum_the_objective_may_cycle_for_ever():
    """One sample, one feature, two points, degree 2: two values in turn, no stationary point."""
    problem = {"kernel": Poly(2, 1.0), "beta": 0.1, "alpha": 0.1, "momentum": 0.0}

    cycle, larger_tau = (
        trace_algorithm_1([[-2.0]], [[0.5], [1.0]], relaxation=tau, **problem) for tau in (1.1, 1.2)
    )

    assert cycle.objectives[-4:] == pytest.approx([19.1516, 12.0479, 19.1516, 12.0479], abs=1e-4)
    assert cycle.gradient_norms[-4:].min() > 2
    assert larger_tau.gradient_norms[-1] < 1e-10
    assert larger_tau.objectives[-1] == pytest.approx(8.9406, abs=1e-4)


# Lemma 6


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_lemma_6_holds_for_samples_and_points_of_one_size(degree, seed):
    X = make_table(seed=seed)

    for relaxation in (1.1, 3.0):
        step = online_decrease(X[0], X[1:9], Poly(degree, 1.0), relaxation=relaxation, **RIDGES)

        assert is_within(step)
        assert step.guaranteed > 0


def test_lemma_6_holds_for_degree_1_if_and_only_if_tau_is_at_least_1_in_the_smallest_case():
    for tau in (0.4, 0.5, 0.9, 1.0, 1.1, 2.0):
        step = online_decrease([1.0], [[2.0]], Poly(1, 0.0), beta=1.0, relaxation=tau)

        assert is_within(step) == (tau >= 1)
        assert (step.actual < -1e-9) == (tau < 0.5)


@pytest.mark.parametrize(
    ("x", "d", "degree", "beta", "alpha", "tau", "enough"),
    [(3.0, 4.0, 2, 0.01, 0.1, 1.1, 1.5), (3.0, 0.5, 3, 1.0, 1.0, 1.1, 2.0)],
)
def test_lemma_6_fails_for_higher_degrees_with_tau_just_above_1(
    x, d, degree, beta, alpha, tau, enough
):
    """With one sample and one point the step is that of Lemma 3, and so are the cases."""
    small, large = (
        online_decrease([x], [[d]], Poly(degree, 1.0), beta=beta, alpha=alpha, relaxation=t)
        for t in (tau, enough)
    )
    offline = offline_decrease(
        [[x]], [[d]], Poly(degree, 1.0), beta=beta, alpha=alpha, relaxation=tau
    )

    assert small == pytest.approx(offline)
    assert not is_within(small)
    assert is_within(large)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_lemma_6_repeated_steps_do_not_diverge(degree):
    """200 passes over one sample of any size: the dictionary stays finite."""
    setting = Setting(Poly(degree, 1.0), 1.0, 0.01)
    for size in (0.1, 1.0, 10.0):
        x, state = np.full((1, 2), size), Algorithm2State.start(np.array([[0.1, 0.0], [0.0, 0.1]]))
        seen, Z = np.ones(x.shape, bool), np.zeros((1, 2))

        for _ in range(200):
            _, Z, state = paper_pass(x, seen, Z, state, setting, momentum=0.0, compiled=False)

        assert state.rejected == 0
        assert np.abs(state.D).max() < 10 * max(size, 1)


def test_lemma_6_the_step_is_equation_29():
    """But for the norm, which is estimated by the power method as in the authors' code."""
    X = make_table(9)
    x, D, setting = X[:1], X[1:], Setting(Poly(2, 1.0), 0.1, 0.1)

    _, z, after = paper_pass(
        x, np.ones(x.shape, bool), np.zeros((1, 8)), Algorithm2State.start(D), setting,
        momentum=0.0, relaxation=1.3, compiled=False,
    )  # fmt: skip

    g, H = _fixed_weight_derivatives(x, z, setting.basis(D), degree=2)
    np.testing.assert_allclose(D - after.D, g / (1.3 * np.linalg.norm(H, 2)), rtol=1e-4, atol=1e-12)
