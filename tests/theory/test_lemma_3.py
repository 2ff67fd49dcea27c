"""Lemma 3: the decrease of the objective by a step of Algorithm 1, and where the lemma fails.

Numbers of counterexamples are those of docs/notes/theory.md.
"""

import numpy as np
import pytest
from helpers.theory import RIDGES, is_within, make_table

from hirank.kernels import Poly
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, Setting
from hirank.theory import offline_decrease
from hirank.theory.descent import _fixed_weight_derivatives


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


@pytest.mark.parametrize(
    ("second", "beta", "alpha", "rises", "enough"),
    [(1.1, 0.1, 1e-4, 100, 200), (1.003, 1e-3, 1e-6, 5000, 20_000)],
)
def test_lemma_3_requires_a_tau_far_above_1_where_points_are_close(
    second, beta, alpha, rises, enough
):
    """The closer two points are to each other, the closer is H to a singular matrix."""
    small, medium, large = (
        offline_decrease(
            [[3.0]], [[1.0], [second]], Poly(2, 1.0), beta=beta, alpha=alpha, relaxation=tau
        )
        for tau in (1.1, rises, enough)
    )

    assert small.actual < 0
    assert medium.actual < 0
    assert is_within(large)


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
