"""Which part of a table must be observed: the paper's rules of thumb ("On the sampling rate")."""

from __future__ import annotations

from hirank.estimators.validation import check_count
from hirank.theory.ranks import data_monomials, feature_dimension, feature_monomials


def freedom(rank: int, n_rows: int, n_columns: int) -> float:
    """Degrees of freedom of a matrix of a given rank, as a part of its entries.

    That is r (n + m - r) / (n m): 1 at full rank. A rank beyond that is what the structure would
    have in a larger matrix. The formula then first goes on above 1, and would fall again beyond
    (n + m) / 2; it is held there, so that more structure never asks for less.

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
    check_count("rank", rank, least=0)
    check_count("n_rows", n_rows)
    check_count("n_columns", n_columns)
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
    """The observed part that linear (low-rank) completion must exceed.

    ((m + n) r - r^2) / (m n) with r = u C(d + p, p): as many entries as the table has degrees of
    freedom. 1 or more means that no rate will do.

    Parameters
    ----------
    n_samples, n_features, latent, degree, manifolds, constant
        As in :func:`hirank.theory.data_rank`.

    Notes
    -----
    The paper caps r at min(m, n). Then the formula never exceeds 1 and is 1 for any table of full
    rank; as the rate must be larger, that is "more than 1" all the same, and so says the paper of
    its second example. Here r is not capped, so that a number above 1 tells how far beyond
    reach the table is: 1.45 in that example. Below full rank both are the same.

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
    """The observed part that KFMC should have.

    (r / n + r / M - r^2 / (n M))^(1 / q) with r = u C(d + p q, p q) and M = C(m + q, q): phi(X) has
    as many degrees of freedom, and one of its monomials is known if all of its up to q factors are.
    1 or more means that the samples are too few or the structure is too rich.

    Parameters
    ----------
    n_samples, n_features, latent, degree, manifolds, kernel_degree, constant
        As in :func:`hirank.theory.feature_rank`.

    Notes
    -----
    A rule of thumb, and a cautious one: phi(X) is determined by the far fewer numbers in X, so less
    may do. On the paper's synthetic tables KFMC works well below it.

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
