"""Soft-impute: a path of nuclear norm penalties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines._recorder import NOTHING, Completed, Recorder
from hirank.baselines.linear_imputer import LinearImputer
from hirank.core.masking import mask_entries
from hirank.core.svt import shrink, spectral_norm
from hirank.estimators.validation import check_count, check_number, generator
from hirank.models.low_rank import Subspace, make_basis
from hirank.optim.path import path_to
from hirank.optim.trace import Callback

PATH = tuple(np.geomspace(0.5, 1e-4, 20).tolist())
"""Thresholds, in units of the largest singular value."""
PATIENCE = 3
"""Thresholds in a row with a larger error that end the search."""
UNJUDGED = 1e-2
"""Threshold for tables with too few entries to judge by."""


@dataclass(eq=False, repr=False)
class SoftImpute(LinearImputer):
    """Imputation by soft-thresholded singular values, along a path of falling thresholds.

    Minimizes 1/2 sum over observed entries of (X - A)^2 + threshold |A|_* (Mazumder, Hastie and
    Tibshirani 2010): the missing entries are filled from A, and A is the filled table with its
    singular values reduced by the threshold, in turn. Each threshold starts from the one before.

    Parameters
    ----------
    threshold : float or "auto", default="auto"
        Where the path ends, in units of the largest singular value of the scaled table with zeros
        in its holes. ``"auto"`` hides a few observed entries and takes the threshold that recovers
        them best (1e-2 if there are too few to judge by).
    max_iter : int, default=100
        Most steps for each threshold.
    tol : float, default=1e-4
        Steps for a threshold end when the filled entries change by less than this fraction.
    random_state : int, RandomState or None, default=None
        Chooses the entries that are hidden.
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
    >>> holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = SoftImpute(random_state=0)
    >>> filled = model.fit_transform(holes)
    >>> bool(np.abs(filled - X).mean() < 0.02)
    True
    """

    threshold: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4
    random_state: int | np.random.RandomState | None = None

    def _check_parameters(self) -> None:
        if self.threshold != "auto":
            check_number("threshold (if not 'auto')", self.threshold, above=0)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)

    def _most_steps(self) -> int:
        return 2 * len(PATH) * self.max_iter

    def _learn(
        self, X: Array, observed: BoolArray, callback: Callback
    ) -> tuple[Completed, Subspace]:
        record = Recorder(callback)
        if not X.shape[1]:
            done = record.finish_with(X, NOTHING, threshold=0.0, rank=0)
            return done, Subspace(np.zeros((0, 0)), 1.0)
        known, path = np.where(observed, X, 0), Path(record, self.max_iter, self.tol)
        if self.threshold == "auto":
            rng = generator(self.random_state)
            threshold, A = choose(known, observed, rng, path)
        else:
            threshold = float(self.threshold)
        if not record.stopped:
            *_, (threshold, A) = path.walk(known, observed, path_to(PATH, threshold))
        basis, weight = make_basis(A), threshold * spectral_norm(known)
        reason = record.ended() if record.stopped else path.reason
        filled = np.where(observed, X, A)
        details = {"threshold": threshold, "rank": len(basis)}
        return record.finish_with(filled, reason, **details), Subspace(basis, weight)


class Path:
    """The low-rank tables for falling thresholds."""

    def __init__(self, record: Recorder, max_iter: int, tol: float) -> None:
        self.record, self.max_iter, self.tol = record, max_iter, tol
        self.reason = ""

    def walk(
        self, X: Array, observed: BoolArray, thresholds: tuple[float, ...]
    ) -> Iterator[tuple[float, Array]]:
        """The threshold and A, n x m, for each in turn; X must be 0 where not observed."""
        filled, unit = X.copy(), spectral_norm(X)
        for threshold in thresholds:
            A = self._settle(filled, observed, threshold * unit)
            yield threshold, A
            if self.record.stopped:
                return

    def _settle(self, filled: Array, observed: BoolArray, threshold: float) -> Array:
        """A for one threshold; its entries are left in the holes of `filled`."""
        missing, stage = ~observed, self.record.stages
        for _ in range(self.max_iter):
            A, nuclear = shrink(filled, threshold)
            change = A[missing] - filled[missing]
            filled[missing] += change
            misfit = float(np.sum((filled - A)[observed] ** 2))
            if self.record.record(misfit / 2 + threshold * nuclear, stage):
                return A
            if np.linalg.norm(change) <= self.tol * np.linalg.norm(filled[missing]):
                self.reason = self.record.converged(self.tol, "the filled entries")
                return A
        self.reason = self.record.exhausted(self.max_iter)
        return A


def choose(
    X: Array, observed: BoolArray, rng: np.random.Generator, path: Path
) -> tuple[float, Array]:
    """The threshold that recovers hidden entries of X, n x m, best, and what it gave."""
    hidden = mask_entries(observed, rng, selecting=True)
    if not hidden.any():
        *_, last = path.walk(X, observed, path_to(PATH, UNJUDGED))
        return last
    seen, lowest, poor = observed & ~hidden, np.inf, 0
    for threshold, A in path.walk(np.where(hidden, 0, X), seen, PATH):
        error = float(np.mean(np.abs((A - X)[hidden])))
        if error < lowest:
            best, lowest, poor = (threshold, A), error, 0
        elif (poor := poor + 1) >= PATIENCE:
            break
    return best
