"""The model of a stream, which imputes rows before it learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hirank import OnlineImputer, OnlineKFMC
from hirank._typing import Array
from hirank.cli.models import feature_names, load_model, restore_columns
from hirank.cli.reporter import Reporter
from hirank.estimators.online_imputer import ORDERS
from hirank.exceptions import ModelFileError, ParameterError

if TYPE_CHECKING:
    from hirank.estimators.saving import Model

MAX_ROWS = 256
"""Rows that are imputed together."""


class StreamModel:
    """Imputes rows with a model, and updates it.

    `impute` gives what ``partial_fit_transform`` would. Where a model imputes rows before it learns
    from them, the row that leads to a fit waits for `learn`, so that it can be written before.

    Parameters
    ----------
    model : OnlineImputer, OnlineKFMC, Imputer or KFMC
    frozen : bool
        Learn nothing, as models of tables cannot.
    coverage : float, optional
        Of intervals around imputed values, by an OnlineImputer.
    """

    def __init__(self, model: Model, *, frozen: bool, coverage: float | None = None) -> None:
        self.model, self.frozen, self.coverage = model, frozen, coverage
        self.wanted: tuple[str, ...] | None = None  # the columns of a new model
        self._before = model

    @property
    def is_fitted(self) -> bool:
        """Whether there is a model; before that, column means are imputed."""
        return bool(self.model.__sklearn_is_fitted__())

    @property
    def is_new(self) -> bool:
        """Whether the model has not seen any rows, and does not know its columns."""
        return not hasattr(self.model, "n_features_in_")

    @property
    def room(self) -> int:
        """The number of rows that can be imputed before something is learned."""
        if self.frozen or not isinstance(self.model, OnlineImputer | OnlineKFMC):
            return MAX_ROWS
        config: Any = self.model._config()
        return int(config.n_warmup) if self.is_new else max(1, self.model._stream.needs(config))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns."""
        return feature_names(self.model)

    @property
    def time_column(self) -> str | None:
        """The name of the column with the times of rows; None if there is none."""
        time = getattr(self.model, "time", None) if isinstance(self.model, OnlineImputer) else None
        return None if time in ORDERS else self._name(time)

    @property
    def group_column(self) -> str | None:
        """The name of the column with the labels of groups; None if there is none."""
        return self._name(getattr(self.model, "groups", None))

    def _name(self, column: Any) -> str | None:
        if isinstance(column, str) or column is None:
            return column
        return None if self.names is None else self.names[column]

    @property
    def recent_error(self) -> float | None:
        """The error of recent rows; None if it is not known."""
        error = getattr(self.model, "recent_error_", np.nan)
        return float(error) if np.isfinite(error) else None

    def impute(self, rows: Array, labels: Sequence[str]) -> tuple[Array, Array | None]:
        """Return rows, n x m, imputed, and ends of intervals, 2 x n x m, if they are wanted.

        A value is NaN where nothing can be imputed. `labels` are those of the groups of the rows;
        they are not used where there are none.
        """
        self._before = copy(self.model)
        if not self._waits(self.model):
            return self._arrive(rows, labels)
        if self.frozen:
            return self._foresee(rows, labels)
        # Only the last row of as many as there is room for leads to a fit. The others arrive before
        # it, since where rows follow each other it is imputed with their help.
        if len(rows) == 1:
            return self._foresee(rows, labels)
        first = self._arrive(rows[:-1], labels[:-1])
        last = self._foresee(rows[-1:], labels[-1:])
        filled, ends = (
            None if one is None or two is None else np.concatenate([one, two], axis=-2)
            for one, two in zip(first, last, strict=True)
        )
        assert filled is not None
        return filled, ends

    def _arrive(self, rows: Array, labels: Sequence[str]) -> tuple[Array, Array | None]:
        """Return rows as imputed on arrival, and learn from them."""
        named, ends = self._named(rows, labels), None
        if self.coverage is None:
            filled = self.model.partial_fit_transform(named)
        else:
            assert isinstance(self.model, OnlineImputer)
            filled, *both = self.model.partial_fit_interval(named, self.coverage)
            ends = np.array(both)
        return self._numbers(filled), ends

    def _foresee(self, rows: Array, labels: Sequence[str]) -> tuple[Array, Array | None]:
        """Return rows as imputed by the model as it stands."""
        named, ends = self._named(rows, labels), None
        if self.coverage is not None:
            assert isinstance(self.model, OnlineImputer)
            ends = np.array(self.model.interval(named, self.coverage))
        filled = self._numbers(self.model.transform(named)) if self._is_lacking(rows) else rows
        return filled, ends

    def learn(self, rows: Array, labels: Sequence[str]) -> None:
        """Learn from the last of the rows that were imputed and written, unless `impute` did."""
        if self._waits(self._before) and not self.frozen:
            self.model.partial_fit(self._named(rows[-1:], labels[-1:]))
        self._before = self.model

    def undo(self) -> None:
        """Take back rows that were imputed and could not be written."""
        self.model = self._before

    def _named(self, rows: Array, labels: Sequence[str]) -> Any:
        """Return rows, n x m, with the names of the columns, which scikit-learn compares."""
        names, column = self.wanted if self.is_new else self.names, self.group_column
        if names is not None:
            columns: dict[str, Any] = dict(zip(names, rows.T, strict=True))
            if column is not None:
                columns[column] = pa.array(labels, pa.string())
            return pa.table(columns)
        return rows

    def _is_lacking(self, rows: Array) -> bool:
        """Return whether a value is missing; the labels of groups are not among the numbers."""
        missing = np.isnan(rows)
        if self.group_column is not None and self.names is not None:
            missing[:, self.names.index(self.group_column)] = False
        return bool(missing.any())

    def _numbers(self, filled: Any) -> Array:
        """Return imputed rows as numbers, NaN where the labels are."""
        if self.group_column is not None and self.names is not None:
            filled[:, self.names.index(self.group_column)] = np.nan
        return restore_columns(np.asarray(filled, np.float64), self.model)

    def _waits(self, model: Model) -> bool:
        """Return whether rows are imputed first and learned from later."""
        is_fitted = bool(model.__sklearn_is_fitted__())
        return self.frozen or (is_fitted and isinstance(model, OnlineImputer))


