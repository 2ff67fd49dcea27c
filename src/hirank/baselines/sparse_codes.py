"""Sparse codes of rows with missing entries: what DLSR, SFMC and GroupSparse share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path

from hirank._typing import Array, BoolArray
from hirank.exceptions import InputError, ParameterError

ROUNDING = 1e-10  # part of the largest code below which a code is 0


@dataclass(frozen=True)
class SparseRows:
    """x ~ z D with sparse codes z by the observed entries of x: OSE-DLSR in the paper."""

    D: Array  # atoms, r x m
    l1: float

    def complete(self, X: Array, observed: BoolArray) -> Array:
        codes = refit(X, observed, self.D, lasso_codes(X, observed, self.D, self.l1))
        # Row by row: a product of all rows would round by batch.
        products = [z @ self.D for z in codes]
        return np.where(observed, X, np.reshape(products, (len(X), self.D.shape[1])))


def lasso_codes(X: Array, observed: BoolArray, D: Array, l1: float) -> Array:
    """Return codes z that minimize 1/2 |x - z D|^2 + l1 |z|_1 over observed entries of each row.

    X is n x m, D is r x m, the codes are n x r. By least angle regression: exact, without a
    tolerance, and each row by arithmetic of its own, so that no row affects another.
    """
    codes = np.zeros((len(X), len(D)))
    used = np.flatnonzero(np.any(D != 0, axis=1))
    if not len(used):
        return codes
    # lars_path has tolerances that are not relative: rows and atoms are brought to size 1.
    size = float(np.abs(D).max())
    atoms = D[used] / size
    with warnings.catch_warnings():
        # Atoms that are equal on a row's observed entries: one of them is left out.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for i, (x, seen) in enumerate(zip(X, observed, strict=True)):
            unit = float(np.abs(x[seen]).max(initial=0))
            if not unit:
                continue
            z = lars_path(
                np.asfortranarray(atoms[:, seen].T),
                x[seen] / unit,
                alpha_min=l1 / unit / size / int(seen.sum()),
                method="lasso",
                copy_X=False,
                return_path=False,
            )[2]
            # An atom that was dropped on the way leaves a trace of rounding.
            codes[i, used] = np.where(np.abs(z) > ROUNDING * np.abs(z).max(), z, 0) * (unit / size)
    return codes


def refit(X: Array, observed: BoolArray, D: Array, codes: Array) -> Array:
    """Return codes, n x r, by least squares on the atoms in use, without the shrinkage of l1.

    Rows that use more atoms than half of their observed entries keep their codes: least squares
    would fit whatever there is.
    """
    codes = codes.copy()
    for z, x, seen in zip(codes, X, observed, strict=True):
        support = np.flatnonzero(z)
        if 0 < len(support) <= seen.sum() // 2:
            z[support] = np.linalg.lstsq(D[support][:, seen].T, x[seen], rcond=None)[0]
    return codes


def improve_sparse(
    start: Array,
    residual: Callable[[Array], Array],
    pull: Callable[[Array], Array],
    l1: float,
    limit: float,
    steps: int,
) -> Array:
    """Take accelerated proximal steps on 1/2 |residual(Z)|^2 + l1 |Z|_1, for each row of Z alone.

    The gradient of the first term is pull(residual(Z)), and its curvature at most `limit`. A row
    whose objective has risen keeps its codes.
    """

    def objectives(Z: Array) -> Array:
        return np.sum(residual(Z) ** 2, axis=1) / 2 + l1 * np.abs(Z).sum(axis=1)

    t, before, ahead = 1.0, start, start
    for _ in range(steps):
        after = ahead - pull(residual(ahead)) / limit
        after = after - np.clip(after, -l1 / limit, l1 / limit)
        longer = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead = after + (t - 1) / longer * (after - before)
        t, before = longer, after
    return np.where((objectives(before) > objectives(start))[:, None], start, before)


def improve_codes(
    X: Array, observed: BoolArray, D: Array, Z: Array, l1: float, steps: int
) -> Array:
    """Return codes, n x r, after some accelerated proximal steps on all rows at once.

    For fits, where codes and dictionary change in turn and neither needs to be exact. X must be 0
    where not observed.
    """
    if not D.any():
        return np.zeros_like(Z)
    limit = float(np.linalg.norm(D, 2)) ** 2
    return improve_sparse(Z, lambda Z: observed * (Z @ D) - X, lambda R: R @ D.T, l1, limit, steps)


def conjugate_gradients(
    apply: Callable[[Array], Array],
    start: Array,
    residual: Array,
    steps: int,
    *,
    precondition: Callable[[Array], Array] = np.asarray,
    axis: int | None = None,
) -> Array:
    """Return `start` after some steps towards the solution of A x = b.

    `apply` multiplies by A, and `residual` is b - A start. With ``axis=0`` each column is a system
    of its own.
    """

    def ratio(a: Array, b: Array) -> Array:
        return np.divide(a, b, out=np.zeros_like(a), where=b > 0)

    x, solved = start, precondition(residual)
    direction, size = solved, np.sum(residual * solved, axis=axis)
    for _ in range(steps):
        image = apply(direction)
        step = ratio(size, np.sum(direction * image, axis=axis))
        x, residual = x + step * direction, residual - step * image
        solved = precondition(residual)
        after = np.sum(residual * solved, axis=axis)
        direction, size = solved + ratio(after, size) * direction, after
    return x


def measure_unit(X: Array, observed: BoolArray) -> float:
    """Return the root mean square of the observed entries of X, n x m; l1 is in units of it."""
    known = X[observed]
    size = float(np.abs(known).max()) if known.size else 0.0
    return size * float(np.sqrt(np.mean((known / size) ** 2))) if size else 1.0


class VanishedCodesError(InputError):
    """An `l1` that leaves no code."""

    def __init__(self, l1: float) -> None:
        super().__init__(l1)
        self.l1 = l1

    def __str__(self) -> str:
        return (
            f"l1={self.l1:g} is so large that all codes vanish, and every missing entry would be "
            "imputed with 0 in scaled units. Use a smaller l1; below 0.1 is usual."
        )


def count_atoms(n_components: int | str, shape: tuple[int, ...], per_feature: int) -> int:
    """Return the number of atoms for a table, n x m."""
    n, m = shape
    if n_components == "auto":
        return max(1, min(n, per_feature * m))
    if int(n_components) > n:
        raise ParameterError(
            "n_components",
            f"must be at most the number of rows with a value (n_samples={n}), which atoms start "
            f"from; got {n_components}. Use 'auto', or at most {n}.",
        )
    return int(n_components)
