"""OnlineImputer as a transformer of river, for streams of dicts and of small data frames."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.estimators import OnlineImputer
from hirank.estimators.groups import Labels, read_labels
from hirank.estimators.online_base import CheckedRows
from hirank.estimators.online_imputer import ORDERS
from hirank.exceptions import FeatureLimitWarning, warn
from hirank.kernels import Kernel

try:
    from river import base
except ImportError as error:
    raise ImportError('hirank.river needs river: pip install "hirank[river]".') from error

__all__ = ["Imputer"]

Frame = TypeVar("Frame")


class Imputer(base.MiniBatchTransformer):
    """Impute rows as they arrive, in pipelines of river.

    A missing value is None, NaN or an absent key. ``transform_one`` returns the row with its values
    as they are, and all other features that were learned from, imputed. Before the first fit, they
    are imputed with their means so far.

    Features may appear at any time, and in any order. Those that were there at the first fit are
    imputed by the model from then on. To include one that came later, the model is restarted from
    its window, after two batches or so; until then the feature is imputed with its mean.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points in the dictionary. ``"auto"`` lets it grow with the window.
    window : int, default=600
        Rows that are kept.
    batch_size : int, default=50
        Rows that are learned from together. Single rows wait until there are so
        many.
    n_warmup : int, default=200
        Rows before the first fit, at most `window`.
    kernel : {"auto", "rbf", "poly"} or Kernel, default="auto"
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between samples.
    beta : float, optional
        Ridge of the codes, by default 1e-10.
    drift_detection : {"refit", "monitor", "off"}, default="refit"
        Hold out a few observed values of each row on arrival, predict them, and record the errors.
        With ``"refit"`` the model is fitted again when they increase.
    time : "auto", "rows", key or None, default="auto"
        Whether rows follow each other in time. ``"auto"`` finds out: filters of the last rows take
        part from the second row on, and a row is imputed as if it were the next one. ``"rows"``
        says that they are in order, evenly spaced. Another key is that of the times, numbers or
        datetimes, which are not imputed. Rows without any number count as time that passes. None
        takes each row by itself.
    groups : key, optional
        That of labels, text or numbers, of devices or other groups, which every row must have: rows
        of one follow each other, those of different ones do not. It is not imputed. The filters of
        1000 groups are kept, as in :class:`hirank.OnlineImputer`.
    max_features : int, default=1000
        Features that are learned from at most. Values of all others pass through untouched, with
        one warning.
    seed : int, optional
        Determines starting dictionaries and held-out values.

    Attributes
    ----------
    recent_error : float
        Root mean square error of the last 200 held-out values, in standard deviations of their
        features. 1 is as poor as the mean; NaN before there are any.
    model : OnlineImputer
        The estimator behind it, with further diagnostics.
    features : dict
        The features that are learned from, and their columns in the model.

    Notes
    -----
    - Booleans are the numbers 0 and 1. A missing one is imputed with a number, not rounded.
    - Other values that are not numbers, and infinite ones, pass through untouched. Nothing is
      learned from them.
    - A missing value of a feature of which no number is known yet stays missing: ``transform_one``
      leaves its key out, which other estimators of river understand, as they may not None.
    - Memory is bounded by `window` times the number of features, and that by `max_features`.
    - A row that lacks nothing costs nothing to transform. Any other takes tens of milliseconds in
      ``transform_one``, and far less in ``transform_many``.
    - Absent keys are missing, not 0: this is not for bags of words.

    Examples
    --------
    >>> import math
    >>> from hirank.river import Imputer
    >>> model = Imputer(window=100, n_warmup=50, seed=0)
    >>> for i in range(100):
    ...     t = math.sin(i)
    ...     model.learn_one({"t": t, "square": t**2, "wave": math.sin(3 * t), "name": "a"})
    >>> row = model.transform_one({"t": 0.5, "wave": math.sin(1.5), "name": "b"})
    >>> list(row), abs(row["square"] - 0.25) < 0.05
    (['t', 'wave', 'name', 'square'], True)
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        window: int = 600,
        batch_size: int = 50,
        n_warmup: int = 200,
        kernel: str | Kernel = "auto",
        bandwidth: str | float = "path",
        beta: float | None = None,
        drift_detection: str = "refit",
        time: Hashable = "auto",
        groups: Hashable = None,
        max_features: int = 1000,
        seed: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.window = window
        self.batch_size = batch_size
        self.n_warmup = n_warmup
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.beta = beta
        self.drift_detection = drift_detection
        self.time = time
        self.groups = groups
        self.max_features = max_features
        self.seed = seed
        self.model = OnlineImputer(
            n_components,
            window=window,
            batch_size=batch_size,
            n_warmup=n_warmup,
            kernel=kernel,
            bandwidth=bandwidth,
            beta=beta,
            drift_detection=drift_detection,
            time=0 if self._has_times else time,  # type: ignore[arg-type]
            groups=None if groups is None else int(self._has_times),
            random_state=seed,
        )
        self.model._check_params()
        self.features: dict[Hashable, int] = {key: j for j, key in enumerate(self._side_keys)}
        self._full = False  # whether a feature had to be left out

    @property
    def recent_error(self) -> float:
        return getattr(self.model, "recent_error_", math.nan)

    @property
    def _has_times(self) -> bool:
        """Whether rows have a key of times, which is the first column of the model."""
        return self.time is not None and self.time not in ORDERS

    @property
    def _side_keys(self) -> list[Hashable]:
        """The keys that are not imputed, which are the first columns of the model."""
        times = [self.time] if self._has_times else []
        return times if self.groups is None else [*times, self.groups]

    def learn_one(self, x: dict[Hashable, Any]) -> None:
        """Learn from a row.

        Parameters
        ----------
        x : dict
        """
        known: dict[Hashable, float] = {}
        for key, value in x.items():
            number = self._number(key, value)
            if number is not None and math.isfinite(number):
                known[key] = number
        # Sorted, so that what is learned does not depend on the order of the keys.
        self._add(sorted(known.keys() - self.features.keys(), key=repr))
        self._learn(self._row(known), self._labels([x.get(self.groups)]))

    def transform_one(self, x: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Impute a row with the model as it stands. Nothing is learned.

        Parameters
        ----------
        x : dict

        Returns
        -------
        x : dict
            A new one: the keys of x in their order, without those of missing values that cannot be
            imputed, then those of the features that x lacks.
        """
        numbers = {key: self._number(key, value) for key, value in x.items()}
        missing = [k for k, number in numbers.items() if number is not None and math.isnan(number)]
        imputed = [key for key in self.features if key not in self._side_keys]
        out = {k: v for k, v in x.items() if k in self.features or k not in missing}
        out.update(dict.fromkeys(key for key in imputed if key not in x))
        to_impute = [key for key in imputed if key in missing or key not in x]
        if to_impute:
            filled = self._impute(self._row(numbers), self._labels([x.get(self.groups)]))[0]
            out.update((key, float(filled[self.features[key]])) for key in to_impute)
        return out

    def interval_one(
        self, x: dict[Hashable, Any], coverage: float = 0.9
    ) -> dict[Hashable, tuple[float, float]]:
        """Return intervals that contain the missing values of a row; nothing is learned.

        Their widths are calibrated by the values that are held out of each row that is learned.

        Parameters
        ----------
        x : dict
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        intervals : dict
            Lower and upper end, by key, around what ``transform_one`` imputes; without keys of
            which too little is known.
        """
        self.model._check_interval(coverage)
        numbers = {key: self._number(key, value) for key, value in x.items()}
        row = self._row(numbers)
        if not self.features or not np.isnan(row).any() or not hasattr(self.model, "_stream"):
            return {}
        rows = self._checked(row, self._labels([x.get(self.groups)]))
        values, more = self.model._split(rows, self.model._stream)
        found = self.model._stream.complete(values, self.model._config(), coverage=coverage, **more)
        _, lower, upper = self.model._widen(found, math.nan)[:, 0]
        missing = [key for key in self.features if math.isnan(numbers.get(key, math.nan) or 0.0)]
        ends = {k: (float(lower[j]), float(upper[j])) for k, j in self.features.items()}
        return {key: ends[key] for key in missing if not math.isnan(ends[key][0])}

    def forecast(
        self, h: int, coverage: float = 0.9, group: Any = None
    ) -> tuple[list[dict[Hashable, float]], list[dict[Hashable, tuple[float, float]]]]:
        """Return the next rows if nothing arrives, with intervals; nothing is learned.

        Parameters
        ----------
        h : int
            How many rows.
        coverage : float, default=0.9
            Of the intervals, between 0 and 1.
        group : label
            Only with `groups`: that of the group whose rows are forecast.

        Returns
        -------
        rows : list of dict
            Without keys of which no number is known; times as numbers, seconds for datetimes.
        intervals : list of dict
            Lower and upper end, by key.
        """
        ahead, lower, upper = self.model.forecast(h, coverage, group)
        known = {key: j for key, j in self.features.items() if key != self.groups}
        rows: list[dict[Hashable, float]] = []
        ends: list[dict[Hashable, tuple[float, float]]] = []
        for i in range(h):
            at = {key: j for key, j in known.items() if not math.isnan(ahead[i, j])}
            rows.append({key: float(ahead[i, j]) for key, j in at.items()})
            imputed = {key: j for key, j in at.items() if key not in self._side_keys}
            ends.append({k: (float(lower[i, j]), float(upper[i, j])) for k, j in imputed.items()})
        return rows, ends

    def _labels(self, values: list[Any]) -> tuple[str, ...] | None:
        """Return the labels of rows; None without groups. Raise InputError if a row has none."""
        return None if self.groups is None else read_labels(values, self.groups)

    def _checked(self, rows: Array, labels: tuple[str, ...] | None) -> CheckedRows:
        """Return rows, n x m, with their labels as the model takes them."""
        found = None if labels is None else Labels(labels, self.features[self.groups])
        return CheckedRows(rows, rows, rows, found, {})

    def _number(self, key: Hashable, value: Any) -> float | None:
        """Return a value as a number, NaN if it is missing, None if it is not a number."""
        if self._has_times and key == self.time and isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return aware.timestamp()
        return _number(value)

    def _columns(self, frame: nw.DataFrame[Any]) -> dict[Hashable, _Column]:
        """Return the columns of a data frame by name."""
        columns = _columns(frame)
        times = columns.get(self.time) if self._has_times else None
        if times is not None and times.native.dtype in (nw.Datetime, nw.Date):
            seconds = times.native.dt.timestamp("us").cast(nw.Float64).fill_null(math.nan) / 1e6
            columns[self.time] = times._replace(numbers=seconds.to_numpy().astype(np.float64))
        return columns

    def learn_many(self, X: Any) -> None:
        """Learn from rows, in their order, as if one by one.

        Parameters
        ----------
        X : data frame
            Of pandas, polars or another kind that narwhals knows.
        """
        frame = nw.from_native(X, eager_only=True)
        columns = self._columns(frame)
        first: dict[Hashable, int] = {}  # row with the first number
        for key, column in columns.items():
            finite = np.isfinite(column.numbers)
            if finite.any() and key not in self.features:
                first[key] = int(finite.argmax())
        labels = self._column_labels(columns, len(frame))
        starts = sorted({0, *first.values()})  # where new features begin
        for start, stop in zip(starts, [*starts[1:], len(frame)], strict=True):
            self._add(sorted((key for key in first if first[key] == start), key=repr))
            part = None if labels is None else labels[start:stop]
            self._learn(self._rows(columns, len(frame))[start:stop], part)

    def _column_labels(self, columns: dict[Hashable, _Column], n: int) -> tuple[str, ...] | None:
        """Return the labels of the n rows of a data frame; None without groups."""
        column = columns.get(self.groups)
        return self._labels([None] * n if column is None else column.native.to_list())

    def transform_many(self, X: Frame) -> Frame:
        """Impute rows with the model as it stands. Nothing is learned.

        Parameters
        ----------
        X : data frame

        Returns
        -------
        X : data frame
            Of the same kind and index: the columns of X in their order, then those of the features
            that X lacks.
        """
        frame = nw.from_native(X, eager_only=True)
        columns = self._columns(frame)
        labels = self._column_labels(columns, len(frame))
        filled = self._impute(self._rows(columns, len(frame)), labels)
        fills = {key: filled[:, j] for key, j in self.features.items()}
        new = {
            key: column.patched(fills[key])
            for key, column in columns.items()
            if column.open and key in self.features
        }
        side = self._side_keys
        new.update((k, fill) for k, fill in fills.items() if k not in columns and k not in side)
        library = nw.get_native_namespace(frame)
        series: list[nw.Series[Any]] = [
            nw.new_series(key, values, native_namespace=library)  # type: ignore[arg-type]
            for key, values in new.items()
        ]
        return frame.with_columns(*series).to_native()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 5, "window": 40, "n_warmup": 40, "batch_size": 40}

    def _add(self, keys: list[Hashable]) -> None:
        """Make columns for new features."""
        room = self.max_features - len(self.features)
        if len(keys) > room and not self._full:
            self._full = True
            warn(FeatureLimitWarning(self.max_features, keys[room]))
        keys = keys[:room]
        if keys and hasattr(self.model, "_stream"):
            self.model.add_features(len(keys))
        for key in keys:
            self.features[key] = len(self.features)

    def _row(self, numbers: Mapping[Hashable, float | None]) -> Array:
        """Return numbers as an array, 1 x m, NaN where missing."""
        row = np.full((1, len(self.features)), np.nan)
        for key, number in numbers.items():
            if number is not None and key in self.features and math.isfinite(number):
                row[0, self.features[key]] = number
        return row

    def _rows(self, columns: dict[Hashable, _Column], n: int) -> Array:
        """Return columns, each n long, as an array, n x m, NaN where missing."""
        rows = np.full((n, len(self.features)), np.nan)
        for key, column in columns.items():
            if key in self.features:
                rows[:, self.features[key]] = column.numbers
        rows[np.isinf(rows)] = np.nan
        return rows

    def _learn(self, rows: Array, labels: tuple[str, ...] | None) -> None:
        if self.time is None:
            rows = rows[~np.isnan(rows).all(axis=1)]
        if not rows.size or rows.shape[1] <= len(self._side_keys):
            return
        if labels is not None:
            rows = rows.astype(object)
            rows[:, self.features[self.groups]] = labels
        self.model.partial_fit(rows)

    def _impute(self, rows: Array, labels: tuple[str, ...] | None) -> Array:
        """Return rows, n x m, NaN = missing, imputed by the model or with means."""
        if not np.isnan(rows).any():
            return rows
        if not hasattr(self.model, "_stream"):
            return rows
        stream = self.model._stream
        values, more = self.model._split(self._checked(rows, labels), stream)
        filled = values
        if stream.can_impute:
            filled = stream.complete(values, self.model._config(), **more)
        filled = np.where(np.isnan(filled), stream.means(), filled)
        return self.model._widen(filled, more.get("times", math.nan))


def _number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing, None if it is not a number."""
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return math.nan
    if isinstance(value, Real | Decimal | np.bool_):
        return float(value)
    return None


class _Column(NamedTuple):
    """A column of a data frame, n long."""

    native: nw.Series[Any]
    numbers: Array  # NaN where there is none
    missing: BoolArray  # where there is no value at all
    foreign: bool  # whether there are values that are not numbers

    @property
    def open(self) -> bool:
        """Whether there are missing values, and numbers may take their place."""
        pandas, kind = self.native.implementation.is_pandas_like(), self.native.dtype
        return bool(self.missing.any()) and (not self.foreign or (pandas and kind == nw.Object))

    def patched(self, imputed: Array) -> NDArray[Any]:
        """Return the values, with the missing ones taken from `imputed`, n long."""
        if self.foreign:
            values = zip(self.native.to_list(), imputed.tolist(), self.missing, strict=True)
            mixed = (new if missing else value for value, new, missing in values)
            return np.fromiter(mixed, dtype=object)
        kind = np.float32 if self.native.dtype == nw.Float32 else np.float64
        return np.where(self.missing, imputed, self.numbers).astype(kind)


def _columns(frame: nw.DataFrame[Any]) -> dict[Hashable, _Column]:
    """Return the columns of a data frame by name."""
    # frame[key] would take a name that is a number for a row.
    return {key: _column(frame.get_column(key)) for key in frame.columns}


def _column(native: nw.Series[Any]) -> _Column:
    if native.dtype.is_numeric() or native.dtype == nw.Boolean:
        numbers = native.cast(nw.Float64).fill_null(math.nan).to_numpy().astype(np.float64)
        return _Column(native, numbers, np.isnan(numbers), False)
    found = [_number(value) for value in native.to_list()]
    numbers = np.array([math.nan if v is None else v for v in found], dtype=np.float64)
    foreign = np.array([v is None for v in found], dtype=bool)
    return _Column(native, numbers, np.isnan(numbers) & ~foreign, bool(foreign.any()))
