"""What the online baselines share: rows held for a start, units, passes; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._set_output import _wrap_data_with_container

from hirank._typing import Array, BoolArray
from hirank.baselines._recorder import Completed, Recorder
from hirank.baselines.units import Units, lasting
from hirank.core.scaling import Scaling
from hirank.estimators.base import Imputer
from hirank.estimators.validation import check_count, check_number, generator
from hirank.optim.trace import Callback
from hirank.warn import warn_user

Known = BoolArray

FAR = 30.0
"""Standard deviations beyond which a value is learned from as if it were there."""
LEAST_MEMORY = 300
"""Rows that units remember, whatever the method does: from fewer they would be mostly chance."""


class OnlineModel(Protocol):
    """What has been learned from rows so far. A model is never changed: learning gives another."""

    def complete(self, X: Array, observed: Known) -> Array:
        """Fill rows, n x v, each on its own."""
        ...

    def after(self, X: Array, observed: Known, keep: float) -> tuple[Self, float]:
        """The model after rows, n x v, and the squared misfit of their observed entries before.

        With each row, what was learned before it is multiplied by `keep`, at most 1.
        """
        ...

    def rescaled(self, ratio: Array) -> Self:
        """The same model for features in other units, v: those before over those now."""
        ...


class BatchModel(Protocol):
    """A model that learns from a few rows at once."""

    def after_batch(self, X: Array, observed: Known, keep: float) -> tuple[Self, float]: ...


M = TypeVar("M", bound=BatchModel)


def after_batches(model: M, X: Array, observed: Known, keep: float, size: int) -> tuple[M, float]:
    """The model after rows, n x v, in batches of `size`, and the misfits of all."""
    misfit = 0.0
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        model, more = model.after_batch(X[part], observed[part], keep)
        misfit += more
    return model, misfit


@dataclass(eq=False, repr=False)
class OnlineImputer(Imputer):
    """An imputer that learns row by row: from a stream, or in passes over a table.

    A subclass says how a model starts from scaled rows (``_start``).

    Parameters
    ----------
    n_start : int, default=200
        Rows that a model is started from; ``partial_fit`` holds rows until there are so many.
    n_passes : int, default=20
        Most passes of ``fit`` over its table, in random order.
    tol : float, default=1e-4
        Passes end when the misfit changes by less than this fraction in one.
    memory : float, optional
        Rows after which ``partial_fit`` forgets (to 1/e): what the method remembers, and the units
        of the features, but those not faster than in 300. By default nothing is forgotten.
    random_state : int, RandomState or None, default=None
    """

    _: KW_ONLY
    n_start: int = 200
    n_passes: int = 20
    tol: float = 1e-4
    memory: float | None = None
    random_state: int | np.random.RandomState | None = None

    @abstractmethod
    def _start(self, X: Array, observed: Known, rng: np.random.Generator) -> OnlineModel:
        """A first model from scaled rows, n x v; entries of X that are not observed are 0."""

    def _check_parameters(self) -> None:
        check_count("n_start", self.n_start, least=2)
        check_count("n_passes", self.n_passes)
        check_number("tol", self.tol, least=0)
        if self.scale == "robust":
            raise ValueError(
                "scale='robust' is for whole tables; online methods scale by means and standard "
                "deviations so far. Use scale=True or False."
            )
        if self.memory is not None:
            check_number("memory (if not None)", self.memory, above=0)

    def _most_steps(self) -> int:
        return self.n_passes

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn from the next rows of a stream, or go on where ``fit`` ended.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        self
        """
        table, observed = self._next(X)
        self._advance(table, observed)
        return self

    def partial_fit_transform(self, X: Any, y: object = None) -> Any:
        """Complete the next rows of a stream, then learn from them.

        Rows that come before there is a model are completed by it if it is started in the same
        call; otherwise it is an error, and nothing is learned: give more rows, or call
        ``partial_fit`` first.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        table, observed = self._next(X)
        begun = self.__sklearn_is_fitted__()
        if not begun:
            self._check_enough(len(table))
        filled = self._complete(table, observed) if begun else None
        self._advance(table, observed)
        if filled is None:
            filled = self._complete(table, observed)
        out = self._output(table, observed, filled)
        return _wrap_data_with_container("transform", out, X, self)

    def transform(self, X: Any) -> Any:
        """Complete rows with the model as it stands, each on its own. Nothing is learned.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        self._check_started()
        return super().transform(X)

    def _check_started(self) -> None:
        if not self.__sklearn_is_fitted__():
            self._check_enough(0)

    def _check_enough(self, more: int) -> None:
        """Raise if rows held and so many more do not make a start."""
        held = len(getattr(self, "_held", ()))
        if held + more < self.n_start:
            raise NotFittedError(
                f"This {type(self).__name__} has seen {held + more} rows so far, and starts with "
                f"n_start={self.n_start}: give it more by partial_fit, or call fit."
            )

    def _next(self, X: Any) -> tuple[Array, Known]:
        self._check_all()
        begun = self.__sklearn_is_fitted__() or hasattr(self, "_held")
        return self._checked(X, reset=not begun)

    def _learn(
        self, X: Array, observed: Known, callback: Callback
    ) -> tuple[Completed, OnlineModel]:
        """Start from some rows of the table, then go over all until the misfit settles."""
        record, rng = Recorder(callback), generator(self.random_state)
        X = np.where(observed, X, 0)
        first = rng.permutation(len(X))[: self.n_start]
        model = self._start(X[first], observed[first], rng)
        keep, before = float(np.exp(-1 / len(X))), np.inf
        for _ in range(self.n_passes):
            order = rng.permutation(len(X))
            model, misfit = model.after(X[order], observed[order], keep)
            if record.record(misfit):
                reason = record.ended()
                break
            if abs(before - misfit) <= self.tol * misfit:
                reason = record.converged(self.tol, "the misfit")
                break
            before = misfit
        else:
            reason = f"Reached n_passes={self.n_passes}. More passes may help."
        filled = np.where(observed, X, model.complete(X, observed))
        return record.finish_with(filled, reason), model

    def _measure(self, X: Array, observed: Known) -> Scaling:
        self._usual = lasting(X, observed, scale=True)
        return self._usual if self.scale else lasting(X, observed, scale=False)

    def _publish(self, outcome: Completed) -> None:
        super()._publish(outcome)
        self.__dict__.pop("_held", None)
        self.n_samples_seen_ = len(outcome.X) * outcome.n_iter
        self._units = None

    def _advance(self, table: Array, observed: Known) -> None:
        """Learn from the rows of a stream, n x n_features_in_."""
        rows = np.where(observed, table, np.nan).astype(np.float64)
        if not self.__sklearn_is_fitted__():
            rows = np.concatenate([getattr(self, "_held", rows[:0]), rows])
            if len(rows) < self.n_start:
                self._held = rows
                return
            self._begin(rows[: self.n_start])
            rows = rows[self.n_start :]
        self._absorb(rows)

    def _begin(self, rows: Array) -> None:
        """Start a stream from rows with NaN in their holes, n_start x n_features_in_."""
        nonempty = ~np.isnan(rows).all(axis=0)
        if not nonempty.any():
            raise ValueError(
                f"The first {len(rows)} rows have no observed entry: there is nothing to start "
                f"from. Check that missing_values={self.missing_values!r} is what you mean."
            )
        if not nonempty.all():
            warn_user(
                f"Features {np.flatnonzero(~nonempty).tolist()} have no value in the first "
                f"{len(rows)} rows: they are left out for good. A larger n_start may help."
            )
        kept, observed = rows[:, nonempty], ~np.isnan(rows[:, nonempty])
        scaling = self._measure(kept, observed)
        X = np.where(observed, scaling.forward(np.nan_to_num(kept)), 0)
        if not X.any():
            raise ValueError(
                f"No feature varies in the first {len(rows)} rows: there is nothing to start from. "
                "Use a larger n_start."
            )
        used = observed.any(axis=1)
        model = self._start(X[used], observed[used], generator(self.random_state))
        model, _ = model.after(X[used], observed[used], 1.0)
        self.__dict__.update(
            has_values_=nonempty,
            n_samples_seen_=len(rows),
            _scaling=scaling,
            _units=None,
            _indicator=self._fit_indicator(~np.isnan(rows)),
            _rows=model,
        )
        self.__dict__.pop("_held", None)

    def _absorb(self, rows: Array) -> None:
        """Let the model learn from rows with NaN in their holes, n x n_features_in_."""
        kept = rows[:, self.has_values_]
        kept = kept[~np.isnan(kept).all(axis=1)]
        scaling, usual, units, keep = self._scaling, self._usual, self._units, 1.0
        model: Any = self._rows  # an OnlineModel
        tame = _tame(kept, usual)
        if len(kept) and self.memory is not None:
            keep = float(np.exp(-1 / self.memory))
            long = max(self.memory, LEAST_MEMORY)
            units = (units or Units.of(usual, long)).after(tame, float(np.exp(-1 / long)))
            usual = units.scaling
            if self.scale:
                model = model.rescaled(scaling.spread / usual.spread)
                scaling = usual
        if len(kept):
            observed = ~np.isnan(kept)
            X = np.where(observed, scaling.forward(np.nan_to_num(tame)), 0)
            model, _ = model.after(X, observed, keep)
        self.__dict__.update(
            _scaling=scaling,
            _usual=usual,
            _units=units,
            _rows=model,
            n_samples_seen_=self.n_samples_seen_ + len(rows),
        )


def _tame(rows: Array, usual: Scaling) -> Array:
    """Rows, n x k, in which no value is further from its center than anything usual.

    A single wild value must not destroy what was learned; if all are wild, units follow.
    """
    limit = FAR * usual.spread
    return np.clip(rows, usual.center - limit, usual.center + limit)
