"""Schatten-p penalty of a kernel matrix, smoothed: value, weights and gradient.

With K = k(X, X), n x n, eigenvalues l_i of it, s = p/2 and a smoothing gamma > 0, the penalty is

    f(X) = tr (K + gamma I)^s - n gamma^s,

which for small gamma is the sum of the singular values of the images of the samples, each to the
power p: few directions in feature space, not a low-dimensional table. It is concave in K, so

    tr (W K(Y)) with W = s (K(X) + gamma I)^(s-1)

majorizes it at X up to a constant: iteratively reweighted least squares lowers tr (W K) and takes
new weights in turn. Here the penalty comes in units of its steepest slope, F = f / (2 s
gamma^(s-1)), so that no W is larger than I; 2 F is then close to what lies off the main directions.

For many samples, r of them serve as landmarks D: with C = k(X, D), G = k(D, D) and
N = C (G + ridge I)^-1 C' the rest E = K - N is never negative, and concavity gives

    f(X) <= tr (N + gamma I)^s - n gamma^s + s gamma^(s-1) tr E,

which takes O(n r) memory and is tight where the landmarks span all images. Lowering this bound,
in which the landmarks move with the samples that they are, lowers f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, IntArray
from hirank.core.objective import Basis
from hirank.core.threads import Workers, row_blocks
from hirank.kernels import Kernel

RIDGE = 1e-10  # added to G, over the mean of k(x, x): near copies among landmarks do no harm


class Evaluation(NamedTuple):
    """The penalty at a table X, n x m."""

    value: float  # F
    gradient: Array  # of F in all entries of X, n x m
    basis: Basis  # in which a sample's part of the least squares is k(x, x) - |root k(D, x)|^2


@dataclass(frozen=True)
class Penalty:
    """F for one kernel and smoothing.

    Parameters
    ----------
    kernel : Kernel
    gamma : float
        Smoothing, in units of k(x, x).
    power : float
        p, above 0 and at most 2.
    """

    kernel: Kernel
    gamma: float
    power: float = 0.5

    def evaluate_spectrum(self, eigenvalues: Array) -> float:
        """Return F of a kernel matrix with these eigenvalues."""
        s, g = self.power / 2, self.gamma
        return float(np.sum((eigenvalues / g + 1) ** s - 1) * g / (2 * s))

    def weights(self, eigenvalues: Array) -> Array:
        """Return the eigenvalues of W, between 0 and 1, that belong to those of K."""
        return (eigenvalues / self.gamma + 1) ** (self.power / 2 - 1)

    def exact(self, X: Array) -> Evaluation:
        """Return F and its gradient from all of K: O(n^2) memory, O(n^3) time."""
        bound = self.kernel.bind(X)
        K, slope = bound.rows(X)
        values, U = np.linalg.eigh(K)
        values = np.maximum(values, 0)
        w = self.weights(values)
        P = (U * w) @ U.T
        P *= slope
        gradient = bound.pull_rows(P, X)  # half of it comes from each argument, F is half of f
        root = (np.sqrt(_ratio(1 - w, values)) * U).T
        return Evaluation(
            self.evaluate_spectrum(values), gradient, RootBasis.with_root(self.kernel, X, root)
        )

    def with_landmarks(
        self, X: Array, landmarks: IntArray, workers: Workers | None = None
    ) -> Evaluation:
        """Return the bound by landmarks, indices of r rows: O(n r) memory, O(n r (m + r)) time."""
        kernel, D, workers = self.kernel, X[landmarks], workers or Workers()
        diag = kernel.diag(X)
        basis = Basis(kernel, D, RIDGE * float(diag.mean()))
        root, (n, m), r = basis.root, X.shape, len(D)
        cost = 1.0 * n * r * (m + 2 * r)
        blocks = row_blocks(n, r * X.itemsize, cost)

        def project(rows: slice) -> tuple[Array, Array, Array]:
            C, slope = basis.bound.rows(X[rows])
            V = C @ root.T  # N = V V'
            return V, slope, V.T @ V

        parts = [*workers.map(project, blocks, cost)]
        values, Q = np.linalg.eigh(_total([VV for _, _, VV in parts]))
        values = np.maximum(values, 0)
        kept = 1 - self.weights(values)
        value = self.evaluate_spectrum(values) + float(diag.sum() - values.sum()) / 2
        RQ = root.T @ Q
        inner = (Q * kept) @ RQ.T

        def pull(number: int) -> tuple[Array, Array]:
            V, slope, _ = parts[number]
            P, x = V @ inner, X[blocks[number]]
            P *= slope
            return basis.bound.pull_rows(P, x), basis.bound.pull_points(P, x)

        pulled = [*workers.map(pull, range(len(blocks)), cost)]
        gradient = -np.concatenate([of_rows for of_rows, _ in pulled])
        own = kernel.diag_gradient(X)
        if own is not None:
            gradient += own
        of_G = (RQ * (values * kept)) @ RQ.T
        gradient[landmarks] += basis.bound.pull_rows(of_G * basis.gram[1], D)
        gradient[landmarks] -= _total([of_points for _, of_points in pulled])
        root = np.sqrt(kept)[:, None] * RQ.T
        return Evaluation(value, gradient, RootBasis.with_root(kernel, D, root))

    def __call__(
        self, X: Array, landmarks: IntArray | None, workers: Workers | None = None
    ) -> Evaluation:
        """Return F and its gradient, or its bound by landmarks if there are any."""
        return self.exact(X) if landmarks is None else self.with_landmarks(X, landmarks, workers)


def _total(parts: Sequence[Array]) -> Array:
    """Return the sum of the parts, in order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class RootBasis(Basis):
    """A dictionary whose `root`, r x r, is given rather than computed from the ridge.

    The weights on the other side, M = s (Phi'Phi + gamma I)^(s-1) on features rather than samples,
    make the least squares fall apart into samples: phi(x)' M phi(x) is, in units, k(x, x) -
    |root k(D, x)|^2. That gives the curvature of each sample.
    """

    @classmethod
    def with_root(cls, kernel: Kernel, D: Array, root: Array) -> RootBasis:
        basis = cls(kernel, D, beta=0.0)
        basis.__dict__["root"] = root  # where the cached property keeps it
        return basis


def _ratio(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is lost in rounding."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 1e-13 * b.max(initial=0))


def pick_landmarks(X: Array, kernel: Kernel, r: int, enough: float = 0.0) -> IntArray:
    """Return at most r rows of X, n x m, whose images span the others well.

    Each is the row that is farthest from the span of those before: the pivots of a Cholesky
    factorization of K, of which only r columns are ever computed. They end where no image has a
    squared distance above `enough` from the span.
    """
    n, bound = len(X), kernel.bind(X)
    left = kernel.diag(X).astype(np.float64)
    enough = max(enough, 1e-12 * float(left.max()))
    columns = np.zeros((r, n))
    selected: list[int] = []
    for j in range(min(r, n)):
        i = int(left.argmax())
        if left[i] <= enough:
            break
        column = columns[j]
        np.subtract(bound.rows(X[i : i + 1])[0][0], columns[:j, i] @ columns[:j], out=column)
        column /= np.sqrt(left[i])
        left -= np.square(column)
        np.maximum(left, 0, out=left)
        left[i] = 0
        selected.append(i)
    return np.sort(np.array(selected or [0], dtype=np.intp))
