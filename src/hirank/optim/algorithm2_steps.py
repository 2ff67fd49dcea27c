"""The arithmetic of Algorithm 2 of the paper, in the part of NumPy that Numba compiles.

Rows are samples. x is B x w, a mini-batch with a column of ones in front: with it a product carries
a constant or a sum along. Columns of zeros follow, to a multiple of 8, which BLAS likes best.
F = [1, D, 0] and E are r x w, z is B x r, G = k(D, D) and C = (G + beta I)^-1 are r x r. A kernel
comes as `degree`, 0 for the RBF kernel, and `constant`, which is 1 / sigma^2 or the offset of the
polynomial kernel; E holds what else depends on it.

The inner loop allocates nothing, and its products are those of BLAS: loops written out would be a
little faster, and would make the plain form ten times slower. Array operations are the ones that
Numba compiles in little time: see docs/notes/algorithm2.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hirank.optim.compiled import compiled

NORM_TOL = 1e-6
NORM_ITERATIONS = 100
MIN_RIDGE = 1e-10  # over the largest k(d, d): with 1e-12, rounding made codes diverge
MAX_KERNEL = 1e100  # products of larger values overflow


@compiled
def times(A: Any, B: Any, out: Any) -> None:
    """Compute A B; BLAS has a faster product for a single row."""
    if A.shape[0] == 1:
        np.dot(A[0], B, out[0])
    else:
        np.dot(A, B, out)


@compiled
def kernel_rows(x: Any, E: Any, degree: int, constant: float, K: Any, S: Any) -> None:
    """Compute the kernel K of x and D and its slope S, B x r; for RBF, they must be one array."""
    times(x, E.T, K)
    if degree == 0:
        for b in range(x.shape[0]):
            row = K[b]
            row -= constant / 2 * np.dot(x[b, 1:], x[b, 1:])
        np.exp(K, K)
        return
    np.multiply(K, 0, S)
    S += degree
    for _ in range(degree - 1):
        S *= K
    K *= S
    K *= 1 / degree


@compiled
def moves(change: Any, tol: float) -> bool:
    """Return whether an entry of a vector is at least `tol` in size; often one of the first is."""
    for value in change:  # noqa: SIM110
        if abs(value) >= tol:
            return True
    return False


@compiled
def spectral_norm(H: Any) -> float:
    """Return the largest singular value of a symmetric H, r x r, by the power method.

    As MATLAB's normest does it, tolerance included: the paper's steps were computed with it.
    """
    v = np.dot(np.abs(H), np.ones(H.shape[0]))
    norm = np.sqrt(np.dot(v, v))
    if not norm > 0:
        return 0.0
    v /= norm
    u = np.empty_like(v)
    for _ in range(NORM_ITERATIONS):
        before = norm
        np.dot(H, v, u)
        np.dot(H, u, v)
        length = np.sqrt(np.dot(v, v))
        if not length > 0:
            return 0.0
        norm = length / np.sqrt(np.dot(u, u))
        v /= length
        if not abs(norm - before) > NORM_TOL * norm:
            break
    return norm


@compiled
def inverse(G: Any, beta: float) -> Any:
    """Return C, or an array of NaN where the numbers in G are too large or not finite."""
    r = G.shape[0]
    C = G.copy()
    diagonal = C.reshape(-1)[:: r + 1]
    largest = np.max(diagonal)
    ridge = max(beta, MIN_RIDGE * largest)
    if not (np.isfinite(np.sum(G)) and ridge > 0 and max(ridge, largest) < MAX_KERNEL):
        C *= np.nan
        return C
    diagonal += ridge
    # Numba's inverse is stored by columns; products with C want one layout that it can infer.
    np.add(np.linalg.inv(C), 0, C)
    return C


@compiled
def complete_batch(
    x: Any,
    z: Any,
    missing: Any,
    E: Any,
    F: Any,
    C: Any,
    degree: int,
    constant: float,
    max_inner: int,
    tol: float,
    momentum: float,
    relaxation: float,
) -> Any:
    """Update codes and missing entries in turn until neither changes.

    x is updated in place; the codes, B x r, are returned.

    `missing` is B x w: 1.0 where x may move, else 0.0.
    """
    B = x.shape[0]
    K, P, codes, before = np.empty_like(z), np.empty_like(z), z.copy(), np.empty_like(z)
    S = K if degree == 0 else np.empty_like(z)
    step, pulled = np.zeros_like(x), np.empty_like(x)
    weights = np.empty(B)
    for _ in range(max_inner):
        before, codes = codes, before
        kernel_rows(x, E, degree, constant, K, S)
        times(K, C, codes)
        np.multiply(codes, S, P)
        times(P, F, pulled)
        mean = 0.0
        for b in range(B):
            if degree == 0:
                weights[b] = pulled[b, 0]
            else:
                weights[b] = degree * (np.dot(x[b, 1:], x[b, 1:]) + constant) ** (degree - 1)
            mean += abs(weights[b]) / B
        moving = False
        for b in range(B):
            curvature = relaxation * (mean if degree == 0 else weights[b])
            rate = 1 / curvature if curvature > 0 else 0.0
            row, last, change = x[b], step[b], pulled[b]
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


@compiled
def sample_costs(
    x: Any, E: Any, C: Any, degree: int, constant: float, size: float, out: Any
) -> None:
    """Compute the cost of each sample with its best codes, and write it and `size` to out, B x 2.

    It is k(x, x) / 2 - k(x, D) C k(D, x) / 2, the distance from phi(x) to the span of phi(D).
    """
    B, r = x.shape[0], C.shape[0]
    K, product = np.empty((B, r)), np.empty((B, r))
    S = K if degree == 0 else np.empty((B, r))
    kernel_rows(x, E, degree, constant, K, S)
    times(K, C, product)
    for b in range(B):
        own = 1.0
        if degree > 0:
            own = (np.dot(x[b, 1:], x[b, 1:]) + constant) ** degree
        out[b, 0] = (own - np.dot(K[b], product[b])) / 2
        out[b, 1] = size


@compiled
def dictionary_step(
    x: Any,
    z: Any,
    E: Any,
    F: Any,
    G: Any,
    degree: int,
    constant: float,
    alpha: float,
    relaxation: float,
) -> Any:
    """Return the step of F before momentum, r x w: its gradient over the norm of its curvature.

    G holds the slope of k(D, D). sigma^2 is left out of the gradient and the curvature.
    """
    r = F.shape[0]
    K = np.empty_like(z)
    S = K if degree == 0 else np.empty_like(z)
    kernel_rows(x, E, degree, constant, K, S)
    S *= z
    H = np.dot(z.T, z)
    diagonal = H.reshape(-1)[:: r + 1]
    diagonal += alpha
    H *= G
    gradient = np.dot(H, F)
    pulled = np.dot(S.T, x)
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


@compiled
def with_ones(A: Any, center: Any, width: int) -> Any:
    """Return [1, A - center, 0], for A of m columns and `width` in all."""
    wide = np.zeros((A.shape[0], width))
    column = wide[:, 0]
    column += 1
    np.subtract(A, center, wide[:, 1 : A.shape[1] + 1])
    return wide


@compiled
def sweep(
    X: Any,
    Z: Any,
    missing: Any,
    D: Any,
    last: Any,
    costs: Any,
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

    `missing` is n x w, for the other columns as well. Known entries of X may come back with
    another rounding: they are for the caller to restore. `costs`, n x 2, receives the cost of each
    sample and alpha / 2 tr k(D, D), both with the D that it was imputed with.
    """
    (n, m), r, width = X.shape, D.shape[0], missing.shape[1]
    G = np.empty((r, r))
    S = G if degree == 0 else np.empty((r, r))
    center = np.zeros(m)
    rejected = 0
    for start in range(0, n, batch_size):
        stop = min(start + batch_size, n)
        if degree == 0:  # distances do not depend on the origin, their digits do
            np.dot(np.ones(r), D, center)
            center /= r
        F, x = with_ones(D, center, width), with_ones(X[start:stop], center, width)
        E = F.copy()
        column = E[:, 0]
        if degree == 0:
            # -|x - d|^2 / 2 = [1, x].[-|d|^2 / 2, d] - |x|^2 / 2
            column *= 0
            column -= np.dot(E * E, np.ones(width)) / 2
            E *= constant
        else:
            column *= constant
        kernel_rows(F, E, degree, constant, G, S)
        C = inverse(G, beta)
        z = complete_batch(
            x,
            Z[start:stop],
            missing[start:stop],
            E,
            F,
            C,
            degree,
            constant,
            max_inner,
            tol,
            momentum,
            relaxation,
        )
        step = dictionary_step(x, z, E, F, S, degree, constant, alpha, relaxation)
        delta = momentum * last
        delta += step[:, 1 : m + 1]
        if not np.isfinite(np.sum(x) + np.sum(z) + np.sum(delta)):
            rejected += stop - start
            continue
        size = alpha / 2 * np.sum(G.reshape(-1)[:: r + 1])
        sample_costs(x, E, C, degree, constant, size, costs[start:stop])
        np.add(x[:, 1 : m + 1], center, X[start:stop])
        np.add(z, 0, Z[start:stop])
        np.add(delta, 0, last)
        D -= delta
    return rejected
