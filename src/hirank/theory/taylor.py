"""The RBF kernel by polynomials of degree q, and its error: equation 37 of the paper.

    exp(-|x - y|^2 / (2 sigma^2)) = C sum_k t^k / k!,    t = x.y / sigma^2,
    C = exp(-(|x|^2 + |y|^2) / (2 sigma^2)).

The sum up to k = q has an error of at most |t|^(q + 1) / (q + 1)!, for all points and widths, and
its features are those of the RBF kernel up to degree q (docs/notes/theory.md).
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from scipy.special import factorial as factorials
from sklearn.utils import check_array

from hirank._checks import count, number
from hirank._typing import Array
from hirank.kernels import RBF
from hirank.theory.features import evaluate_monomials


def taylor_rbf(X: Any, Y: Any, *, sigma: float, degree: int) -> Array:
    """Return the RBF kernel of X and Y, n x r, by its Taylor polynomial of a degree q.

    Parameters
    ----------
    X, Y : array, n x m and r x m
        Complete tables. Moving both by one vector leaves the kernel as it is and changes the error:
        it is smallest with the origin amid the points.
    sigma : float
        The length scale of :class:`hirank.kernels.RBF`.
    degree : int
        q, at least 0.

    Examples
    --------
    >>> from hirank.theory import rbf_taylor_bound, taylor_rbf
    >>> x, y = [[1.0, 0.5]], [[0.5, 1.0]]
    >>> [float(taylor_rbf(x, y, sigma=1.5, degree=q)[0, 0].round(4)) for q in range(4)]
    [0.5738, 0.8288, 0.8854, 0.8938]
    >>> float(rbf_taylor_bound(x, y, sigma=1.5, degree=3)[0, 0].round(4))  # of 0.8948
    0.0015
    """
    t, scale = _exponents(X, Y, sigma, degree)
    term = total = np.ones_like(t)
    for k in range(1, degree + 1):
        term = term * t / k
        total = total + term
    return scale * total


def rbf_taylor_bound(X: Any, Y: Any, *, sigma: float, degree: int) -> Array:
    """Return an upper bound of the error of :func:`taylor_rbf`, n x r.

    That is max(C, k(x, y)) |t|^(q + 1) / (q + 1)!, by Lagrange's form of the remainder. As neither
    C nor k exceeds 1, it is at most the paper's c^(q + 1) / (q + 1)! with c = |t|. The paper
    requires c < 1; the bound holds without it, but falls with q only from q = |t| on.

    Parameters
    ----------
    X, Y, sigma, degree
        As in :func:`taylor_rbf`.

    Examples
    --------
    >>> from hirank.theory import rbf_taylor_bound
    >>> [float(rbf_taylor_bound([[2.0]], [[2.0]], sigma=1.0, degree=q)[0, 0].round(3))
    ...  for q in (2, 4, 8, 16)]
    [10.667, 8.533, 0.722, 0.0]
    """
    t, scale = _exponents(X, Y, sigma, degree)
    largest = scale * np.maximum(1, np.exp(t))
    return largest * np.abs(t) ** (degree + 1) / factorial(degree + 1)


def rbf_features(X: Any, *, sigma: float, degree: int) -> Array:
    """Return the features of the RBF kernel up to a degree q, n x C(m + q, q).

    The feature of the monomial x^mu is exp(-|x|^2 / (2 sigma^2)) x^mu / (sigma^|mu| sqrt(mu!)).
    Inner products of these features are :func:`taylor_rbf`, and what is left out has the squared
    length of its error at x = y: less than c^(q + 1) / (q + 1)! for c = |x|^2 / sigma^2.

    Parameters
    ----------
    X : array, n x m
        A complete, small table.
    sigma, degree
        As in :func:`taylor_rbf`.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.theory import rbf_features, taylor_rbf
    >>> X = np.array([[1.0, 0.5], [0.0, -1.0]])
    >>> phi = rbf_features(X, sigma=2.0, degree=3)
    >>> phi.shape
    (2, 10)
    >>> np.allclose(phi @ phi.T, taylor_rbf(X, X, sigma=2.0, degree=3))
    True
    """
    _check(sigma, degree)
    table = check_array(X, dtype=np.float64) / sigma
    monomials, powers = evaluate_monomials(table, degree, constant=1.0)
    scale = np.exp(-np.einsum("ij,ij->i", table, table) / 2)
    return scale[:, None] * monomials / np.sqrt(factorials(powers[:, 1:]).prod(axis=1))


def _exponents(X: Any, Y: Any, sigma: float, degree: int) -> tuple[Array, Array]:
    """Return t and C, n x r."""
    _check(sigma, degree)
    x, y = (check_array(table, dtype=np.float64) for table in (X, Y))
    origin, kernel = np.zeros((1, x.shape[1])), RBF(float(sigma))
    scale = kernel.matrix(x, origin) * kernel.matrix(y, origin).T
    return x @ y.T / sigma**2, scale


def _check(sigma: float, degree: int) -> None:
    number(above=0)("sigma", sigma)
    count(0)("degree", degree)
