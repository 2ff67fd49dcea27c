"""The share of a table that must be observed: the paper's rules ("On the sampling rate")."""

from __future__ import annotations

from math import prod

from scipy.optimize import brentq

from hirank._checks import check_counts, count
from hirank.theory.ranks import data_monomials, feature_dimension, feature_monomials


def freedom(rank: int, n_rows: int, n_columns: int) -> float:
    """Return the degrees of freedom of a matrix of a given rank, as a share of its entries.

    That is r (n + m - r) / (n m), which is 1 at full rank. A larger rank is that of the structure
    in a larger matrix: the result exceeds 1, and stays the same from r = (n + m) / 2 on, where the
    formula would fall again.

    Parameters
    ----------
    rank : int
    n_rows, n_columns : int

    Examples
    --------
    >>> from hirank.theory import freedom
    >>> freedom(5, 100, 20), freedom(20, 100, 20)
    (0.2875, 1.0)
    """
    count(0)("rank", rank)
    check_counts(n_rows=n_rows, n_columns=n_columns)
    r = min(rank, (n_rows + n_columns) / 2)
    return r * (n_rows + n_columns - r) / (n_rows * n_columns)


def low_rank_rate(
    n_samples: int,
    n_features: int,
    *,
    latent: int,
    degree: int,
    manifolds: int = 1,
    constant: bool = True,
) -> float:
    """Return the observed share that linear (low-rank) completion must exceed.

    ((m + n) r - r^2) / (m n) with r = u C(d + p, p): as many entries as the table has degrees of
    freedom. From 1 on, no share is enough.

    Parameters
    ----------
    n_samples, n_features, latent, degree, manifolds, constant
        As in :func:`hirank.theory.data_rank`.

    Notes
    -----
    The paper limits r to min(m, n), so that the formula is 1 for any table of full rank ("more than
    1" in its second example, since the rate must be larger). Here r is not limited: a number above
    1, such as 1.45 in that example, shows how far out of reach the table is. Below full rank both
    are the same.

    Examples
    --------
    The paper's examples: 0.91, and more than 1.

    >>> from hirank.theory import low_rank_rate
    >>> round(low_rank_rate(300, 20, latent=2, degree=2, manifolds=3), 2)
    0.91
    >>> low_rank_rate(300, 20, latent=2, degree=1, manifolds=10)
    1.45
    """
    rank = data_monomials(latent, degree, manifolds, constant)
    return freedom(rank, n_samples, n_features)


def kfmc_rate(
    n_samples: int,
    n_features: int,
    *,
    latent: int,
    degree: int,
    manifolds: int = 1,
    kernel_degree: int = 2,
    constant: bool = True,
) -> float:
    """Return the observed share that KFMC should have.

    (r / n + r / M - r^2 / (n M))^(1 / q) with r = u C(d + p q, p q) and M = C(m + q, q): phi(X) has
    as many degrees of freedom, and one of its monomials is observed if all of its up to q factors
    are. From 1 on, there are too few samples or too many dimensions.

    Parameters
    ----------
    n_samples, n_features, latent, degree, manifolds, kernel_degree, constant
        As in :func:`hirank.theory.feature_rank`.

    Notes
    -----
    The rule is cautious, since phi(X) is determined by the far fewer numbers in X. On the paper's
    synthetic tables, KFMC recovers well below this share.

    Examples
    --------
    >>> from hirank.theory import kfmc_rate
    >>> round(kfmc_rate(300, 20, latent=2, degree=2, manifolds=3), 2)
    0.56
    >>> round(kfmc_rate(300, 20, latent=2, degree=1, manifolds=10), 2)
    0.64
    """
    rank = feature_monomials(latent, degree, manifolds, kernel_degree, constant)
    most = feature_dimension(n_features, kernel_degree=kernel_degree)
    return freedom(rank, n_samples, most) ** (1 / kernel_degree)


def exact_kfmc_rate(
    n_samples: int,
    n_features: int,
    *,
    latent: int,
    degree: int,
    manifolds: int = 1,
    kernel_degree: int = 2,
    constant: bool = True,
) -> float:
    """Return the observed share at which phi(X) has as many observed entries as unknowns.

    A sample with rho m observed entries has C(rho m + q, q) observed monomials. The rate rho solves
    C(rho m + q, q) / C(m + q, q) = r / n + r / M - r^2 / (n M). The paper replaces the left side by
    rho^q, which gives :func:`kfmc_rate`. As the left side is larger for rho below 1, the exact rate
    is lower there; above 1 it is higher.

    Parameters
    ----------
    n_samples, n_features, latent, degree, manifolds, kernel_degree, constant
        As in :func:`hirank.theory.feature_rank`.

    Examples
    --------
    The paper's examples, 0.56 and 0.64 with the approximation:

    >>> from hirank.theory import exact_kfmc_rate
    >>> round(exact_kfmc_rate(300, 20, latent=2, degree=2, manifolds=3), 2)
    0.53
    >>> round(exact_kfmc_rate(300, 20, latent=2, degree=1, manifolds=10), 2)
    0.61
    """
    m, q = n_features, kernel_degree
    rate = kfmc_rate(
        n_samples,
        m,
        latent=latent,
        degree=degree,
        manifolds=manifolds,
        kernel_degree=q,
        constant=constant,
    )

    def excess(rho: float) -> float:
        return prod((rho * m + i) / (m + i) for i in range(1, q + 1)) - rate**q

    # Each factor is at least rho m / (m + q), so the excess is not negative at the second end.
    return float(brentq(excess, 0, max(1, rate) * (m + q) / m))
