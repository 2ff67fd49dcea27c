"""OnlineImputer: rows are imputed as they arrive, by a model of the last rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._set_output import _wrap_data_with_container

from hirank._checks import Rule, choice, count, optional
from hirank._text import abbreviated
from hirank._typing import Array
from hirank.estimators.callbacks import reporting
from hirank.estimators.groups import group_column, label_number, read_label
from hirank.estimators.online_base import BaseOnline, CheckedRows
from hirank.estimators.side_columns import SideColumns
from hirank.estimators.stream_facts import describe_stream
from hirank.estimators.validation import check_coverage, job_count, kernel_name, make_kernel
from hirank.exceptions import (
    GroupLimitWarning,
    IrregularTimesWarning,
    ParameterError,
    warn,
)
from hirank.kernels import Kernel
from hirank.online.clock import TimeCounts
from hirank.online.config import ArrivalConfig, LowRankConfig, WindowConfig, n_points
from hirank.online.grouped import MAX_GROUPS, GroupedStream
from hirank.online.ordered import OrderedState
from hirank.online.window import StreamState
from hirank.optim.path import BANDWIDTHS, LAST_BETA, SolverConfig, default_path
from hirank.optim.trace import Callback, Step

ORDERS = ("auto", "rows")
"""Values of `time` that are not the name of a column."""


def order_of_rows(name: str, value: Any) -> None:
    """Require "auto", "rows", None, or the name or number of a column."""
    is_column = isinstance(value, str | Integral) and not isinstance(value, bool)
    if value is not None and not is_column:
        allowed = "'auto', 'rows', None, or the name or number of the column with the times"
        raise ParameterError(name, f"must be {allowed}; got {value!r}.")


@dataclass(eq=False, repr=False)
class OnlineImputer(BaseOnline[StreamState]):
    """Impute rows as they arrive, with a model of the last rows that keeps learning.

    ``partial_fit`` learns from rows, ``transform`` imputes rows with the model as it stands,
    ``partial_fit_transform`` does both. What is learned depends on the rows and their order, not on
    how they were split into calls. Memory is bounded by the window.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points of the dictionary, at most 2000. ``"auto"`` takes ``3.8 * n**0.6`` for n rows in the
        window (177 for 600), and more as it fills.
    window : int, default=600
        Rows that are kept.
    batch_size : int, default=50
        Rows that are learned from together; rows of smaller calls wait until there are so many.
    n_warmup : int, default=200
        Rows before the first fit, at most `window` and at least `n_components`. ``fit`` starts with
        what it gets.
    n_passes : int, default=1
        Passes of ``fit`` over its table. ``partial_fit`` ignores it.
    kernel : {"auto", "rbf", "poly"} or Kernel, default="auto"
        ``"auto"`` fits dictionaries with the RBF kernel. Unless `n_components`, `bandwidth` or
        `beta` is given, it compares them with low-rank kernel matrices (polynomial, degree 2) on
        entries that are held out, and takes these where they are far better: on rows that lie
        nearly exactly on few surfaces or subspaces. A kernel object is used as it is, in units of
        the scaled features.
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between rows. ``"path"``
        grows from 1 to 8 along the stages.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
    beta : float, optional
        Ridge of the codes at the end of the path, in units of k(d, d), by default 1e-10.
    scale : bool, default=True
        Bring each feature to mean 0 and standard deviation 1 first, and back afterwards. Both
        follow the data.
    max_iter : int, default=60
        Maximum number of steps in each stage when the path is fitted.
    tol : float, default=1e-2
        A stage ends when the objective fell by less than this fraction over ten steps.
    drift_detection : {"refit", "monitor", "off"}, default="refit"
        Hold out a few observed entries of each row on arrival, predict them, and record the errors:
        ``recent_error_``. With ``"refit"`` the model is fitted again when they increase.
    time : {"auto", "rows"}, str, int or None, default="auto"
        Whether rows follow each other in time. ``"auto"`` finds out: Gaussian filters of the last
        rows take part from the second row on, and are weighed against the dictionary at entries
        that are held out, by feature and by the time since its last value; where they do not help,
        the dictionary imputes alone. ``"rows"`` says that rows are in order, evenly spaced. Another
        name or a number is the column with the times, in any unit; it is not imputed. After a
        longer step, more is uncertain. None takes each row by itself. Filters take
        .5 ms a row at 30 features (2 ms without the compiled core) and 4 ms at 500.
    groups : str or int, optional
        Name or number of a column with labels, text or numbers, of devices or other groups: rows of
        one group follow each other in time, those of different groups do not. The column is
        returned unchanged. Each group has its own filters, covariances and clock; the model of the
        window is learned from the rows of all groups, and imputes the first row of a new one. The
        filters of up to 1000 groups are kept. With one more, the group without a row for the
        longest time is forgotten, and a :class:`~hirank.exceptions.GroupLimitWarning` is issued the
        first time.
    missing_values : float, default=nan
        The placeholder of a missing value. NaN always counts as missing as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature: 1 where it was missing.
    random_state : int, RandomState or None, default=None
        Determines starting dictionaries and held-out entries.
    n_jobs : int, optional
        Threads that fit and impute, as in scikit-learn: None is one, unless a context of joblib
        sets another number, and -1 is one for each processor. Results do not depend on it.
    verbose : int, default=0
        1 prints a line to standard error whenever the path is fitted, 2 one per batch.

    Attributes
    ----------
    recent_error_ : float
        Root mean square error of the last 200 held-out entries, in standard deviations of their
        features. 1 is as poor as the column mean; NaN before there are any.
    feature_errors_ : array, n_features_in_
        The same by feature, a running mean over about 200 held-out entries of each; NaN without
        any.
    error_history_ : structured array
        Columns ``samples``, ``error``, ``entries``: the same by batch since the start. At most 1000
        lines; neighbors are merged when it is full.
    dictionary_ : array, n_components_ x n_features_in_
        The dictionary, or the rows that span a low-rank kernel matrix, in the units of the data.
    n_components_ : int
    kernel_ : Kernel
    n_samples_seen_ : int
    n_iter_ : int
        Batches that were learned from.
    last_update_ : Update
        What the last batch led to: started, refined, refitted, restarted or none.
    groups_ : array of str
        Only with `groups`: the labels whose filters are kept, that with the oldest last row first.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if the first rows had string column names.

    See Also
    --------
    hirank.Imputer : For a table that is there as a whole.
    hirank.OnlineKFMC : Algorithm 2 of the paper.
    hirank.river.Imputer : The same model for pipelines of river.

    Notes
    -----
    The columns of the output never change: a feature without any value so far stays missing (NaN),
    and one that has no more values is imputed with its last mean. Rows without any observed entry
    are imputed with the means, not learned from, and warned about.

    Unless `time` is None, ``transform`` imputes each row as if it were the next one, and rows
    without any value count as time that passes. Times that go backward count as one usual step, the
    median of the last ones, repeated times as a tenth of one, and gaps of more than 1000 usual
    steps as so many, each with an :class:`~hirank.exceptions.IrregularTimesWarning`. For a whole
    table in order there is ``Imputer(time=True)``.

    A fit that takes long is cut into slices, one for each row that arrives; until it is complete,
    the model before imputes. Before the first one is complete, ``transform`` completes it where
    rows are in no order, since nothing else imputes them well; ``dictionary_`` is not there yet.

    An interrupted call leaves the model as it was before. Of several threads, one may learn while
    others call ``transform``, which uses the model as it is at that moment; a second one that
    learns at the same time raises a RuntimeError and changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import OnlineImputer
    >>> t = np.random.default_rng(0).uniform(-1, 1, 400)
    >>> truth = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X = truth.copy()
    >>> X[::3, 1] = np.nan
    >>> model = OnlineImputer(random_state=0).partial_fit(X[:200])
    >>> filled = model.partial_fit_transform(X[200:])
    >>> bool(np.abs(filled - truth[200:]).max() < 0.05), model.recent_error_ < 0.1
    (True, True)
    """

    _: KW_ONLY
    window: int = 600
    batch_size: int = 50
    kernel: str | Kernel = "auto"
    max_iter: int = 60
    tol: float = 1e-2
    drift_detection: str = "refit"
    time: str | int | None = "auto"
    groups: str | int | None = None
    n_jobs: int | None = None

    _record_type: ClassVar[Any] = StreamState | GroupedStream
    _rules: ClassVar[dict[str, Rule]] = {
        "window": count(2),
        "kernel": optional(kernel_name, "auto"),
        "drift_detection": choice("refit", "monitor", "off"),
        "time": order_of_rows,
        "groups": group_column,
        "n_jobs": job_count,
    }

    @property
    def feature_errors_(self) -> Array:
        return self._widen(self._stream.arrivals.errors.values, np.nan)

    @property
    def groups_(self) -> NDArray[np.object_]:
        if not isinstance(self._stream, GroupedStream):
            raise AttributeError("There are no groups: groups is None.")
        return np.array([*self._stream.groups], dtype=object)

    def partial_fit_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Array, Array]:
        """Impute the next rows of a stream with intervals around missing values, then learn.

        What ``partial_fit_transform`` returns, with intervals on arrival. Their widths follow the
        errors at the entries that are held out of each row, such that in the long run a share of
        `coverage` of these lies inside, also after the stream has changed.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        X : array, n_samples x n_features_out
            The imputed rows.
        lower, upper : arrays, n_samples x n_features
            At observed entries, their values; NaN where a value is imputed with a mean because
            nothing better is known.

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import OnlineImputer
        >>> truth = np.cumsum(np.random.default_rng(0).normal(size=(400, 4)), axis=0)
        >>> X = truth.copy()
        >>> X[::5, 1] = np.nan
        >>> model = OnlineImputer(random_state=0).partial_fit(X[:300])
        >>> filled, lower, upper = model.partial_fit_interval(X[300:])
        >>> float(((lower <= truth[300:]) & (truth[300:] <= upper))[::5, 1].mean())
        0.9
        """
        self._check_interval(coverage)
        with self._learning():
            rows = self._check_rows(X, reset=not hasattr(self, "_stream"))
            with self._workers():
                found = self._advance(rows, impute=True, coverage=float(coverage))
            filled = self._output(rows.table, rows, found[0])
        ends = self._ends(found, rows)
        return _wrap_data_with_container("transform", filled, X, self), *ends

    def interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return intervals that contain missing values with a given probability; learn nothing.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        lower, upper : arrays, n_samples x n_features
            Around what ``transform`` imputes; as of ``partial_fit_interval``.
        """
        self._check_interval(coverage)
        self._check_fitted()
        rows = self._check_rows(X, reset=False)
        values, more = self._split(rows, self._stream)
        with self._workers():
            found = self._stream.complete(values, self._config(), coverage=coverage, **more)
        return self._ends(self._widen(found, more.get("times", np.nan)), rows)

    def _ends(self, found: Array, rows: CheckedRows) -> tuple[Array, Array]:
        """Return lower and upper ends in the precision of the table; NaN for labels of text."""
        table, missing = rows.table, np.isnan(rows.values)
        lower, upper = (np.where(missing, end.astype(table.dtype), table) for end in found[1:])
        if rows.labels is not None and rows.labels.given is not None:
            lower[:, rows.labels.column] = upper[:, rows.labels.column] = np.nan
        return lower, upper

    def forecast(
        self, h: int, coverage: float = 0.9, group: str | float | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the next rows if nothing arrives, with intervals; learn nothing.

        The running means, the last values and their trends go on, with weights by feature and
        horizon that are learned from forecasts that were compared with the rows that came.

        Parameters
        ----------
        h : int
            How many rows. Beyond 64, intervals are those of 64.
        coverage : float, default=0.9
            Of the intervals, between 0 and 1.
        group : str or number
            Only with `groups`: the label of the group whose rows are forecast.

        Returns
        -------
        X, lower, upper : arrays, h x n_features_in_
            NaN for features without any value so far. A column of times goes on by the usual step.
            A column of labels is that of the group, NaN if it is text.

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import OnlineImputer
        >>> X = np.sin(np.arange(300)[:, None] / [20, 30, 40])
        >>> model = OnlineImputer(random_state=0).partial_fit(X)
        >>> ahead, lower, upper = model.forecast(3)
        >>> bool(np.abs(ahead - np.sin(np.arange(300, 303)[:, None] / [20, 30, 40])).max() < 0.05)
        True
        """
        count()("h", h)
        self._check_interval(coverage)
        config = self._config().arrival
        if config is None:
            raise ParameterError("time", "is None: a forecast needs rows in order. Use 'auto'.")
        ordered, number = self._filters(group)
        found = ordered.forecast(int(h), float(coverage), config.ordered)
        ends = (found.values, found.values - found.half_widths, found.values + found.half_widths)
        times = ordered.clock.next_times(int(h))
        ahead, lower, upper = (self._widen(one, times, number) for one in ends)
        return ahead, lower, upper

    def _filters(self, group: str | float | None) -> tuple[OrderedState, float]:
        """Return the filters that forecast rows, and the label of their group if it is a number."""
        stream = getattr(self, "_stream", None)
        if self.groups is None and group is not None:
            raise ParameterError("group", "requires {groups}, the column of labels.", "groups")
        if not isinstance(stream, GroupedStream):
            ordered = stream and stream.arrivals.ordered
            if ordered is None:
                self._check_fitted()
                raise NotFittedError("There is no forecast before the first row in order.")
            return ordered, np.nan
        label = read_label(group, self.groups)
        if label not in stream.groups:
            known = abbreviated([*stream.groups], 20)
            raise ParameterError("group", f"must be the label of a group, {known}; got {group!r}.")
        return stream.groups[label], label_number(label)

    def _check_interval(self, coverage: float) -> None:
        """Raise ParameterError if there are no intervals."""
        self._check_params()
        check_coverage(coverage)
        if self.time is None and self.drift_detection == "off":
            problem = "'off' holds nothing out, which intervals need. Use 'monitor' or 'refit'."
            raise ParameterError("drift_detection", problem)

    def add_features(self, count: int) -> None:
        """Add features that have no values so far, for rows that become wider.

        Parameters
        ----------
        count : int
        """
        with self._learning():
            stream = self._stream.add_features(count, self._config())
            width = self.n_features_in_ + count
            self._commit(stream, {**self._column_attributes(), "n_features_in_": width})

    def _check_params(self) -> None:
        super()._check_params()
        if self.groups is not None and self.time is None:
            problem = "says which rows follow each other, but {time} is None. Use {time}='auto'."
            raise ParameterError("groups", problem, "time")
        if self.n_components != "auto" and int(self.n_components) > self.window:
            raise ParameterError(
                "n_components",
                f"is {self.n_components}, more than the rows that {{window}}={self.window} keeps. "
                "Use a larger {window} or fewer components.",
                "window",
            )

    def _config(self) -> WindowConfig:
        fixed = self.bandwidth != "path"
        bandwidths = (float(self.bandwidth),) * len(BANDWIDTHS) if fixed else BANDWIDTHS
        n_warmup = min(int(self.n_warmup), int(self.window))
        if self.n_components != "auto":
            n_warmup = max(n_warmup, int(self.n_components))
        given = self.n_components != "auto" or fixed or self.beta is not None
        compared = self.kernel == "auto" and not given
        return WindowConfig(
            kernel=make_kernel(self),
            stages=default_path(bandwidths, LAST_BETA if self.beta is None else self.beta),
            # Without the estimator: a fit that goes on must not keep it from being forgotten.
            n_components=partial(n_points, self.n_components),
            solver=SolverConfig(float(self.alpha), int(self.max_iter), float(self.tol)),
            scale=bool(self.scale),
            window=int(self.window),
            batch_size=int(self.batch_size),
            n_warmup=n_warmup,
            monitor=self.drift_detection != "off",
            refit_on_drift=self.drift_detection == "refit",
            low_rank=LowRankConfig() if compared else None,
            arrival=None if self.time is None else ArrivalConfig(guarded=self.time == "auto"),
        )

    def _stream_facts(self) -> dict[str, Any]:
        """Return what the header of a file states about the stream."""
        return describe_stream(self)

    @property
    def _uses_order(self) -> bool:
        return self.time is not None

    @property
    def _has_times(self) -> bool:
        """Whether one column has the times of rows."""
        return self.time is not None and self.time not in ORDERS

    def _side_columns(self, names: Any, m: int) -> SideColumns:
        """Return the positions of the columns of times and of groups, of m."""
        return SideColumns.find(self.time if self._has_times else None, self.groups, names, m)

    @property
    def _n_side_columns(self) -> int:
        """How many columns of the rows are not imputed."""
        return int(self._has_times) + (self.groups is not None)

    def _new_stream(self, width: int) -> StreamState:
        kind = StreamState if self.groups is None else GroupedStream
        return kind.empty(width, self._draw_seed())

    def _split(self, rows: CheckedRows, stream: StreamState | None) -> tuple[Array, dict[str, Any]]:
        """Return rows without times and labels, n x m, and these as arguments of the stream."""
        names, more = rows.columns.get("feature_names_in_"), {}
        side = self._side_columns(names, rows.values.shape[1])
        values = side.remove(rows.values)
        if stream is not None:
            self._check_same_columns(stream, values.shape[1])
        if side.time is not None:
            more["times"] = rows.values[:, side.time].copy()
        if rows.labels is not None:
            more["labels"] = np.array(rows.labels.names, dtype=object)
        return values, more

    def _check_same_columns(self, stream: StreamState, width: int) -> None:
        """Raise ParameterError if a stream had other columns of times or groups."""
        problem = "names another column than before, or was None. Call fit to start again."
        if isinstance(stream, GroupedStream) != (self.groups is not None):
            raise ParameterError("groups", problem)
        if stream.width != width:
            raise ParameterError("time", problem)

    def _widen(self, values: Array, times: Array | float, group: Array | float = np.nan) -> Array:
        """Return values with `times` and `group` where the rows have these columns."""
        names, m = getattr(self, "feature_names_in_", None), values.shape[-1]
        return self._side_columns(names, m + self._n_side_columns).insert(values, times, group)

    def _note_times(self, before: StreamState | None, stream: StreamState) -> None:
        """Warn of new rows whose times could not be used."""
        counts, known = stream.time_counts, TimeCounts()
        if before is not None:
            known = before.time_counts
        new = TimeCounts(*(now - then for now, then in zip(counts, known, strict=True)))
        if any(new):
            warn(IrregularTimesWarning(self.time, **new._asdict()))
        forgotten = getattr(before, "n_forgotten", 0)
        if isinstance(stream, GroupedStream) and stream.n_forgotten and not forgotten:
            warn(GroupLimitWarning(MAX_GROUPS))

    def _reporting(self, X: Any, n: int, config: WindowConfig) -> Any:
        return reporting(
            self, X, self.n_passes * (n // config.batch_size + 1), verbose=0, step_verbose=0
        )

    def _complete_early(
        self, stream: StreamState, rows: Array, config: WindowConfig, settings: dict[str, Any]
    ) -> Array | None:
        return stream.complete_early(rows, config, **settings)

    def _fit_stream(
        self,
        stream: StreamState,
        rows: Array,
        more: dict[str, Array],
        config: WindowConfig,
        callback: Callback,
    ) -> tuple[StreamState, Array | None]:
        config = replace(config, slice_work=np.inf)  # no row of a table waits for its answer
        for _ in range(self.n_passes):
            stream, stopped = self._fit_pass(stream, rows, more, config, callback)
            if stopped:
                break
            config = replace(config, arrival=None)  # the table follows itself in no order
        return stream, None

    def _fit_pass(
        self,
        stream: StreamState,
        rows: Array,
        more: dict[str, Array],
        config: WindowConfig,
        callback: Callback,
    ) -> tuple[StreamState, bool]:
        """Return the stream after all rows, n x m, and whether a callback has stopped it."""
        stopped, start = False, 0
        while start < len(rows) and not stopped:
            part = slice(start, start + stream.needs(config))
            now: dict[str, Any] = {name: values[part] for name, values in more.items()}
            stream, _ = stream.append(rows[part], config, **now)
            start = part.stop
            if not len(stream.pending):
                self._print_update(stream)
            stopped = bool(callback(Step(stream.batches, 0, stream.scores.recent, 0.0)))
        if len(stream.pending):
            stream = stream.learn(config)
            self._print_update(stream)
        return stream, stopped
