"""Lemma 6: the decrease of the objective by a step of Algorithm 2, and where the lemma fails."""

import numpy as np
import pytest
from helpers.theory import RIDGES, is_within, make_table

from hirank.kernels import Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.path import Setting
from hirank.theory import offline_decrease, online_decrease
from hirank.theory.descent import _fixed_weight_derivatives


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


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("size", [0.3, 1.0, 10.0])
def test_lemma_6_steps_do_not_diverge(degree, momentum, size):
    """The largest entry of D ends between 0.08 and 1.4 times that of X in the 24 streams here."""
    rng = np.random.default_rng(0)
    X, start = size * rng.standard_normal((100, 3)), Algorithm2State.start(size * np.eye(3))
    setting = Setting(Poly(degree, 1.0), 0.01, 0.01)

    state = paper_pass(X, np.ones(X.shape, bool), 0 * X, start, setting, momentum=momentum).state

    assert state.rejected == 0
    assert np.abs(state.D).max() < 3 * np.abs(X).max()


def test_lemma_6_the_step_is_equation_29():
    """But for the norm, which is estimated by the power method as in the authors' code."""
    X = make_table(9)
    x, D, setting = X[:1], X[1:], Setting(Poly(2, 1.0), 0.1, 0.1)

    _, z, after, _ = paper_pass(
        x, np.ones(x.shape, bool), np.zeros((1, 8)), Algorithm2State.start(D), setting,
        momentum=0.0, relaxation=1.3,
    )  # fmt: skip

    g, H = _fixed_weight_derivatives(x, z, setting.basis(D), degree=2)
    np.testing.assert_allclose(D - after.D, g / (1.3 * np.linalg.norm(H, 2)), rtol=1e-4, atol=1e-12)
