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
from hirank.exceptions import ModelFileError

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
    """

    def __init__(self, model: Model, *, frozen: bool) -> None:
        self.model, self.frozen = model, frozen
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

    def set_names(self, names: tuple[str, ...]) -> None:
        """Set the names of the columns of a new model."""
        self.model.feature_names_in_ = np.array(names, dtype=object)

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
        return rows if self.names is None else pa.table(dict(zip(self.names, rows.T, strict=True)))

    def _waits(self, model: Model) -> bool:
        """Return whether rows are imputed first and learned from later."""
        is_fitted = bool(model.__sklearn_is_fitted__())
        return self.frozen or (is_fitted and isinstance(model, OnlineImputer))


def open_model(path: Path, reporter: Reporter, *, frozen: bool) -> StreamModel:
    """Return the model of a file, or a new one if the file does not exist."""
    if not path.exists():
        if frozen:
            raise ModelFileError(path, "No such file. Omit --frozen to start a new model.")
        reporter.note(f"{path.name} does not exist: a new model learns from the first rows on.")
        return StreamModel(OnlineImputer(random_state=0), frozen=False)
    model = load_model(path)
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
    opened = StreamModel(model, frozen=frozen)
    if frozen and not opened.is_fitted:
        raise ModelFileError(path, "The model has seen too few rows. Omit --frozen.")
    return opened
