"""Explicit features of the polynomial kernel, and Lemma 2 of the paper: phi(X) = phi(D) Z.

Rows are samples here, so Lemma 2 reads phi(X) = Z phi(D).
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.special import factorial
from sklearn.utils import check_array

from hirank._typing import Array, IntArray
from hirank.kernels import Poly

RANK_TOL = 1e-9
"""Relative size of a row of phi(X) that is not yet in the span of the others."""


def polynomial_features(X: Any, kernel: Poly) -> Array:
    """Return phi(X), n x C(m + q, q), such that phi(X) phi(Y)' is the kernel of X and Y.

    The features are the monomials of the m columns up to degree q, each multiplied by the root of
    its multinomial coefficient and of the power of the offset that completes it to degree q.

    Parameters
    ----------
    X : array, n x m
        A complete table. The number of features grows fast: use it on small ones.
    kernel : Poly
        With degree q. With offset 0, monomials of less than degree q are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import Poly
    >>> from hirank.theory import polynomial_features
    >>> polynomial_features([[3.0]], Poly(2, 1.0)).round(2)  # 1, sqrt(2) x, x^2
    array([[1.  , 4.24, 9.  ]])
    >>> X = np.array([[1.0, 2.0], [0.5, -1.0]])
    >>> phi = polynomial_features(X, Poly(3, 0.5))
    >>> np.allclose(phi @ phi.T, Poly(3, 0.5).matrix(X, X))
    True
    """
    table = check_array(X, dtype=np.float64)
    monomials, powers = evaluate_monomials(table, kernel.degree, constant=kernel.offset**0.5)
    return monomials * np.sqrt(factorial(kernel.degree) / factorial(powers).prod(axis=1))


def evaluate_monomials(X: Array, degree: int, constant: float) -> tuple[Array, IntArray]:
    """Return all monomials of degree q of [constant, X], n x M, and their powers, M x (m + 1)."""
    n, m = X.shape
    factors = np.hstack([np.full((n, 1), constant), X])
    selected = np.array([*combinations_with_replacement(range(m + 1), degree)], dtype=np.intp)
    monomials = np.ones((n, len(selected)))
    for column in selected.T:
        monomials *= factors[:, column]
    powers = (selected[:, :, None] == np.arange(m + 1)).sum(axis=1)
    return monomials, powers


def factor_features(X: Any, kernel: Poly) -> tuple[Array, Array]:
    """Return rows D of X, r x m, and codes Z, n x r, with phi(X) = Z phi(D): Lemma 2 of the paper.

    The number of rows r is the rank of phi(X) (:func:`hirank.theory.feature_rank`). The rows are
    those that a pivoted QR decomposition of the features takes first.

    Parameters
    ----------
    X : array, n x m
        A complete, small table.
    kernel : Poly

    Examples
    --------
    Thirty points on a parabola, whose quadratic features have rank 5:

    >>> import numpy as np
    >>> from hirank.kernels import Poly
    >>> from hirank.theory import factor_features, polynomial_features
    >>> s = np.linspace(-1, 1, 30)
    >>> X, kernel = np.column_stack([s, s**2]), Poly(2, 1.0)
    >>> D, Z = factor_features(X, kernel)
    >>> D.shape
    (5, 2)
    >>> phi = polynomial_features(X, kernel)
    >>> np.allclose(Z @ polynomial_features(D, kernel), phi)
    True
    """
    table = check_array(X, dtype=np.float64)
    phi = polynomial_features(table, kernel)
    R, order = qr(phi.T, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = max(1, int(np.sum(sizes > RANK_TOL * sizes[0])))
    Z = np.empty((len(table), rank))
    Z[order] = solve_triangular(R[:rank, :rank], R[:rank]).T
    return table[order[:rank]], Z
