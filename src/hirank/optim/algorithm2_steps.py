"""The arithmetic of Algorithm 2 of the paper, in NumPy; the compiled core has the same.

Rows are samples. x is B x w, a mini-batch with a column of ones in front, w = m + 1: with it a
product carries a constant or a sum along. F = [1, D] and E are r x w, z is B x r, G = k(D, D) and
C = (G + beta I)^-1 are r x r. A kernel comes as `degree`, 0 for the RBF kernel, and `constant`,
which is 1 / sigma^2 or the offset of the polynomial kernel; E contains what else depends on it.

`sweep` is what the compiled core replaces (``_compiled/algorithm2.cpp``): see docs/compiled.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hirank._typing import Array, BoolArray

NORM_TOL = 1e-6
NORM_ITERATIONS = 100
MIN_RIDGE = 1e-10  # over the largest k(d, d): with 1e-12, rounding made codes diverge
MAX_KERNEL = 1e100  # products of larger values overflow


def times(A: Array, B: Array, out: Array) -> None:
    """Compute A B; BLAS has a faster product for a single row."""
    if len(A) == 1:
        np.dot(A[0], B, out[0])
    else:
        np.dot(A, B, out)


def kernel_rows(x: Array, E: Array, degree: int, constant: float, K: Array, S: Array) -> None:
    """Compute the kernel K of x and D and its slope S, B x r; for RBF, they must be one array."""
    times(x, E.T, K)
    if degree == 0:
        for b in range(len(x)):
            K[b] -= constant / 2 * np.dot(x[b, 1:], x[b, 1:])
        np.exp(K, K)
        return
    S[:] = degree
    for _ in range(degree - 1):
        S *= K
    K *= S
    K *= 1 / degree


def own_kernel(row: Array, exponent: int, constant: float) -> Any:
    """Return (|x|^2 + c)^exponent for a row [1, x]: k(x, x) of a polynomial kernel."""
    return (np.dot(row[1:], row[1:]) + constant) ** exponent


def moves(change: Array, tol: float) -> bool:
    """Return whether an entry of a vector is at least `tol` in size.

    A loop, since one of the first entries is, as a rule, while a pass is not finished.
    """
    for value in change:  # noqa: SIM110
        if abs(value) >= tol:
            return True
    return False


def spectral_norm(H: Array) -> float:
    """Return the largest singular value of a symmetric H, r x r, by the power method.

    As MATLAB's normest does it, tolerance included: the paper's steps were computed with it.

    Examples
    --------
    >>> round(spectral_norm(np.diag([1.0, 3.0])), 4)
    3.0
    """
    v = np.abs(H).sum(axis=1)
    norm = float(np.sqrt(np.dot(v, v)))
    if not norm > 0:
        return 0.0
    v /= norm
    for _ in range(NORM_ITERATIONS):
        before = norm
        u = np.dot(H, v)
        v = np.dot(H, u)
        length = np.sqrt(np.dot(v, v))
        if not length > 0:
            return 0.0
        norm = float(length / np.sqrt(np.dot(u, u)))
        v /= length
        if not abs(norm - before) > NORM_TOL * norm:
            break
    return norm


def inverse(G: Array, beta: float) -> Array:
    """Return C, or an array of NaN where the numbers in G are too large or not finite."""
    largest = G.diagonal().max()
    ridge = max(beta, MIN_RIDGE * largest)
    if not (np.isfinite(G.sum()) and ridge > 0 and max(ridge, largest) < MAX_KERNEL):
        return np.full_like(G, np.nan)
    try:
        return np.linalg.inv(G + ridge * np.eye(len(G)))
    except np.linalg.LinAlgError:
        return np.full_like(G, np.nan)


def complete_batch(
    x: Array,
    z: Array,
    missing: Array,
    E: Array,
    F: Array,
    C: Array,
    degree: int,
    constant: float,
    max_inner: int,
    tol: float,
    momentum: float,
    relaxation: float,
) -> Array:
    """Update codes and missing entries in turn until neither changes.

    x is updated in place; the codes, B x r, are returned.

    `missing` is B x w: 1.0 where x may move, else 0.0.
    """
    # Arrays that are written again and again, and loops over the few rows of a batch: with whole
    # expressions an iteration for one row takes twice the time.
    K, P, codes, before = np.empty_like(z), np.empty_like(z), z.copy(), np.empty_like(z)
    S = K if degree == 0 else np.empty_like(z)
    step, pulled = np.zeros_like(x), np.empty_like(x)
    weights = np.empty(len(x))
    for _ in range(max_inner):
        before, codes = codes, before
        kernel_rows(x, E, degree, constant, K, S)
        times(K, C, codes)
        np.multiply(codes, S, P)
        times(P, F, pulled)
        mean = 0.0
        for b, row in enumerate(x):
            if degree == 0:
                weights[b] = pulled[b, 0]
            else:
                weights[b] = degree * own_kernel(row, degree - 1, constant)
            mean += abs(weights[b]) / len(x)
        moving = False
        for b, row in enumerate(x):
            # The samples of a batch share a step length with the RBF kernel.
            curvature = relaxation * (weights[b] if degree else mean)
            rate = 1 / curvature if curvature > 0 else 0.0
            last, change = step[b], pulled[b]
            last *= momentum
            change *= rate
            last -= change
            np.multiply(row, rate * weights[b], change)
            last += change
            np.multiply(last, missing[b], change)
            row -= change
            moving = moving or moves(change, tol)
        if not moving:
            np.subtract(codes, before, P)
            if not moves(P.reshape(-1), tol):
                break
    return codes


def sample_costs(x: Array, E: Array, C: Array, degree: int, constant: float) -> Array:
    """Return the cost of each sample with its best codes, length B.

    It is k(x, x) / 2 - k(x, D) C k(D, x) / 2, the distance from phi(x) to the span of phi(D).
    """
    K, product = np.empty((len(x), len(C))), np.empty((len(x), len(C)))
    kernel_rows(x, E, degree, constant, K, K if degree == 0 else np.empty_like(K))
    times(K, C, product)
    own = [own_kernel(row, degree, constant) if degree else 1.0 for row in x]
    return (own - (K * product).sum(axis=1)) / 2


def dictionary_step(
    x: Array,
    z: Array,
    E: Array,
    F: Array,
    G: Array,
    degree: int,
    constant: float,
    alpha: float,
    relaxation: float,
) -> Array:
    """Return the step of F before momentum, r x w: its gradient over the norm of its curvature.

    G contains the slope of k(D, D). sigma^2 is left out of the gradient and the curvature.
    """
    r, K = len(F), np.empty_like(z)
    S = K if degree == 0 else np.empty_like(z)
    kernel_rows(x, E, degree, constant, K, S)
    H = np.dot(z.T, z)
    diagonal = H.reshape(-1)[:: r + 1]
    diagonal += alpha
    H *= G
    gradient = np.dot(H, F)
    pulled = np.dot((S * z).T, x)
    if degree == 0:
        # The authors take the size of the row sums of H here. The paper keeps their sign.
        diagonal -= np.abs(gradient[:, 0])
        diagonal += pulled[:, 0]
    gradient -= pulled
    if degree == 0:
        gradient -= gradient[:, :1].copy() * F
    norm = relaxation * spectral_norm(H)
    gradient *= 1 / norm if norm > 0 else 0.0
    return gradient


def with_ones(A: Array, center: Array) -> Array:
    """Return [1, A - center]."""
    return np.hstack([np.ones((len(A), 1)), A - center])


def sweep(
    X: Array,
    Z: Array,
    observed: BoolArray,
    D: Array,
    last: Array,
    costs: Array,
    degree: int,
    constant: float,
    beta: float,
    alpha: float,
    batch_size: int,
    max_inner: int,
    tol: float,
    momentum: float,
    relaxation: float,
) -> int:
    """Pass over the rows of X once, and return how many were rejected.

    X, Z, D and its buffer are updated in place.

    Known entries of X may come back with another rounding: they are for the caller to restore.
    `costs`, n x 2, receives the cost of each sample and alpha / 2 tr k(D, D), both with the D that
    it was imputed with.
    """
    (n, m), r = X.shape, len(D)
    G = np.empty((r, r))
    S = G if degree == 0 else np.empty((r, r))
    rejected = 0
    for start in range(0, n, batch_size):
        part = slice(start, min(start + batch_size, n))
        # Distances do not depend on the origin, their digits do.
        center = D.mean(axis=0) if degree == 0 else np.zeros(m)
        F, x = with_ones(D, center), with_ones(X[part], center)
        missing = with_ones(~observed[part], np.zeros(m))
        missing[:, 0] = 0
        E = F.copy()
        if degree == 0:
            # -|x - d|^2 / 2 = [1, x].[-|d|^2 / 2, d] - |x|^2 / 2
            E[:, 0] = -(F[:, 1:] ** 2).sum(axis=1) / 2
            E *= constant
        else:
            E[:, 0] = constant
        kernel_rows(F, E, degree, constant, G, S)
        C = inverse(G, beta)
        inner = (degree, constant, max_inner, tol, momentum, relaxation)
        z = complete_batch(x, Z[part], missing, E, F, C, *inner)
        step = dictionary_step(x, z, E, F, S, degree, constant, alpha, relaxation)
        delta = momentum * last + step[:, 1:]
        if not np.isfinite(x.sum() + z.sum() + delta.sum()):
            rejected += len(x)
            continue
        costs[part, 0] = sample_costs(x, E, C, degree, constant)
        costs[part, 1] = alpha / 2 * np.trace(G)
        X[part], Z[part], last[:] = x[:, 1:] + center, z, delta
        D -= delta
    return rejected
