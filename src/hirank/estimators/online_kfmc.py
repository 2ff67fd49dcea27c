"""OnlineKFMC: Algorithm 2 of the paper."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hirank._checks import Rule, choice, count, flag
from hirank._typing import Array
from hirank.estimators.callbacks import reporting
from hirank.estimators.online_base import BaseOnline, CheckedRows
from hirank.estimators.validation import NEWTON_RULES, make_kernel, warn_of_relaxation
from hirank.kernels import RBF
from hirank.online.algorithm2 import Algorithm2Stream
from hirank.online.config import Algorithm2Config
from hirank.optim.algorithm2 import (
    BANDWIDTH,
    FIRST_BETA,
    LAST_BETA,
    POLY_ALPHA,
    POLY_BETA,
    STREAM_BETA,
)
from hirank.optim.algorithm3 import MAX_STEPS, Algorithm3Config
from hirank.optim.newton import MOMENTUM, RELAXATION
from hirank.optim.trace import Callback, Step


@dataclass(eq=False, repr=False)
class OnlineKFMC(BaseOnline[Algorithm2Stream]):
    """Online kernelized factorization matrix completion (Fan and Udell, 2019, Algorithm 2).

    Every row, or mini-batch, moves the dictionary once and is forgotten. Use
    :class:`OnlineImputer`, which keeps the last rows, for accuracy: this model costs less per row
    and is far less accurate.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points of the dictionary, at most 2000. ``"auto"`` takes ``3.8 * n**0.6`` for n rows at the
        start.
    batch_size : int, default=1
        Rows that move the dictionary together.
    n_warmup : int, default=200
        Rows that are held until scaling and bandwidth are determined on them, at least
        `n_components`. ``fit`` starts with what it gets.
    n_passes : int, default=1
        Passes of ``fit`` over its table. ``partial_fit`` ignores it.
    kernel : {"rbf", "poly"} or Kernel, default="rbf"
        A kernel object is used as it is, in units of the scaled features.
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between rows; ``"path"``
        stands for 1.5.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
        With the polynomial kernel, 0 stands for 1e-4.
    beta : float, optional
        Ridge of the codes. By default 7e-3 for the RBF kernel, falling from 0.1 to 1e-3 over
        several passes, and 1e-2 for the polynomial kernel.
    scale : bool, default=True
        Bring each feature to mean 0 and standard deviation 1 first, and back afterwards.
    max_iter : int, default=50
        Maximum number of iterations per row, up to 2000.
    tol : float, default=1e-5
        A row is done when neither its codes nor its entries change by this much.
    momentum : float, default=0.5
        eta of the paper: the part of the last step that is added to the next, from 0 to below 1.
    relaxation : float, default=1.1
        tau of the paper: the factor by which steps are shortened. With 1 or less, Lemmas 3 and 6 of
        the paper do not hold, and a warning is issued.
    record_cost : bool, default=False
        Record the course of ``cost_`` in ``cost_history_``.
    drift_detection : {"monitor", "off"}, default="monitor"
        Hold out a few observed entries of each row on arrival, predict them, and record the errors:
        ``recent_error_``.
    missing_values : float, default=nan
        The placeholder of a missing value. NaN always counts as missing as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature: 1 where it was missing.
    random_state : int, RandomState or None, default=None
        Determines the starting dictionary and held-out entries.
    verbose : int, default=0
        1 prints a line to standard error per pass of ``fit``, 2 one per batch.

    Attributes
    ----------
    cost_ : float
        The empirical cost g_t(D) of the paper, which shows convergence without any truth: the mean
        over the rows that were learned from, in the last pass of ``fit`` and since, of
        ``min |phi(x) - phi(D) z|^2 / 2 + beta |z|^2 / 2`` over code and missing entries, with the
        dictionary of that moment, plus ``alpha |phi(D)|^2 / 2t`` after t rows. Costs are comparable
        for one kernel, its bandwidth and `beta`. NaN before the first row is learned from.
    cost_history_ : structured array
        Columns ``samples`` (rows learned from so far, those of earlier passes included) and
        ``cost``; at most 1000 lines, evenly spaced. Only with ``record_cost=True``.
    recent_error_, error_history_, dictionary_, n_components_, kernel_, n_samples_seen_, n_iter_, \
