"""Ranks of tables whose samples lie on polynomial surfaces: Lemma 1 and Theorem 2 of the paper.

(The theorem is the second statement of the paper, which prints it as Theorem 1: it counts theorems
apart from lemmas.)

A sample is x = f(s) with `latent` variables s and m polynomials f of at most degree `degree`; a
table may have samples of several such surfaces ("manifolds"), each with its own polynomials. A
polynomial kernel of degree q maps a sample to phi(x), all monomials of its m features up to degree
q. Linear completion requires the rank of X to be low, KFMC that of phi(X).
"""

from __future__ import annotations

from math import comb

from hirank._checks import check_counts


def feature_dimension(n_features: int, *, kernel_degree: int = 2) -> int:
    """Return the number of monomials of m features up to degree q: C(m + q, q).

    Parameters
    ----------
    n_features : int
        m
    kernel_degree : int, default=2
        q

    Examples
    --------
    >>> from hirank.theory import feature_dimension
    >>> feature_dimension(20, kernel_degree=2)
    231
    """
    check_counts(n_features=n_features, kernel_degree=kernel_degree)
    return comb(n_features + kernel_degree, kernel_degree)


def data_rank(
    n_samples: int,
    n_features: int,
    *,
    latent: int,
    degree: int,
    manifolds: int = 1,
    constant: bool = True,
) -> int:
    """Return the rank of the table itself: min(m, n, u C(d + p, p)), with probability 1.

    Lemma 1 of the paper for one surface, and its generalization for several. Latent variables and
    coefficients are assumed to have a density: signs, s = 1 or -1, have s^2 = 1 and a lower rank.

    Parameters
    ----------
    n_samples, n_features : int
        n and m
    latent : int
        d, the number of latent variables of each surface.
    degree : int
        p, the degree of the polynomials; 1 for linear subspaces.
    manifolds : int, default=1
        u, the number of surfaces.
    constant : bool, default=True
        Whether the polynomials have a constant term. Without one, as in
        :func:`hirank.datasets.polynomial_manifolds`, each surface has one monomial less, and the
        rank of linear subspaces is min(m, n, u d).

    Examples
    --------
    The paper's three synthetic tables:

    >>> from hirank.theory import data_rank
    >>> data_rank(100, 30, latent=3, degree=3, constant=False)
    19
    >>> data_rank(300, 30, latent=3, degree=3, manifolds=3, constant=False)
    30
    >>> data_rank(1000, 30, latent=3, degree=1, manifolds=10, constant=False)
    30
    """
    check_counts(n_samples=n_samples, n_features=n_features)
    return min(n_samples, n_features, data_monomials(latent, degree, manifolds, constant))


def feature_rank(
    n_samples: int,
    n_features: int,
    *,
    latent: int,
    degree: int,
    manifolds: int = 1,
    kernel_degree: int = 2,
    constant: bool = True,
) -> int:
    """Return the rank of phi(X): min(C(m + q, q), n, u C(d + p q, p q)).

    Theorem 2 of the paper for one surface, and its generalization for several.

    Parameters
    ----------
    n_samples, n_features : int
        n and m
    latent, degree, manifolds : int
        d, p and u, as in :func:`data_rank`.
    kernel_degree : int, default=2
        q, the degree of the polynomial kernel.
    constant : bool, default=True
        As in :func:`data_rank`. Surfaces without a constant term all pass through x = 0, so they
        share the direction phi(0): with u of them the rank is at most u (C(d + p q, p q) - 1) + 1.

    Notes
    -----
    The number is an upper bound. It is the rank if the features span all polynomials of degree p,
    and in nearly all other cases. It is too large, for example, for cubic curves in two dimensions
    with a kernel of degree 3 (9 instead of 10), and where surfaces cannot be in general position:
    two planes in three dimensions share a line (docs/notes/theory.md).

    Examples
    --------
    The paper's example of a table of high rank with low rank in feature space, 0.75 and 0.225 of
    what is possible:

    >>> from hirank.theory import data_rank, feature_rank
    >>> data_rank(200, 20, latent=2, degree=4) / 20
    0.75
    >>> feature_rank(200, 20, latent=2, degree=4, kernel_degree=2) / 200
    0.225
    """
    check_counts(n_samples=n_samples)
    most = feature_dimension(n_features, kernel_degree=kernel_degree)
    monomials = feature_monomials(latent, degree, manifolds, kernel_degree, constant)
    return min(n_samples, most, monomials)


def data_monomials(latent: int, degree: int, manifolds: int, constant: bool) -> int:
    """Return the dimension that the surfaces span in a large table: u C(d + p, p)."""
    check_counts(latent=latent, degree=degree, manifolds=manifolds)
    return manifolds * (comb(latent + degree, degree) - (not constant))


def feature_monomials(
    latent: int, degree: int, manifolds: int, kernel_degree: int, constant: bool
) -> int:
    """Return the dimension that they span in feature space: u C(d + p q, p q)."""
    check_counts(latent=latent, degree=degree, manifolds=manifolds, kernel_degree=kernel_degree)
    each = comb(latent + degree * kernel_degree, latent)
    return manifolds * each if constant else manifolds * (each - 1) + 1
