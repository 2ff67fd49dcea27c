"""What both streaming estimators share: checks, attributes, state and output; no mathematics."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from hirank._checks import Rule, choice, count, flag, number
from hirank._typing import Array, BoolArray, PathLike
from hirank.estimators.base import BaseTransformer
from hirank.estimators.groups import Labels, take_labels
from hirank.estimators.saving import from_state, get_state, save
from hirank.estimators.streaming import StreamMixin
from hirank.estimators.validation import (
    KERNEL_RULES,
    check_n_components,
    check_observed,
    check_params,
    check_table,
    make_kernel,
    missing_value,
)
from hirank.exceptions import EmptyRowsWarning, SkippedRowsWarning, WarmupWarning, warn
from hirank.kernels import Kernel
from hirank.online.algorithm2 import Algorithm2Model, Algorithm2Stream
from hirank.online.buffer import WindowModel
from hirank.online.config import n_points
from hirank.online.updates import Update
from hirank.online.window import StreamState
from hirank.optim.trace import Callback

COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_")
"""What scikit-learn stores about the columns of a table."""


StreamModel: TypeAlias = WindowModel | Algorithm2Model
S = TypeVar("S", StreamState, Algorithm2Stream)


class CheckedRows(NamedTuple):
    """The rows of a call."""

    given: Any
    table: Array  # n x m, in the precision in which they were given
    values: Array  # the same in double precision, NaN where missing
    labels: Labels | None  # of their groups
    columns: dict[str, Any]  # what is known about the columns


@dataclass(eq=False, repr=False)
class BaseOnline(StreamMixin, BaseTransformer, Generic[S]):
    """An estimator whose whole state is one frozen record, ``_stream``.

    Attributes are read from the record, so that they cannot disagree with it, also after a call was
    interrupted. A subclass makes the configuration of its stream (``_config``) and fits a table
    that is given as a whole (``_fit_stream``).
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    n_warmup: int = 200
    n_passes: int = 1
    kernel: str | Kernel = "rbf"
    bandwidth: str | float = "path"
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float | None = None
    scale: bool = True
    missing_values: float = np.nan
    add_indicator: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    _record_type: ClassVar[Any]
    _rules: ClassVar[dict[str, Rule]] = {}

    @abstractmethod
    def _config(self) -> Any:
        """Return the configuration of the stream."""

    @property
    def _uses_order(self) -> bool:
        """Whether rows without values count, since time passes."""
        return False

    def _split(self, rows: CheckedRows, stream: S | None) -> tuple[Array, dict[str, Any]]:
        """Return rows without times and labels, n x m, and these as arguments of the stream.

        Raise an error if the stream had other columns.
        """
        return rows.values, {}

    def _widen(self, values: Array, times: Array | float, group: Array | float = np.nan) -> Array:
        """Return values with `times` and `group` where the rows have these columns."""
        return values

    def _note_times(self, before: S | None, stream: S) -> None:
        """Warn of new rows whose times could not be used."""

    @abstractmethod
    def _fit_stream(
        self, stream: S, rows: Array, more: dict[str, Array], config: Any, callback: Callback
    ) -> tuple[S, Array | None]:
        """Return the stream after all passes over rows, n x m, and the rows if they are imputed."""

    def transform(self, X: Any) -> Any:
        """Impute rows with the model as it stands, each on its own. Nothing is learned.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        self._check_fitted()
        rows = self._check_rows(X, reset=False)
        return self._output(rows.table, rows, None)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, optional

        Returns
        -------
        names : array of str
        """
        names: NDArray[np.object_] = super().get_feature_names_out(input_features)
        if not self.add_indicator:
            return names
        indicators = np.array([f"missingindicator_{name}" for name in names], dtype=object)
        return np.concatenate([names, indicators])

    def save(self, path: PathLike) -> None:
        """Write the model to a file, from which :func:`hirank.load` restores it.

        The restored model continues with the same results to the bit. The file appears complete or
        not at all, contains arrays, numbers and strings, and is read without running any code. It
        contains the rows that are kept, so whoever has the file can read them.

        Parameters
        ----------
        path : str or path
            By convention with the extension ``.hirank``. An existing file is replaced.

        Notes
        -----
        At least one row must have been seen; the first fit may still be to come. A RandomState
        object given as `random_state` is saved as the seed that was drawn from it. A kernel that is
        not one of hirank's own cannot be saved.
        """
        save(self, path)

    def get_state(self) -> dict[str, Any]:
        """Return the whole state of the stream as nested dicts and lists of arrays and numbers.

        ``from_state`` continues from it with the same results to the bit.

        Returns
        -------
        state : dict
        """
        return get_state(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a model that continues where ``get_state`` was called.

        Parameters
        ----------
        state : dict

        Returns
        -------
        model : of this class
        """
        return from_state(cls, state)

    @property
    def _stream(self) -> S:
        """The state of the stream; an AttributeError before the first row."""
        if "_record" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} has not seen any rows yet.")
        stream: S = vars(self)["_record"]
        return stream

    @property
    def recent_error_(self) -> float:
        return self._stream.scores.recent

    @property
    def error_history_(self) -> NDArray[np.void]:
        return self._stream.scores.history.copy()

    @property
    def n_samples_seen_(self) -> int:
        return self._stream.samples

    @property
    def n_iter_(self) -> int:
        return self._stream.batches

    @property
    def last_update_(self) -> Update:
        return self._stream.update

    @property
    def dictionary_(self) -> Array:
        model: StreamModel | None = self._stream.model
        if model is None:
            raise AttributeError("There is no dictionary before the first fit.")
        return self._widen(model.points(), np.nan)

    @property
    def n_components_(self) -> int:
        return len(self.dictionary_)

    @property
    def kernel_(self) -> Kernel:
        model: StreamModel | None = self._stream.model
        return make_kernel(self) if model is None or model.kernel is None else model.kernel

    def __sklearn_is_fitted__(self) -> bool:
        return "_record" in vars(self) and self._stream.can_impute

    def _check_params(self) -> None:
        """Raise ParameterError if a parameter cannot be used."""
        check_params(self, _SHARED_RULES | KERNEL_RULES | self._rules)
        make_kernel(self)  # checks degree and offset

    def _check_fitted(self) -> None:
        stream: S | None = getattr(self, "_stream", None)
        name = type(self).__name__
        if stream is None:
            raise NotFittedError(
                f"This {name} instance is not fitted yet. Call partial_fit with the first rows of "
                "a stream, or fit with a table."
            )
        if not stream.can_impute:
            missing = max(1, stream.needs(self._config()))
            raise NotFittedError(
                f"This {name} instance is not fitted yet: it has {len(stream.pending)} rows, and "
                f"needs {missing} more for its first fit. Call partial_fit with more rows, set a "
                "smaller n_warmup, or call fit."
            )

    def _points(self, n: int) -> int:
        """Return the number of points of the dictionary for n rows."""
        if self.n_components != "auto":
            check_n_components(int(self.n_components), n)
        return n_points(self.n_components, n)

    def _learn(self, X: Any, *, impute: bool) -> Array | None:
        self._check_params()
        new = getattr(self, "_stream", None) is None
        rows = self._check_rows(X, reset=new)
        with self._workers():
            filled = self._advance(rows, impute=impute)
        return self._output(rows.table, rows, filled) if impute else None

    def _check_rows(self, X: Any, *, reset: bool) -> CheckedRows:
        """Return rows as given, and in double precision with NaN where missing.

        Also return what is known about their columns. A stream that is reset stores that together
        with its rows, since a call that fails must change nothing.
        """
        witness = copy(self) if reset else self
        names = None if reset else getattr(self, "feature_names_in_", None)
        rest, labels = take_labels(X, getattr(self, "groups", None), names)
        table, observed = check_table(witness, rest, reset=reset)
        values = table.astype(np.float64)
        values[~observed] = np.nan
        return CheckedRows(X, table, values, labels, witness._column_attributes())

    def _column_attributes(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k in COLUMN_ATTRIBUTES}

    def _commit(self, stream: S, columns: dict[str, Any]) -> None:
        """Store a stream that has advanced, in one assignment that cannot be interrupted."""
        rest = {k: v for k, v in vars(self).items() if k not in COLUMN_ATTRIBUTES}
        self.__dict__ = {**rest, **columns, "_record": stream}

    def _new_stream(self, width: int) -> S:
        stream: S = self._record_type.empty(width, self._draw_seed())
        return stream

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _advance(self, given: CheckedRows, *, impute: bool, **options: Any) -> Array:
        """Advance the stream by rows, and return them imputed if asked for.

        With the option `coverage`, 3 x n x m: imputed rows, and lower and upper ends of intervals.
        """
        rows, more = self._split(given, getattr(self, "_stream", None))
        known: S | None = getattr(self, "_stream", None)
        stream = self._new_stream(rows.shape[1]) if known is None else known
        config = self._config()
        filled, early = rows.copy(), np.zeros(len(rows), bool)
        without_model = np.zeros(len(rows), bool)
        if options:
            filled = np.repeat(rows[None], 3, axis=0)
        has_values: BoolArray = ~np.asarray(np.isnan(rows).all(axis=1))
        start = 0
        while start < len(rows):
            part = slice(start, _next_stop(has_values, start, max(1, stream.needs(config))))
            before, learned, start = stream.batches, _learns(stream), part.stop
            early[part] = has_values[part] & (not stream.can_impute)
            without_model[part] = stream.model is None
            now = {name: values[part] for name, values in more.items()}
            stream, done = stream.append(rows[part], config, impute=impute, **now, **options)
            if done is not None:
                filled[..., part, :], early[part] = done, False
            if (learned or stream.batches > before) and not _learns(stream):
                self._print_update(stream)
        if impute:
            at = np.flatnonzero(without_model & ~early)
            labels = {name: values[at] for name, values in more.items() if name == "labels"}
            settings = {**options, **labels, "slices": len(rows)}
            again = self._complete_early(stream, rows[at], config, settings) if len(at) else None
            if again is not None:
                filled[..., at, :] = np.where(np.isnan(again), filled[..., at, :], again)
            filled = self._finish(filled, rows, stream, early, config, options)
        elif not has_values.all() and not self._uses_order:
            warn(SkippedRowsWarning(int((~has_values).sum()), "they have no observed values."))
        self._note_times(known, stream)
        self._commit(stream, given.columns)
        return self._widen(filled, more.get("times", np.nan))

    def _complete_early(
        self, stream: S, rows: Array, config: Any, settings: dict[str, Any]
    ) -> Array | None:
        """Return rows that came before the first model, imputed by it; None if not by it."""
        return None

    def _finish(
        self,
        filled: Array,
        rows: Array,
        stream: S,
        early: BoolArray,
        config: Any,
        options: dict[str, Any],
    ) -> Array:
        """Impute rows that came before the first fit, and those without usable values."""
        if early.any() and stream.can_impute:
            filled[..., early, :] = stream.complete(rows[early], config, **options)
        elif early.any():
            warn(WarmupWarning(int(early.sum())))
        young = early & (not stream.can_impute)
        if options:
            filled[0] = self._with_means(filled[0], rows, stream, warmup=young)
            return filled
        return self._with_means(filled, rows, stream, warmup=young)

    def _fit(self, X: Any) -> tuple[Array, CheckedRows, Array | None]:
        """Fit, and return the table, its rows with NaN where missing, and the rows if imputed."""
        self._check_params()
        rows = self._check_rows(X, reset=True)
        values, more = self._split(rows, None)
        known = ~np.isnan(values).all(axis=1)
        check_observed(~np.isnan(values), self.missing_values)
        if not known.all():
            warn(SkippedRowsWarning(int((~known).sum()), "they have no observed values."))
        used = values[known]
        self._points(len(used))  # raises if there are more components than rows
        config = self._config()
        with (
            self._learning(),
            self._reporting(X, len(used), config) as (callback, _),
            self._workers(),
        ):
            stream, done = self._fit_stream(
                self._new_stream(values.shape[1]),
                used,
                {name: one[known] for name, one in more.items()},
                config,
                callback,
            )
            stream = replace(stream, samples=self.n_passes * len(values))
            self._note_times(None, stream)
            self._commit(stream, rows.columns)
        if done is None:
            return rows.table, rows, None
        filled = np.full(values.shape, np.nan)
        filled[known] = done
        return rows.table, rows, self._with_means(filled, values, stream)

    @abstractmethod
    def _reporting(self, X: Any, n: int, config: Any) -> Any:
        """Return the context in which a table with n rows is fitted: see `reporting`."""

    def _print_update(self, stream: S) -> None:
        routine = stream.update in (Update.REFINED, Update.NONE)
        if self.verbose > 1 or (self.verbose and not routine):
            cause = getattr(stream, "cause", None)
            because = "" if cause is None else f" because {cause.value}"
            sys.stderr.write(
                f"[{type(self).__name__}] {stream.samples} rows, {stream.update.value}{because}; "
                f"recent error {stream.scores.recent:.3g}\n"
            )

    def _complete(self, given: CheckedRows) -> Array:
        """Impute rows, with a warning if some have no usable values."""
        stream = self._stream
        rows, more = self._split(given, stream)
        with self._workers():
            filled = stream.complete(rows, self._config(), **more)
        filled = self._with_means(filled, rows, stream)
        return self._widen(filled, more.get("times", np.nan))

    def _with_means(
        self, filled: Array, rows: Array, stream: S, warmup: BoolArray | bool = False
    ) -> Array:
        """Return rows with means where nothing better is known; NaN for features without any.

        Warn of rows of which nothing is known, besides those before the first fit.
        """
        if not np.isnan(filled).any():
            return filled
        means, missing = stream.means(), np.isnan(rows)
        to_impute, empty = missing & ~np.isnan(means), missing.all(axis=1)
        unknown = (np.isnan(filled) | ~to_impute).all(axis=1) & (to_impute.any(axis=1) | empty)
        unknown &= empty | ~(np.asarray(warmup) | self._uses_order)
        if unknown.any():
            warn(EmptyRowsWarning(tuple(np.flatnonzero(unknown).tolist())))
        return np.where(np.isnan(filled), means, filled)

    def _output(self, table: Array, rows: CheckedRows, filled: Array | None) -> Any:
        """Return imputed rows in the precision and columns that the user expects."""
        filled, missing = self._complete(rows) if filled is None else filled, np.isnan(rows.values)
        # Nothing is known about a feature that never had a value: it stays missing.
        filled = np.where(np.isnan(self._widen(self._stream.means(), 0.0, 0.0)), np.nan, filled)
        out = np.where(missing, filled.astype(table.dtype), table)
        if self.add_indicator:
            out = np.hstack([out, missing.astype(table.dtype)])
        return out if rows.labels is None else rows.labels.restore(out, rows.given, self)


_SHARED_RULES: dict[str, Rule] = {
    "n_warmup": count(),
    "n_passes": count(),
    "batch_size": count(),
    "max_iter": count(),
    "tol": number(least=0),
    "drift_detection": choice("refit", "monitor", "off"),
    "scale": flag,
    "missing_values": missing_value,
    "add_indicator": flag,
    "verbose": count(0),
}


def _learns(stream: Any) -> bool:
    """Return whether an update of a stream goes on."""
    return getattr(stream, "learning", None) is not None


def _next_stop(has_values: BoolArray, start: int, needs: int) -> int:
    """Return where the next part of rows ends: with the row that has the last value needed."""
    with_values = np.flatnonzero(has_values[start:])
    return start + int(with_values[needs - 1]) + 1 if len(with_values) >= needs else len(has_values)