last_update_, n_features_in_, feature_names_in_
        As in :class:`OnlineImputer`.

    Notes
    -----
    ``fit_transform`` returns the table as imputed in the last pass. The columns of the output never
    change: a feature without any value in the first rows stays missing (NaN). An interrupted call
    leaves the model as it was before. Threads are as in :class:`OnlineImputer`.

    Examples
    --------
    Pass over a table several times:

    >>> import numpy as np
    >>> from hirank import OnlineKFMC
    >>> t = np.random.default_rng(0).uniform(-1, 1, 400)
    >>> truth = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X = truth.copy()
    >>> X[::3, 1] = np.nan
    >>> model = OnlineKFMC(20, n_passes=3, random_state=0)
    >>> filled = model.fit_transform(X)
    >>> bool(np.abs(filled - truth).mean() < 0.05)
    True

    Impute new rows with the dictionary as it is, by Algorithm 3:

    >>> model.transform([[0.5, np.nan, 0.125, 0.07]]).shape
    (1, 4)

    Update the dictionary with every row of a stream, here of complete ones, and watch the cost:

    >>> stream = OnlineKFMC(20, n_warmup=100, record_cost=True, random_state=0)
    >>> for rows in np.split(truth, 4):
    ...     stream = stream.partial_fit(rows)
    >>> history = stream.cost_history_["cost"]
    >>> bool(stream.cost_ == history[-1] < history[0])
    True
    """

    _: KW_ONLY
    batch_size: int = 1
    max_iter: int = 50
    tol: float = 1e-5
    momentum: float = MOMENTUM
    relaxation: float = RELAXATION
    record_cost: bool = False
    drift_detection: str = "monitor"

    _record_type: ClassVar[Any] = Algorithm2Stream
    _rules: ClassVar[dict[str, Rule]] = {
        "drift_detection": choice("monitor", "off"),
        "max_iter": count(most=MAX_STEPS),
        "record_cost": flag,
        **NEWTON_RULES,
    }

    @property
    def cost_(self) -> float:
        return self._stream.cost.mean

    @property
    def cost_history_(self) -> NDArray[np.void]:
        cost = self._stream.cost
        if not cost.every:
            raise AttributeError("The cost was not recorded. Use record_cost=True.")
        return cost.history.copy()

    def _config(self) -> Algorithm2Config:
        kernel, alpha, beta, falling = make_kernel(self), float(self.alpha), self.beta, None
        rbf = isinstance(kernel, RBF)
        if beta is None:
            beta = STREAM_BETA if rbf else POLY_BETA
            falling = (FIRST_BETA, LAST_BETA) if rbf else None
        if not rbf and not alpha:
            alpha = POLY_ALPHA
        n_warmup = int(self.n_warmup)
        if self.n_components != "auto":
            n_warmup = max(n_warmup, int(self.n_components))
        return Algorithm2Config(
            kernel=kernel,
            bandwidth=BANDWIDTH if self.bandwidth == "path" else float(self.bandwidth),
            beta=float(beta),
            n_components=lambda n: self._points(n),
            alpha=alpha,
            steps=Algorithm3Config(
                float(self.momentum),
                float(self.relaxation),
                int(self.max_iter),
                tol_change=float(self.tol),
            ),
            scale=bool(self.scale),
            batch_size=int(self.batch_size),
            n_warmup=n_warmup,
            monitor=self.drift_detection == "monitor",
            record_cost=bool(self.record_cost),
            n_passes=int(self.n_passes),
            falling=falling,
        )

    def _reporting(self, X: Any, n: int, config: Algorithm2Config) -> Any:
        return reporting(self, X, config.n_passes, verbose=0, step_verbose=0)

    def _advance(self, given: CheckedRows, *, impute: bool, **options: Any) -> Array:
        warn_of_relaxation(self.relaxation)
        return super()._advance(given, impute=impute, **options)

    def _fit_stream(
        self,
        stream: Algorithm2Stream,
        rows: Array,
        more: dict[str, Array],
        config: Algorithm2Config,
        callback: Callback,
    ) -> tuple[Algorithm2Stream, Array | None]:
        warn_of_relaxation(self.relaxation)

        def stop(number: int) -> bool:
            if self.verbose:
                sys.stderr.write(f"[{type(self).__name__}] pass {number} of {config.n_passes}\n")
            return bool(callback(Step(number, 0, np.nan, 0.0)))

        return stream.fit_table(rows, config, stop)
