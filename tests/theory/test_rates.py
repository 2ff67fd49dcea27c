"""Equations 36 and 38: sampling rates, their numbers in the paper, and the exact binomial form."""

from math import comb

import numpy as np
import pytest
from scipy.special import binom

from hirank.theory import data_rank, exact_kfmc_rate, freedom, kfmc_rate, low_rank_rate

CURVED = {"latent": 2, "degree": 2, "manifolds": 3}
FLAT = {"latent": 2, "degree": 1, "manifolds": 10}


def test_equations_36_and_38_give_the_papers_rates():
    assert low_rank_rate(300, 20, **CURVED) == pytest.approx(0.906)
    assert kfmc_rate(300, 20, **CURVED) == pytest.approx(0.56, abs=0.005)
    assert low_rank_rate(300, 20, **FLAT) > 1
    assert kfmc_rate(300, 20, **FLAT) == pytest.approx(0.64, abs=0.005)
    # Capped, as the formula stands in the paper: what must be exceeded is 1 itself.
    assert freedom(data_rank(300, 20, **FLAT), 300, 20) == 1


def test_equation_36_grows_with_structure_and_falls_with_samples():
    rates = [low_rank_rate(40, 20, latent=2, degree=2, manifolds=u) for u in range(1, 20)]
    assert all(np.diff(rates) >= 0)
    rates = [kfmc_rate(n, 20, latent=2, degree=2) for n in (20, 50, 200, 1000, 10000)]
    assert all(np.diff(rates) < 0)
    # Without end of samples, what remains is to place one sample in feature space.
    assert kfmc_rate(10**9, 20, latent=2, degree=2) == pytest.approx((15 / 231) ** 0.5, abs=1e-6)


@pytest.mark.parametrize("kernel_degree", [1, 2, 3])
@pytest.mark.parametrize("surfaces", [CURVED, FLAT])
@pytest.mark.parametrize("n_samples", [20, 300, 5000])
def test_the_exact_rate_observes_as_many_monomials_as_there_are_unknowns(
    n_samples, surfaces, kernel_degree
):
    """Equations 67 to 69 of the paper, with C(rho m + q, q) observed monomials in a sample."""
    m, q, (d, p, u) = 20, kernel_degree, surfaces.values()
    rate = exact_kfmc_rate(n_samples, m, kernel_degree=q, **surfaces)

    observed = n_samples * binom(rate * m + q, q)

    every, rank = comb(m + q, q), u * comb(d + p * q, p * q)
    rank = min(rank, (n_samples + every) / 2)  # as in freedom
    assert observed == pytest.approx(rank * (n_samples + every - rank))


@pytest.mark.parametrize("surfaces", [CURVED, FLAT])
def test_the_exact_rate_is_lower_below_1_and_higher_above(surfaces):
    assert exact_kfmc_rate(300, 20, **surfaces) < kfmc_rate(300, 20, **surfaces) - 0.02
    assert exact_kfmc_rate(20, 20, **surfaces) > kfmc_rate(20, 20, **surfaces) > 1


def test_the_approximation_of_equation_36_requires_many_observed_entries_not_a_small_degree():
    """Equations 70 and 71: C(rho m + q, q) / C(m + q, q) is about rho^q if rho m is well above q.

    One quadratic surface, degree 2, samples without end: four observed entries have the 15
    monomials that determine a sample, in 5 features or in 1000; the approximation asks for 5.47.
    """
    surface = {"latent": 2, "degree": 2}
    for m in (5, 20, 1000):
        assert m * exact_kfmc_rate(10**12, m, **surface) == pytest.approx(4, abs=1e-3)
    assert 1000 * kfmc_rate(10**12, 1000, **surface) == pytest.approx(30**0.5, rel=2e-3)
    many = {"latent": 50, "degree": 1}  # 50 observed entries instead of 4
    assert kfmc_rate(10**12, 1000, **many) / exact_kfmc_rate(10**12, 1000, **many) < 1.04


@pytest.mark.parametrize("rate", [low_rank_rate, kfmc_rate, exact_kfmc_rate])
@pytest.mark.parametrize("wrong", [{"latent": 0}, {"degree": 1.5}, {"manifolds": -1}])
def test_invalid_surfaces_are_named(rate, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be an integer"):
        rate(100, 10, **{"latent": 2, "degree": 2, **wrong})
