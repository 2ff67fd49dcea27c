"""Soft-impute: a path of nuclear norm penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.base import NO_SUBSPACE, LinearImputer, TableFit
from hirank.baselines.penalty_path import Begin, PenaltyPath
from hirank.core.svt import shrink, spectral_norm
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.models.low_rank import Subspace, make_basis
from hirank.optim.trace import Monitor


@dataclass(eq=False, repr=False)
class SoftImpute(LinearImputer):
    """Imputation by soft-thresholded singular values, along a path of falling thresholds.

    Minimizes 1/2 sum over observed entries of (X - A)^2 + threshold |A|_* (Mazumder, Hastie and
    Tibshirani 2010): the missing entries are filled from A, and A is the filled table with its
    singular values reduced by the threshold, in turn. Each threshold starts from the one before.

    Parameters
    ----------
    threshold : float or "auto", default="auto"
        Where the path ends, in units of the largest singular value of the scaled table with 0
        at missing entries. ``"auto"`` holds out a few observed entries and takes the threshold that
        recovers them best (1e-2 if there are too few to hold any out).
    max_iter : int, default=100
        Steps for each threshold, at most.
    tol : float, default=1e-4
        Steps for a threshold end when the imputed values change by less than this fraction.
    random_state : int, RandomState or None, default=None
        Selects the entries that are held out.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    threshold_ : float
    rank_ : int
        Of A.
    components_ : array, rank_ x n_features_kept
        Right singular vectors of A, each times the square root of its singular value; in the units
        of the data.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`.

    Notes
    -----
    ``transform`` completes new samples by ridge regression of their observed entries on the
    components, with the threshold as the ridge: for fixed components, the same problem for one more
    sample. The start of :class:`hirank.KFMC` is a short version of the same path.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import SoftImpute
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = SoftImpute(random_state=0)
    >>> filled = model.fit_transform(X_missing)
    >>> bool(np.abs(filled - X).mean() < 0.02)
    True
    """

    threshold: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4
    random_state: int | np.random.RandomState | None = None

    _quantity: ClassVar[str] = "the imputed values"

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            nothing = {"threshold": 0.0, "rank": 0}
            return TableFit(X, NO_SUBSPACE, StopReason.NOTHING_TO_FIT, nothing)
        known, rng = np.where(observed, X, 0), make_rng(self.random_state)
        path = ThresholdPath(self.max_iter, self.tol, monitor)
        threshold, solution = path.fit(known, observed, self.threshold, rng)
        A = solution.state.A
        basis = make_basis(A)
        model = Subspace(basis, threshold * spectral_norm(known))
        return TableFit(A, model, solution.reason, {"threshold": threshold, "rank": len(basis)})


@dataclass(frozen=True)
class ThresholdPath(PenaltyPath["Shrunk"]):
    """Thresholds in units of the largest singular value."""

    penalties: ClassVar[tuple[float, ...]] = tuple(np.geomspace(0.5, 1e-4, 20).tolist())
    as_good: ClassVar[float] = 1.0
    patience: ClassVar[int] = 3

    def begin(self, X: Array, observed: BoolArray) -> Begin[Shrunk]:
        unit = spectral_norm(X)
        return Shrunk(X, X), lambda t: SoftThresholding(observed, t * unit, self.tol)

    def impute(self, state: Shrunk) -> Array:
        return state.A


@dataclass(frozen=True)
class Shrunk:
    """The table as imputed, and the low-rank table that the imputed values come from."""

    filled: Array  # n x m
    A: Array  # n x m
    objective: float = np.inf
    change: float = np.inf  # size of the last change of the imputed values
    size: float = 0.0  # of the imputed values


@dataclass(frozen=True)
class SoftThresholding:
    """Solver for one threshold: impute from A, reduce the singular values, in turn."""

    observed: BoolArray
    threshold: float
    tol: float
    monotone: ClassVar[bool] = True

    def init(self, start: Shrunk) -> Shrunk:
        return replace(start, objective=np.inf)

    def step(self, state: Shrunk) -> Shrunk:
        A, nuclear = shrink(state.filled, self.threshold)
        missing, filled = ~self.observed, state.filled.copy()
        change = A[missing] - filled[missing]
        filled[missing] += change
        misfit = float(np.sum((filled - A)[self.observed] ** 2))
        objective = misfit / 2 + self.threshold * nuclear
        sizes = (float(np.linalg.norm(values)) for values in (change, filled[missing]))
        return Shrunk(filled, A, objective, *sizes)

    def terminate(self, state: Shrunk, objectives: Sequence[float]) -> bool:
        return state.change <= self.tol * state.size
