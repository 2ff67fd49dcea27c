"""What the online baselines share: rows held for a start, units, passes; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError

from hirank._checks import Rule, flag, optional
from hirank._text import plural
from hirank._typing import Array, BoolArray
from hirank.baselines.base import Baseline
from hirank.baselines.units import Units, measure_lasting_scale
from hirank.core.columns import Columns
from hirank.estimators.base import FitData, FitResult
from hirank.estimators.columns import Names
from hirank.estimators.fitted import FittedTable
from hirank.estimators.streaming import StreamMixin
from hirank.estimators.validation import check_observed, check_table, make_rng
from hirank.exceptions import EmptyColumnsWarning, InputError, StopReason, warn
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor


class OnlineModel(Protocol):
    """What was learned from rows so far. A model is never changed: learning returns another."""

    def complete(self, X: Array, observed: BoolArray) -> Array:
        """Impute rows, n x v, each on its own."""
        ...

    def learn(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        """Return the model after rows, n x v, and the squared misfit of their entries before.

        With each row, what was learned before it is multiplied by `keep`, at most 1.
        """
        ...

    def rescale(self, ratio: Array) -> Self:
        """Return the same model for features in other units, v: those before over those now."""
        ...


L = TypeVar("L", bound=OnlineModel)


class BatchModel:
    """A model that learns from a few rows at once."""

    batch_size: ClassVar[int]  # rows whose codes are found with one and the same basis

    def learn_batch(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        """Return the model after a batch of rows, and its misfit before."""
        raise NotImplementedError

    def learn(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        """Return the model after rows, n x v, and the sum of their misfits."""
        model, misfit = self, 0.0
        for start in range(0, len(X), self.batch_size):
            part = slice(start, start + self.batch_size)
            model, more = model.learn_batch(X[part], observed[part], keep)
            misfit += more
        return model, misfit


@dataclass(frozen=True)
class FittedStream(FittedTable):
    """What was learned from the rows so far."""

    model: OnlineModel
    units: Units  # means and standard deviations, also if the rows are not scaled
    n_samples: int


@dataclass(eq=False, repr=False)
class OnlineBaseline(StreamMixin, Baseline[FittedStream, L]):
    """An imputer that learns row by row: from a stream, or in passes over a table.

    A subclass starts a model from scaled rows (``_start``).

    Parameters
    ----------
    n_warmup : int, default=200
        Rows that a model is started from; ``partial_fit`` holds rows until then.
    n_passes : int, default=20
        Passes of ``fit`` over its table, in random order, at most.
    tol : float, default=1e-4
        Passes end when the misfit changes by less than this fraction in one.
    memory : float, optional
        Rows after which ``partial_fit`` forgets (to 1/e): what the method remembers, and the units
        of the features, but those not faster than in 300. By default nothing is forgotten.
    random_state : int, RandomState or None, default=None
    """

    _: KW_ONLY
    n_warmup: int = 200
    n_passes: int = 20
    tol: float = 1e-4
    memory: float | None = None
    random_state: int | np.random.RandomState | None = None

    # Streams are scaled by the means and standard deviations so far, in one way only.
    _rules: ClassVar[dict[str, Rule]] = {"scale": optional(optional(flag, "standard"), "auto")}

    @abstractmethod
    def _start(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> L:
        """Return a first model from scaled rows, n x v, with 0 where not observed."""

    def _max_steps(self) -> int:
        return self.n_passes

    def transform(self, X: Any) -> Any:
        """Impute rows, each on its own, with the model as it stands.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        self._check_enough(0)
        return super().transform(X)

    def _check_enough(self, more: int) -> None:
        """Raise NotFittedError if the rows held and so many more do not make a start."""
        seen = len(vars(self).get("_held", ())) + more
        if not self.__sklearn_is_fitted__() and seen < self.n_warmup:
            raise NotFittedError(
                f"This {type(self).__name__} has seen {plural(seen, 'row')} so far and starts with "
                f"n_warmup={self.n_warmup}. Pass more rows to partial_fit, or call fit."
            )

    @property
    def n_samples_seen_(self) -> int:
        return self._fitted.n_samples

    def _learn(self, X: Any, *, impute: bool) -> Array | None:
        self._check_params()
        started = self.__sklearn_is_fitted__()
        table, observed = check_table(self, X, reset=not started and "_held" not in vars(self))
        if impute:
            self._check_enough(len(table))
        rows = np.where(observed, table, np.nan).astype(np.float64)
        if started:
            after = self._absorb(self._fitted, rows)
        else:
            rows = np.concatenate([vars(self).get("_held", rows[:0]), rows])
            if len(rows) < self.n_warmup:
                self._held = rows
                return None
            after = self._absorb(self._begin(rows[: self.n_warmup]), rows[self.n_warmup :])
        before = self._fitted if started else after
        filled = before.complete(table, observed) if impute else None
        self.__dict__["_record"] = after
        self.__dict__.pop("_held", None)
        return None if filled is None else self._output(table, observed, filled)

    def _resolve_columns(self, table: Array, observed: BoolArray, names: Names) -> Columns:
        columns = super()._resolve_columns(table, observed, names)
        scaling = measure_lasting_scale(*columns.keep(table, observed), scale=bool(self.scale))
        return replace(columns, scaling=scaling)

    def _fit(self, X: Any) -> tuple[Array, BoolArray, Array]:
        with self._learning():
            result = super()._fit(X)
            self.__dict__.pop("_held", None)
        return result

    def _fit_data(self, data: FitData) -> FitResult[FittedStream]:
        """Start from some rows of the table, then pass over all until the misfit stays."""
        monitor, rng, observed = data.monitor(), make_rng(self.random_state), data.known
        X = np.where(observed, data.X, 0)
        first = rng.permutation(len(X))[: self.n_warmup]
        start = self._start(X[first], observed[first], rng)
        solver = _Passes(X, observed, rng, self.tol)
        solution = minimize(solver, start, max_iter=self.n_passes, monitor=monitor)
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.n_passes, "limit": "n_passes"}
        run = monitor.finish(solution.reason, quantity="the misfit", **limits)
        units = Units.measure(*data.columns.keep(data.table, data.observed), self.memory)
        model = solution.state.model
        seen = len(X) * run.n_iter
        fitted = FittedStream(data.columns, model, run, data.seconds, units, seen)
        return FitResult(fitted, np.where(observed, X, model.complete(X, observed)))

    def _begin(self, rows: Array) -> FittedStream:
        """Return what is learned from the first rows, n_warmup x n_features_in_, NaN = missing."""
        observed = ~np.isnan(rows)
        check_observed(observed, self.missing_values)
        empty = np.flatnonzero(~observed.any(axis=0))
        if len(empty):
            warn(EmptyColumnsWarning(tuple(empty.tolist())))
        columns = self._resolve_columns(rows, observed, None)
        kept, known = columns.keep(rows, observed)
        X = np.where(known, columns.scaling.forward(np.nan_to_num(kept)), 0)
        if not X.any():
            raise InputError(
                f"No feature varies in the first {len(rows)} rows, so nothing can be fitted. Use "
                "a larger n_warmup."
            )
        used = known.any(axis=1)
        model = self._start(X[used], known[used], make_rng(self.random_state))
        model, _ = model.learn(X[used], known[used], 1.0)
        run, units = Monitor().finish(StopReason.MAX_ITER), Units.measure(kept, known, self.memory)
        return FittedStream(columns, model, run, 0.0, units, len(rows))

    def _absorb(self, fitted: FittedStream, rows: Array) -> FittedStream:
        """Return what is known after further rows, n x n_features_in_, NaN = missing."""
        columns, model, units, keep = fitted.columns, fitted.model, fitted.units, 1.0
        kept = rows[:, columns.has_values]
        kept = units.clip(kept[~np.isnan(kept).all(axis=1)])
        if len(kept):
            scaling = columns.scaling
            if self.memory is not None:
                keep = float(np.exp(-1 / self.memory))
                units = units.learn(kept, self.memory)
                if self.scale:
                    model = model.rescale(scaling.spread / units.scaling.spread)
                    scaling = units.scaling
            observed = ~np.isnan(kept)
            X = np.where(observed, scaling.forward(np.nan_to_num(kept)), 0)
            model, _ = model.learn(X, observed, keep)
            columns = replace(columns, scaling=scaling)
        n_samples = fitted.n_samples + len(rows)
        return replace(fitted, columns=columns, model=model, units=units, n_samples=n_samples)


@dataclass(frozen=True)
class _Learned:
    model: OnlineModel
    objective: float = np.inf  # squared misfit of all entries as they came in the last pass


@dataclass(frozen=True)
class _Passes:
    """Passes over a table, n x v, in random order."""

    X: Array
    observed: BoolArray
    rng: np.random.Generator
    tol: float
    monotone: ClassVar[bool] = False

    def init(self, start: OnlineModel) -> _Learned:
        return _Learned(start)

    def step(self, state: _Learned) -> _Learned:
        order, keep = self.rng.permutation(len(self.X)), float(np.exp(-1 / len(self.X)))
        return _Learned(*state.model.learn(self.X[order], self.observed[order], keep))

    def terminate(self, state: _Learned, objectives: Sequence[float]) -> bool:
        return abs(objectives[-2] - objectives[-1]) <= self.tol * objectives[-1]
