"""Completion of unions of subspaces by sparse self-expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.base import TableFit, TableImputer
from hirank.baselines.penalty_path import Begin, PenaltyPath
from hirank.baselines.sparse_codes import (
    SparseRows,
    VanishedCodesError,
    conjugate_gradients,
    improve_sparse,
    measure_unit,
)
from hirank.core.init import soft_impute
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.optim.loop import has_stalled
from hirank.optim.trace import Monitor

# More steps lower the objective and worsen the imputed values: docs/notes/baselines_sparse.md.
CODE_STEPS = 20  # accelerated steps for the codes between two steps for the missing entries
WORKING_SET = 64  # samples that a sample may use in one step, unless it uses more already
ENTRY_STEPS = 10  # iterations of conjugate gradients for the missing entries
CHUNK = 4_000_000  # numbers in the largest intermediate array


@dataclass(eq=False, repr=False)
class GroupSparse(TableImputer[SparseRows]):
    """Imputation by self-expression: each sample is a combination of few other samples.

    Minimizes 1/2 |X - C X|^2 + l1 sum_ij |c_ij| |x_j| over coefficients C (n_samples x n_samples,
    with zeros on the diagonal) and the missing entries of X. Samples of one subspace find each
    other, so that tables of full rank can be completed if their samples lie in many subspaces.

    Parameters
    ----------
    l1 : float or "auto", default="auto"
        Weight of the coefficients, in units of the root mean square of the scaled entries: where
        the path ends. ``"auto"`` holds out a few observed entries and takes the one that recovers
        them best.
    max_iter : int, default=10
        Steps for each l1 on the path, at most.
    tol : float, default=1e-4
        Steps for an l1 end when the objective falls by less than this fraction in one.
    random_state : int, RandomState or None, default=None
        Selects the entries that are held out.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`, but without scaling by default: centered features turn linear
        subspaces into affine ones. Use ``scale=True`` if features lie far from 0.

    Attributes
    ----------
    l1_ : float
    coefficients_ : array, n_samples_used x n_samples_used
        C, of the samples with an observed entry. ``abs(C) + abs(C).T`` is a similarity to cluster
        by.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`.

    Notes
    -----
    Elhamifar (2016) lifts the products of coefficients and missing entries to variables of their
    own: for each pair of samples i, j a group, whose norms are added up, and for each j a matrix of
    groups that ought to have rank one, which he relaxes to a nuclear norm. That takes n x n x m
    variables. Here rank one is kept exactly by using the factors, c_ij and x_j, as variables; a
    group is the vector c_ij x_j, its norm |c_ij| |x_j|. The problem is the smaller for it (n x n
    and n x m variables) and no longer convex: it starts from a linear completion and follows a path
    of falling l1. Coefficients (accelerated proximal steps) and missing entries (conjugate
    gradients) change in turn. Missing entries are first moved to the best fit alone; only where
    that raises the objective, with the group norms in the balance too: their pull towards 0, where
    followed throughout, ends at poorer completions.

    A step takes O(n^2 m) time, and the fit O(n^2) memory. ``transform`` gives new samples sparse
    codes in the completed samples of the fit, then refits them by least squares on those in use.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import GroupSparse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = GroupSparse(1e-3).fit_transform(X_missing)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    """

    l1: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 10
    tol: float = 1e-4
    random_state: int | np.random.RandomState | None = None
    scale: bool | str = False

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            details = {"l1": 0.0, "coefficients": np.zeros((len(X), len(X)))}
            return TableFit(X, SparseRows(X[:0], 1.0), StopReason.NOTHING_TO_FIT, details)
        unit = measure_unit(X, observed)
        known = np.where(observed, X, 0) / unit
        path, rng = ExpressionPath(self.max_iter, self.tol, monitor), make_rng(self.random_state)
        l1, solution = path.fit(known, observed, self.l1, rng)
        C = solution.state.C
        if len(X) > 1 and not C.any():
            raise VanishedCodesError(l1)
        filled = np.where(observed, X, unit * solution.state.X)
        sizes = np.linalg.norm(filled, axis=1, keepdims=True)
        model = SparseRows(filled / np.where(sizes > 0, sizes, 1), l1 * unit)
        return TableFit(filled, model, solution.reason, {"l1": l1, "coefficients": C})


@dataclass(frozen=True)
class Expression:
    """X ~ C X."""

    C: Array  # n x n, zeros on the diagonal
    X: Array  # n x m, completed
    objective: float = np.inf


@dataclass(frozen=True)
class ExpressionPath(PenaltyPath[Expression]):
    """Values of l1 in units of the root mean square of the entries."""

    penalties: ClassVar[tuple[float, ...]] = (0.12, 0.06, 0.03, 0.015, 0.007, 0.003, 0.0015)

    def begin(self, X: Array, observed: BoolArray) -> Begin[Expression]:
        start = Expression(np.zeros((len(X), len(X))), soft_impute(X, observed))
        return start, lambda l1: SelfExpression(~observed, l1, self.tol)

    def impute(self, state: Expression) -> Array:
        return state.X


@dataclass(frozen=True)
class SelfExpression:
    """Solver for one l1: coefficients and missing entries in turn."""

    missing: BoolArray  # n x m
    l1: float
    tol: float
    monotone: ClassVar[bool] = True

    def init(self, start: Expression) -> Expression:
        return replace(start, objective=np.inf)

    def step(self, state: Expression) -> Expression:
        C = improve_coefficients(state.C, state.X, self.l1)
        return Expression(C, *improve_entries(C, state.X, self.missing, self.l1))

    def terminate(self, state: Expression, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol)


def penalized_error(C: Array, X: Array, l1: float) -> float:
    """Return 1/2 |X - C X|^2 + l1 sum_ij |c_ij| |x_j|."""
    groups = np.abs(C).sum(axis=0) @ np.linalg.norm(X, axis=1)
    return float(np.sum((X - C @ X) ** 2) / 2 + l1 * groups)


def improve_coefficients(C: Array, X: Array, l1: float, working_set: int = WORKING_SET) -> Array:
    """Return coefficients, n x n, after some accelerated proximal steps.

    The steps are those for samples of unit size. Each row works on the samples that it uses and
    those most correlated with its residual, up to `working_set` in all: the others would stay at 0
    as a rule, and are reached by the next call if not.
    """
    n, m = X.shape
    sizes = np.linalg.norm(X, axis=1)
    sizes[sizes == 0] = 1
    U = X / sizes[:, None]
    if n == 1 or not U.any():
        return np.zeros_like(C)
    limit = float(np.linalg.norm(U, 2)) ** 2
    B = C * sizes
    size = max(1, CHUNK // (min(n, working_set) * m))
    for first in range(0, n, size):
        rows = np.arange(first, min(n, first + size))
        wanted = np.abs((X[rows] - B[rows] @ U) @ U.T)
        wanted[B[rows] != 0] = np.inf
        wanted[np.arange(len(rows)), rows] = -1
        count = min(n - 1, max(working_set, int(np.isinf(wanted).sum(axis=1).max())))
        selected = np.argpartition(-wanted, count - 1, axis=1)[:, :count]
        start = np.take_along_axis(B[rows], selected, axis=1)
        after = _improve_rows(start, U[selected], X[rows], l1, limit)
        B[rows] = 0
        B[rows[:, None], selected] = after
    return B / sizes


def _improve_rows(start: Array, atoms: Array, X: Array, l1: float, limit: float) -> Array:
    """Return codes, n x k, of rows X, n x m, each in atoms of its own, n x k x m."""
    return improve_sparse(
        start,
        lambda Z: (Z[:, None, :] @ atoms)[:, 0] - X,
        lambda R: (atoms @ R[:, :, None])[:, :, 0],
        l1,
        limit,
        CODE_STEPS,
    )


def improve_entries(C: Array, X: Array, missing: BoolArray, l1: float) -> tuple[Array, float]:
    """Return X, n x m, with missing entries that fit better, and the objective."""
    before, sizes = penalized_error(C, X, l1), np.linalg.norm(X, axis=1)
    # |x| <= (|x|^2 / s + s) / 2 with equality at s = |x|: a ridge that cannot raise the sum.
    ridge = l1 * np.abs(C).sum(axis=0) / np.where(sizes > 0, sizes, 1)
    for weights in (np.zeros(len(X)), ridge):
        best = _fit_entries(C, X, missing, weights)
        after = penalized_error(C, best, l1)
        if after <= before:
            return best, after
    return X, before


def _fit_entries(C: Array, X: Array, missing: BoolArray, ridge: Array) -> Array:
    """Minimize 1/2 |X - C X|^2 + 1/2 sum_j ridge_j |x_j|^2 over missing entries."""

    def apply(P: Array) -> Array:
        R = P - C @ P
        return np.where(missing, R - C.T @ R + ridge[:, None] * P, 0)

    return conjugate_gradients(apply, X, -apply(X), ENTRY_STEPS)
