"""Lemma 4: how the term that the curvature of the RBF kernel neglects depends on sigma and n."""

import numpy as np
import pytest
from helpers.theory import make_table

from hirank.core.objective import Basis, codes
from hirank.kernels import RBF
from hirank.theory import neglected_term


def fit_slope(x, y):
    """Return the exponent b of the power law y = a x^b that fits best."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


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


# Steps of its proof


def test_equations_50_and_51_codes_do_not_fall_with_the_number_of_samples():
    """The paper has |z| < 1 / sqrt(n) on average, if beta is large enough: larger than sqrt(n)."""
    numbers = np.array([50, 200, 800])

    def compute_codes(n):
        X = make_table(n, 10)
        return codes(X, Basis(RBF(5.0), X[:20], 1.0))

    sizes = [np.sqrt(np.mean(compute_codes(n) ** 2)) for n in numbers]

    assert fit_slope(numbers, sizes) == pytest.approx(0, abs=0.05)
    assert np.linalg.norm(compute_codes(800)) ** 2 > 20  # r, which the proof has as a bound


def test_equation_56_is_the_derivative_of_the_kernel_with_the_sign_reversed():
    """Of k(x, d) by d: (x - d) k / sigma^2. The sign does not matter to the bound."""
    x, d, sigma, step = np.array([[1.0, 0.2]]), np.array([[0.3, -0.5]]), 1.5, 1e-6
    kernel = RBF(sigma)
    move = np.array([[step, 0.0]])

    derivative = (kernel.matrix(x, d + move) - kernel.matrix(x, d - move)) / (2 * step)

    printed = -(x - d)[0, 0] * kernel.matrix(x, d) / sigma**2
    assert derivative == pytest.approx(-printed)
    assert np.abs(derivative) <= np.exp(-0.5) / sigma


@pytest.mark.parametrize("n", [1, 100])
def test_equation_57_lacks_the_root_of_the_number_of_samples(n):
    """Equal samples at the steepest place of the kernel; the paper has a small constant c_3."""
    X, D, moved = np.ones((n, 1)), np.zeros((1, 1)), np.full((1, 1), 1e-3)

    change = np.linalg.norm(RBF(1.0).matrix(X, moved) - RBF(1.0).matrix(X, D))

    assert change / 1e-3 == pytest.approx(np.exp(-0.5) * n**0.5, rel=1e-3)
