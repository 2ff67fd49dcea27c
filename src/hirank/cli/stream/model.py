"""The model behind a stream: answers first, and learns afterwards where that gives the same."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.cli.errors import Failure
from hirank.estimators import OnlineImputer, OnlineKFMC

MOST = 256
"""Rows that are completed together."""


class Completer:
    """Completes rows with a model, and lets it learn from them.

    ``answer`` is what ``partial_fit_transform`` would give. Where a model completes rows before it
    learns from them, learning waits for ``learn``: the rows can be on their way meanwhile.

    Parameters
    ----------
    model : OnlineImputer, OnlineKFMC, Imputer or KFMC
    frozen : bool
    """

    def __init__(self, model: Any, *, frozen: bool) -> None:
        self.model, self.frozen = model, frozen
        self._before = model

    @property
    def started(self) -> bool:
        return bool(self.model.__sklearn_is_fitted__())

    @property
    def first(self) -> bool:
        """Whether it has answers before it has learned."""
        return self.frozen or (self.started and isinstance(self.model, OnlineImputer))

    @property
    def room(self) -> int:
        """Rows that can be answered before something is learned."""
        stream = getattr(self.model, "_stream", None)
        if self.frozen:
            return MOST
        if stream is None:
            return int(self.model._config().n_warmup)
        return max(1, int(stream.needs(self.model._config())))

    @property
    def names(self) -> tuple[str, ...] | None:
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    @names.setter
    def names(self, names: tuple[str, ...]) -> None:
        self.model.feature_names_in_ = np.array(names, dtype=object)

    @property
    def recent_error(self) -> float | None:
        error = getattr(self.model, "recent_error_", float("nan"))
        return float(error) if np.isfinite(error) else None

    def answer(self, rows: Array) -> Array:
        """Rows, n x m, completed; NaN where the model can't tell."""
        self._before = copy(self.model)
        if self.first and not np.isnan(rows).any():
            return rows
        if self.first:
            filled = np.asarray(self.model.transform(rows), np.float64)
        else:
            filled = np.asarray(self.model.partial_fit_transform(rows), np.float64)
        if filled.shape[1] < rows.shape[1]:  # features without any value in fit were dropped
            whole = np.full(rows.shape, np.nan)
            kept = self.model.has_values_
            whole[:, kept] = filled[:, : int(kept.sum())]
            return whole
        return filled[:, : rows.shape[1]]

    def learn(self, rows: Array) -> None:
        """From rows that were answered and written, if that is still to be done."""
        if not self.frozen and self._was_first():
            self.model.partial_fit(rows)
        self._before = self.model

    def undo(self) -> None:
        """Take back an answer that could not be written."""
        self.model = self._before

    def _was_first(self) -> bool:
        # answer() has learned already if there was no model, or one that learns as it completes
        before = self._before
        return bool(before.__sklearn_is_fitted__()) and isinstance(before, OnlineImputer)


def opened(path: Path, *, frozen: bool, say: Any) -> Completer:
    """The model of a file, or a new one if there is none yet."""
    if not path.exists():
        if frozen:
            raise Failure(f"There is no model {path} to complete rows with: leave out --frozen.")
        say(f"There is no {path.name} yet: a new model learns from the first rows on.")
        return Completer(OnlineImputer(random_state=0), frozen=False)
    model = load(path)
    if not isinstance(model, OnlineImputer | OnlineKFMC):
        if getattr(model, "time", None) is not None:
            raise Failure(
                f"The model {path} knows of time and needs the neighbors of a row: use hirank "
                "apply, or fit it without --time."
            )
        if not frozen:
            say(f"{path.name} is a model of a table: it completes rows and learns nothing.")
        frozen = True
    completer = Completer(model, frozen=frozen)
    if frozen and not completer.started:
        raise Failure(f"The model {path} has not started yet: let it learn, without --frozen.")
    return completer


def load(path: Path) -> Any:
    """The model of a file."""
    import hirank

    return hirank.load(path)
