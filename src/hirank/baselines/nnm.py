"""Nuclear norm minimization by an augmented Lagrangian."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines._recorder import NOTHING, Completed, Recorder
from hirank.baselines.linear_imputer import LinearImputer
from hirank.core.svt import shrink, spectral_norm
from hirank.estimators.validation import check_count, check_number
from hirank.models.low_rank import Subspace, make_basis
from hirank.optim.trace import Callback

FIRST_WEIGHT = 1.25
"""Weight of the constraint at first, over the largest singular value of the table."""
BALANCE = 10.0
"""Ratio of the two residuals beyond which the weight changes."""
CHANGE = 1.5
"""Factor by which it does."""


@dataclass(eq=False, repr=False)
class NNM(LinearImputer):
    """Imputation by nuclear norm minimization: the least sum of singular values that fits.

    Minimizes |A|_* over all tables A that agree with X in the observed entries (Candes and Recht
    2009), by the inexact augmented Lagrangian method: A by singular value thresholding, the missing
    entries, and the multipliers in turn, with the weight of the constraint adapted until both
    residuals vanish. Exact for tables of low rank with few missing entries. There is nothing to
    choose.

    Parameters
    ----------
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-5
        Steps end when both residuals are below this fraction of the table.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`. ``scale=False`` is the problem as its authors state it.

    Attributes
    ----------
    rank_ : int
        Of the completed table, A.
    components_ : array, rank_ x n_features_kept
        Right singular vectors of A, each times the square root of its singular value; in the units
        of the data.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the nuclear norm; it may rise on the way.

    Notes
    -----
    ``transform`` gives a new sample the shortest code in these components that fits its observed
    entries: for fixed components, the same problem for one more sample.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import NNM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12))
    >>> holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = NNM(scale=False)
    >>> filled = model.fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 1e-2), model.rank_
    (True, 2)
    """

    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-5

    def _check_parameters(self) -> None:
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, above=0)

    def _learn(
        self, X: Array, observed: BoolArray, callback: Callback
    ) -> tuple[Completed, Subspace]:
        record = Recorder(callback)
        if not X.shape[1]:
            return record.finish_with(X, NOTHING, rank=0), Subspace(np.zeros((0, 0)), 1.0)
        filled, A, reason = minimize(
            np.where(observed, X, 0), observed, self.max_iter, self.tol, record
        )
        basis = make_basis(A)
        # Small enough to act as a constraint, large enough for the solve to keep its digits.
        ridge = 1e-8 * float(np.sum(basis**2)) / len(basis)
        return record.finish_with(filled, reason, rank=len(basis)), Subspace(basis, ridge)


def minimize(
    X: Array, observed: BoolArray, max_iter: int, tol: float, record: Recorder
) -> tuple[Array, Array, str]:
    """The table, n x m, of least nuclear norm that agrees with X where observed.

    The augmented Lagrangian of Z = A, with Z the table with its missing entries free, and
    multipliers Y: |A|_* + <Y, Z - A> + w/2 |Z - A|^2. Returns Z, A and why the steps ended; X must
    be 0 where not observed.
    """
    Z, Y, size = X.copy(), np.zeros_like(X), float(np.linalg.norm(X))
    if size == 0:
        return Z, Z, "Nothing to do: all observed entries are 0."
    w = FIRST_WEIGHT / spectral_norm(X)
    missing = ~observed
    for _ in range(max_iter):
        A, nuclear = shrink(Z + Y / w, 1 / w)
        change = A[missing] - Y[missing] / w - Z[missing]
        Z[missing] += change
        Y += w * (Z - A)
        primal = float(np.linalg.norm(Z - A)) / size
        dual = float(np.linalg.norm(change)) / size
        if record.record(nuclear):
            return Z, A, record.ended()
        if max(primal, dual) <= tol:
            return Z, A, record.converged(tol, "the table")
        if primal > BALANCE * dual:
            w *= CHANGE
        elif dual > BALANCE * primal:
            w /= CHANGE
    return Z, A, record.exhausted(max_iter)