def open_model(
    path: Path,
    reporter: Reporter,
    *,
    frozen: bool,
    time: str | None = None,
    groups: str | None = None,
    coverage: float | None = None,
    forecasts: bool = False,
) -> StreamModel:
    """Return the model of a file, or a new one if the file does not exist.

    `time` and `groups` are the columns with the times and labels of rows, `coverage` is that of
    intervals, and `forecasts` says whether the next rows are asked for.
    """
    if not path.exists():
        if frozen:
            raise ModelFileError(path, "No such file. Omit --frozen to start a new model.")
        reporter.note(f"{path.name} does not exist: a new model learns from the first rows on.")
        if time in ORDERS:
            raise ParameterError("time", f"must not be {time!r}, which has another meaning.")
        new = OnlineImputer(random_state=0, time="auto" if time is None else time, groups=groups)
        return StreamModel(new, frozen=False, coverage=coverage)
    model = load_model(path)
    is_online = isinstance(model, OnlineImputer | OnlineKFMC)
    opened = StreamModel(model, frozen=frozen or not is_online, coverage=coverage)
    for is_unsuited, problem in _find_problems(opened, time, groups, forecasts=forecasts):
        if is_unsuited:
            raise ModelFileError(path, problem)
    if not (is_online or frozen):
        reporter.note(f"{path.name} is a model of a table: it imputes rows and learns nothing.")
    return opened


def _find_problems(
    opened: StreamModel, time: str | None, groups: str | None, *, forecasts: bool
) -> list[tuple[bool, str]]:
    """Return why a model may be unsuited for what is asked of it, and whether it is."""
    model = opened.model
    has_filters = isinstance(model, OnlineImputer) and model.time is not None
    return [
        (
            time is not None and opened.time_column != time,
            "This model does not take times from that column. Omit --time, or start anew.",
        ),
        (
            groups is not None and opened.group_column != groups,
            "This model does not take labels from that column. Omit --group, or start anew.",
        ),
        (
            getattr(model, "_is_ordered", False),
            "This model imputes a row with the help of rows that are close in time. Use hirank "
            "apply, or fit a model without --time and --group.",
        ),
        (
            getattr(model, "groups", None) is not None and opened.names is None,
            "The column of groups has no name. Fit the model to rows with column names.",
        ),
        (
            opened.coverage is not None and not isinstance(model, OnlineImputer),
            "This model has no intervals for streams. Omit --interval.",
        ),
        (forecasts and not has_filters, "This model has no forecasts. Omit --forecast."),
        (
            opened.frozen and not opened.is_fitted,
            "The model has seen too few rows. Omit --frozen.",
        ),
    ]
