"""Lemma 5: Algorithm 1 and stationary points, for small and for large momentum."""

import numpy as np
import pytest
from helpers.theory import make_table

from hirank.core.objective import objective
from hirank.datasets import uniform_missing
from hirank.kernels import RBF, Poly
from hirank.optim.path import Setting
from hirank.theory import trace_algorithm_1


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


def test_equation_60_fails_where_the_last_step_leads_uphill():
    """The proof bounds a term of order eta by one of order eta^2, in the smallest case as well.

    One sample x = 1, one feature, degree 1: the objective is (1 - d z)^2 / 2, and tau is 2.
    """
    setting, z, tau = Setting(Poly(1, 0.0), 1e-6), np.ones((1, 1)), 2.0

    def value(d):
        return objective(np.ones((1, 1)), z, setting.basis(np.array([[d]])))

    d, g, H = 0.0, -1.0, 1.0
    delta, last = g / H / tau, 1.0  # the last step goes away from 1
    for eta in (0.01, 0.1):
        rise = value(d - delta - eta * last) - value(d - delta)
        assert rise > eta**2 * tau * H * last**2
        assert value(d - delta - eta * last) < value(d)  # equation 63 holds nevertheless
