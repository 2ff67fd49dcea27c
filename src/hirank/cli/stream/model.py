"""The model of a stream, which imputes rows before it learns from them."""

from __future__ import annotations

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
    from them, learning waits for `learn`, so that the rows can be written in between.

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
        if isinstance(time, str) or time is None:
            return None if time in ORDERS else time
        return None if self.names is None else self.names[time]

    @property
    def recent_error(self) -> float | None:
        """The error of recent rows; None if it is not known."""
        error = getattr(self.model, "recent_error_", np.nan)
        return float(error) if np.isfinite(error) else None

    def impute(self, rows: Array) -> Array:
        """Return rows, n x m, imputed; NaN where nothing can be imputed."""
        self._before = copy(self.model)
        if self._waits(self.model):
            if not np.isnan(rows).any():
                return rows
            filled = self.model.transform(self._named(rows))
        else:
            filled = self.model.partial_fit_transform(self._named(rows))
        return restore_columns(np.asarray(filled, np.float64), self.model)

    def impute_with_ends(self, rows: Array) -> tuple[Array, Array | None]:
        """Return rows, n x m, imputed, and ends of intervals, 2 x n x m, if they are wanted."""
        if self.coverage is None:
            return self.impute(rows), None
        model = self.model
        assert isinstance(model, OnlineImputer)
        if self._waits(model):
            ends = model.interval(self._named(rows), self.coverage)
            return self.impute(rows), np.array(ends)
        self._before = copy(model)
        filled, *both = model.partial_fit_interval(self._named(rows), self.coverage)
        return restore_columns(np.asarray(filled, np.float64), self.model), np.array(both)

    def learn(self, rows: Array) -> None:
        """Learn from rows that were imputed and written, unless `impute` did."""
        if self._waits(self._before) and not self.frozen:
            self.model.partial_fit(self._named(rows))
        self._before = self.model

    def undo(self) -> None:
        """Take back rows that were imputed and could not be written."""
        self.model = self._before

    def _named(self, rows: Array) -> Any:
        """Return rows, n x m, with the names of the columns, which scikit-learn compares."""
        names = self.wanted if self.is_new else self.names
        return rows if names is None else pa.table(dict(zip(names, rows.T, strict=True)))

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
    coverage: float | None = None,
) -> StreamModel:
    """Return the model of a file, or a new one if the file does not exist.

    `time` is the column with the times of rows, `coverage` that of intervals.
    """
    if not path.exists():
        if frozen:
            raise ModelFileError(path, "No such file. Omit --frozen to start a new model.")
        reporter.note(f"{path.name} does not exist: a new model learns from the first rows on.")
        order = "auto" if time is None else time
        if time in ORDERS:
            raise ParameterError("time", f"must not be {time!r}, which has another meaning.")
        new = OnlineImputer(random_state=0, time=order)
        return StreamModel(new, frozen=False, coverage=coverage)
    model = load_model(path)
    if time is not None and (
        not isinstance(model, OnlineImputer) or StreamModel(model, frozen=True).time_column != time
    ):
        problem = "This model does not take times from that column. Omit --time, or start anew."
        raise ModelFileError(path, problem)
    if not isinstance(model, OnlineImputer | OnlineKFMC):
        time = getattr(model, "time", None)
        if time is not None and time is not False:  # 0 is a column
            raise ModelFileError(
                path,
                "This model imputes a row with the help of rows that are close in time. Use hirank "
                "apply, or fit a model without --time.",
            )
        if not frozen:
            reporter.note(f"{path.name} is a model of a table: it imputes rows and learns nothing.")
        frozen = True
    if coverage is not None and not isinstance(model, OnlineImputer):
        raise ModelFileError(path, "This model has no intervals for streams. Omit --interval.")
    opened = StreamModel(model, frozen=frozen, coverage=coverage)
    if frozen and not opened.is_fitted:
        raise ModelFileError(path, "The model has seen too few rows. Omit --frozen.")
    return opened
