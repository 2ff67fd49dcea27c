"""VMC and NLMC: low rank in the feature space of a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.base import TableFit, TableImputer
from hirank.core.init import soft_impute
from hirank.core.masking import mask_entries
from hirank.core.threads import Workers
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.dictionary import Dictionary
from hirank.models.fit_schatten import LAST_SMOOTHING, SchattenEnd, SchattenFitter, SchattenPath
from hirank.optim.early_stopping import BestStage
from hirank.optim.path import Stage
from hirank.optim.trace import Monitor

SEARCH_TOL = 3e-3  # while several paths are compared, a rough answer is enough

_ANY_TABLE = np.ones((1, 1)), np.ones((1, 1), bool)


@dataclass(eq=False, repr=False)
class IRLSImputer(TableImputer[Dictionary]):
    """Imputes such that the Schatten-p penalty of a kernel matrix is low.

    A subclass returns the kernels that are compared, with their paths (``_paths``).
    """

    _: KW_ONLY
    power: float = 0.5
    smoothing: float | str = "auto"
    n_landmarks: int | str = "auto"
    max_iter: int = 150
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None

    _quantity: ClassVar[str] = "the penalty"

    @abstractmethod
    def _paths(self, X: Array, observed: BoolArray) -> list[SchattenPath]:
        """Return the paths for X, n x v, from which the best is selected."""

    def _path(self, kernel: Kernel, bandwidth: float = 1.0) -> SchattenPath:
        return SchattenPath(
            kernel,
            bandwidth,
            self.power,
            None if self.n_landmarks == "auto" else int(self.n_landmarks),
            LAST_SMOOTHING if self.smoothing == "auto" else float(self.smoothing),
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            path = self._paths(*_ANY_TABLE)[0]
            details = self._details(path.kernel, path.stages[0])
            return TableFit(X, Dictionary(X, ()), StopReason.NOTHING_TO_FIT, details)
        path, number, end = self._fit_best(X, observed, self._paths(X, observed), monitor)
        model, n_stages = path.model(end, number), len(path.stages)
        details = self._details(end.setting.kernel, path.stages[number])
        early = (number + 1, n_stages) if number + 1 < n_stages else None
        return TableFit(end.X, model, end.reason, details, early)

    def _fit_best(
        self, X: Array, observed: BoolArray, paths: Sequence[SchattenPath], monitor: Monitor
    ) -> _PathEnd:
        """Impute the missing entries of X, n x v, along the best of the paths.

        If there is something to select, a few observed entries are held out first: the path, and
        its end if that is open, are those that recover them best. The last stage, or all of them if
        there were several paths, is then fitted again with all entries.
        """
        held_out = np.zeros_like(observed)
        open_end = self.smoothing == "auto"
        if len(paths) > 1 or open_end:
            held_out = mask_entries(observed, make_rng(self.random_state), selecting=True)
        with Workers() as workers:
            fitter = SchattenFitter(observed, monitor, workers)
            if not held_out.any():
                return _follow(fitter, paths[0], soft_impute(X, observed))
            search = replace(fitter, fixed=observed & ~held_out)
            start, found = soft_impute(X, search.fixed), list[tuple[SchattenPath, BestStage]]()
            for path in paths:
                best = BestStage(X, held_out)
                rough = path if len(paths) == 1 else replace(path, tol=max(SEARCH_TOL, path.tol))
                _follow(search, rough, start, best=best, open_end=open_end)
                found.append((path, best))
                if monitor.stopped:
                    break
            path, best = min(found, key=lambda one: min(one[1].errors))
            if len(paths) > 1:  # they were compared with a rough tolerance
                return _follow(fitter, path, soft_impute(X, observed), last=best.number)
            start = np.where(observed, X, best.X)
            return _follow(fitter, path, start, first=best.number, last=best.number)

    def _details(self, kernel: Kernel, last: Stage) -> dict[str, Any]:
        """Return the fitted attributes that describe the last stage."""
        details: dict[str, Any] = {"kernel": kernel, "smoothing": last.beta}
        return details | ({"bandwidth": last.bandwidth} if hasattr(self, "bandwidth") else {})


class _PathEnd(NamedTuple):
    """Where a fit has ended: the stage of the path, and its state."""

    path: SchattenPath
    number: int
    end: SchattenEnd


def _follow(
    fitter: SchattenFitter,
    path: SchattenPath,
    X: Array,
    *,
    first: int = 0,
    last: int | None = None,
    best: BestStage | None = None,
    open_end: bool = True,
) -> _PathEnd:
    """Fit stages from X, n x m, to the last, or until held-out entries only get worse.

    Without an open end the path is followed to the last stage, whatever `best` finds on the way.
    """
    last = len(path.stages) - 1 if last is None else last
    for number in range(first, last + 1):
        end = fitter.fit_stage(path, number, X)
        stopped = fitter.monitor.stopped
        scored = open_end or number == last or stopped
        past = best is not None and scored and best.is_past(number, end.X, end.D)
        if stopped or past or number == last:
            break
        X = fitter.restart(number, end)
    return _PathEnd(path, number, end)


@dataclass(eq=False, repr=False)
class VMC(IRLSImputer):
    """Imputation of tables whose rows lie on an algebraic variety, or a union of subspaces.

    Such rows satisfy polynomial equations, so their monomials up to some degree, the images of the
    rows under a polynomial kernel, span few dimensions. Missing entries are imputed such that the
    Schatten-p penalty of these images is low, by iteratively reweighted least squares (Ongie,
    Willett, Nowak and Balzano 2017).

    Parameters
    ----------
    degree : int, default=2
        Degree of the equations.
    offset : float, default=1.0
        Not negative. Weight of the lower degrees, in units of the mean of |x|^2: the kernel is
        (x.y / mean of |x|^2 + offset)^degree.
    power : float, default=0.5
        p of the penalty, above 0 and at most 1. Lower values are closer to a rank and get stuck
        more easily.
    smoothing : float or "auto", default="auto"
        Where the smoothing of the penalty ends, in units of the mean of k(x, x); it falls from 0.1,
        a decade a stage. ``"auto"`` goes down to 1e-8 or stops where a few held-out entries are
        recovered best.
    n_landmarks : int or "auto", default="auto"
        Samples that represent all others in the kernel matrix, selected anew in each stage. All of
        them is exact; memory is proportional to their number. ``"auto"`` takes
        ``3.8 * n_samples**0.6``, between 150 and 400, or fewer if the others are closer to their
        span than the smoothing.
    max_iter : int, default=150
        Steps in each stage, at most.
    tol : float, default=1e-3
        A stage ends when the penalty fell by less than this fraction over ten steps.
    random_state : int, RandomState or None, default=None
        Selects the entries that are held out if ``smoothing="auto"``.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    kernel_ : Poly
        For scaled features.
    smoothing_ : float
        At the end, in units of the mean of k(x, x).
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the penalty in units of its steepest slope.

    Notes
    -----
    ``transform`` imputes the missing entries of a new sample such that its image is close to the
    span of the images of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import VMC
    >>> rng = np.random.default_rng(0)
    >>> P, s = rng.normal(size=(2, 8)), rng.uniform(-1, 1, size=(80, 1))
    >>> X = np.hstack([s, s**2]) @ P  # a parabola in a plane
    >>> X_missing = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    >>> filled = VMC(random_state=0).fit_transform(X_missing)
    >>> bool(np.abs(filled - X).max() < 0.01)
    True
    """

    degree: int = 2
    offset: float = 1.0

    def _check_params(self) -> None:
        super()._check_params()
        Poly(self.degree, self.offset)  # raises

    def _paths(self, X: Array, observed: BoolArray) -> list[SchattenPath]:
        size = X.shape[1] * float(np.mean(np.square(X[observed])))
        return [self._path(Poly(self.degree, self.offset * size))]


# The authors' values; the first is taken where there are too few entries to hold any out.
BANDWIDTHS = (3.0, 1.0, 0.5)


@dataclass(eq=False, repr=False)
class NLMC(IRLSImputer):
    """Imputation of tables whose rows lie on smooth surfaces.

    Under an RBF kernel, the images of such rows are close to a space of few dimensions. Missing
    entries are imputed such that the Schatten-p penalty of these images is low, by
    iteratively reweighted least squares (Fan and Chow 2018), as in :class:`VMC`.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        Length scale of the kernel as a multiple of the mean distance between samples. ``"auto"``
        takes the one of 0.5, 1 and 3 that recovers a few held-out entries best.
    smoothing : float or "auto", default="auto"
        As in :class:`VMC`. On noisy data, narrow kernels fit best with more of it.
    random_state : int, RandomState or None, default=None
        Selects the entries that are held out.
    power, n_landmarks, max_iter
        As in :class:`VMC`.
    tol : float, default=3e-4
        A stage ends when the penalty fell by less than this fraction over ten steps.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    bandwidth_ : float
    kernel_ : RBF
        For scaled features, at the end.
    smoothing_ : float
        At the end; k(x, x) is 1.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the penalty in units of its steepest slope.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import NLMC
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X_missing = X.copy()
    >>> X_missing[::3, 1] = np.nan
    >>> filled = NLMC(random_state=0).fit_transform(X_missing)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    """

    bandwidth: float | str = "auto"
    _: KW_ONLY
    tol: float = 3e-4

    def _paths(self, X: Array, observed: BoolArray) -> list[SchattenPath]:
        bandwidths = BANDWIDTHS if self.bandwidth == "auto" else (float(self.bandwidth),)
        return [self._path(RBF(), bandwidth) for bandwidth in bandwidths]
