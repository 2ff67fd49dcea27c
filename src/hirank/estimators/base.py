"""What every imputer of a whole table shares: checking, scaling, output; no mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling
from hirank.estimators.callbacks import (
    CallbackSupportMixin,
    SklearnBridge,
    reporter,
    with_callbacks,
)
from hirank.estimators.validation import (
    check_count,
    check_flag,
    check_missing_values,
    check_scale,
    is_missing,
)
from hirank.models.row_models import RowModel, check_finite, fill_blank, fill_scaled
from hirank.optim.trace import Callback, RunInfo, Step


class Outcome(Protocol):
    """What a fit leaves behind."""

    @property
    def X(self) -> Array: ...  # the scaled samples, completed, n x v
    @property
    def objective(self) -> float: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def trace(self) -> NDArray[np.void]: ...


class _Fit(NamedTuple):
    X: Array
    objective: float
    n_iter: int
    stop_reason: str
    trace: NDArray[np.void]
    details: dict[str, Any]


@dataclass(eq=False, repr=False)
class Imputer(CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer that learns from a table with holes and fills them.

    A subclass says what its parameters must be (``_check_parameters``) and how to learn from
    scaled samples (``_learn``). Parameters are fields of a dataclass: the constructor only stores
    them.

    Parameters
    ----------
    scale : {"auto", "standard", "robust"} or bool, default="auto"
        ``"standard"`` brings each feature to mean 0 and standard deviation 1 first, and back
        afterwards. ``"auto"`` (or True) does too, but gross errors don't count, neither in that
        nor in the fit, and amounts with heavy tails are compressed. ``"robust"`` compresses all
        heavy tails. False leaves the units as they are.
    missing_values : float, default=nan
        What stands for a missing value. NaN always does as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature that had missing entries in ``fit``.
    keep_empty_features : bool, default=False
        Features without any observed entry in ``fit`` are dropped; with True they are kept and
        filled with 0.
    verbose : int, default=0
        1 writes a line per stage to standard error, 2 a line per step.

    Attributes
    ----------
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    objective_ : float
        What was minimized, at the end.
    n_iter_ : int
        Steps in all.
    stop_reason_ : str
        A sentence.
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.
    """

    _: KW_ONLY
    scale: bool | str = "auto"
    missing_values: float = np.nan
    add_indicator: bool = False
    keep_empty_features: bool = False
    verbose: int = 0

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter of the subclass is wrong, and say what to give instead."""

    def _fit_rows(
        self, X: Array, observed: BoolArray, callback: Callback
    ) -> tuple[Array, RowModel, RunInfo, dict[str, Any]]:
        """Fit a model to scaled rows: the rows imputed, the model, the run, and attributes."""
        raise NotImplementedError

    def _learn(self, X: Array, observed: BoolArray, callback: Callback) -> tuple[Outcome, RowModel]:
        """Learn from scaled samples, n x v, each with an observed entry.

        What stands at missing entries does not matter; X is the method's own to write to. With
        v = 0, if no feature varies, there is nothing to do but to give an empty model. Returns
        what happened, and what completes new rows.
        """
        filled, model, run, details = self._fit_rows(X, observed, callback)
        objective, steps = run.objective, run.n_iter
        return _Fit(filled, objective, steps, run.stop_reason, run.trace, details), model

    def _publish(self, outcome: Any) -> None:
        """Set what else there is to tell of a fit; the attributes of all imputers are set."""
        for name, value in outcome.details.items():
            setattr(self, f"{name}_", value)

    def _most_steps(self) -> int:
        """As many steps as a fit may take, for progress."""
        return int(getattr(self, "max_iter", 1))

    def _verbosity(self) -> int:
        """How much to tell of steps: 1 a line per stage, 2 a line per step."""
        return self.verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: object = None) -> Any:
        """Learn from a table.

        Parameters
        ----------
        X : array-like, n_samples x n_features
            With missing entries or without.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: object = None, **params: Any) -> Any:
        """Learn from a table and return it as completed in doing so.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored
        **params
            There are none; a name here is an error.

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        if params:
            raise TypeError(
                f"fit_transform of {type(self).__name__} takes no {', '.join(sorted(params))}."
            )
        return self._output(*self._fit(X))

    def transform(self, X: Any) -> Any:
        """Complete samples with what was learned, each on its own; nothing is learned anew.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        check_is_fitted(self)
        table, observed = self._checked(X, reset=False)
        return self._output(table, observed, self._complete(table, observed))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, optional

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[self.has_values_]
        if self._indicator is None:
            return kept
        return np.concatenate([kept, self._indicator.get_feature_names_out(names)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit(self, X: Any) -> tuple[Array, BoolArray, Array]:
        """Learn, and return the table, what was observed in it, and its kept features filled."""
        self._check_all()
        fitted, before = copy(self), set(vars(self))
        table, observed = fitted._checked(X, reset=True)
        nonempty = observed.any(axis=0)
        if not nonempty.any():
            raise ValueError(
                "X has no observed entry: there is nothing to learn from. "
                f"Check that missing_values={self.missing_values!r} is what you mean."
            )
        kept, seen = table[:, nonempty], observed[:, nonempty]
        scaling = fitted._measure(kept, seen)
        scaled = scaling.forward(np.where(seen, kept, 0).astype(np.float64))
        known = seen[:, scaling.varying] & scaling.inliers(kept)
        blank = known.sum(axis=1) == 0
        used = ~blank if scaling.varying.any() else np.ones(len(scaled), bool)
        fitted._scaling, fitted.has_values_ = scaling, nonempty
        fitted._prepare(table, observed, used)
        outcome, rows = fitted._told(scaled[used], known[used], X)
        scaled[used] = outcome.X
        fitted._rows = rows
        fitted._indicator = self._fit_indicator(observed)
        fitted.objective_ = outcome.objective
        fitted.n_iter_ = outcome.n_iter
        fitted.stop_reason_ = outcome.stop_reason
        fitted.trace_ = outcome.trace
        fitted._publish(outcome)
        filled = fitted._finish(scaled, known, blank, table, observed)
        # All at once: a fit that fails on the way leaves no trace.
        gone = before - set(vars(fitted))
        self.__dict__ = {k: v for k, v in vars(self).items() if k not in gone} | vars(fitted)
        return table, observed, np.where(seen, kept, filled.astype(kept.dtype))

    def _prepare(self, table: Array, observed: BoolArray, used: BoolArray) -> None:
        """See what else the table, n x n_features_in_, tells; `used` are the rows to learn from."""

    def _finish(
        self,
        scaled: Array,
        known: BoolArray,
        blank: BoolArray,
        table: Array,
        observed: BoolArray,
    ) -> Array:
        """Scaled samples with their fills, n x v, in the units of the data, n x kept features.

        `known` is what the fills rest on; `blank` samples rest on nothing.
        """
        filled = self._scaling.backward(scaled)
        fill_blank(filled, blank, self._scaling)
        return filled

    def _check_all(self) -> None:
        """Raise if any parameter is wrong."""
        for name in ("add_indicator", "keep_empty_features"):
            check_flag(name, getattr(self, name))
        check_scale(self.scale)
        check_count("verbose", self.verbose, least=0)
        check_missing_values(self.missing_values)
        self._check_parameters()

    def _told(self, X: Array, observed: BoolArray, source: Any) -> tuple[Outcome, RowModel]:
        """Learn, while whoever listens is told of each step."""
        bridge = SklearnBridge(self, source, self._most_steps())
        report = reporter(type(self).__name__, self._verbosity())

        def callback(line: Step) -> bool:
            if report is not None:
                report(line)
            return bridge(line)

        learned = self._learn(X, observed, callback)
        bridge.close()
        return learned

    def _measure(self, X: Array, observed: BoolArray) -> Scaling:
        """How the kept features, n x k, are scaled."""
        return Scaling.measure(X, observed, scale=self.scale)

    def _complete(self, table: Array, observed: BoolArray) -> Array:
        """Fill new samples, n x n_features_in_ -> n x kept features."""
        X, seen = table[:, self.has_values_], observed[:, self.has_values_]
        scaled, known, blank = fill_scaled(self._rows, X, seen, self._scaling)
        filled = self._finish(scaled, known, blank, table, observed)
        check_finite(filled, seen)
        return np.where(seen, X, filled.astype(X.dtype))

    def _checked(self, X: Any, *, reset: bool) -> tuple[Array, BoolArray]:
        """The table as floats, and which of its entries are known."""
        table = validate_data(
            self,
            X,
            reset=reset,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        return table, ~is_missing(table, self.missing_values)

    def _fit_indicator(self, observed: BoolArray) -> MissingIndicator | None:
        if not self.add_indicator:
            return None
        return MissingIndicator(error_on_new=False).fit(np.where(observed, 0, np.nan))

    def _output(self, table: Array, observed: BoolArray, filled: Array) -> Array:
        """Put kept features, n x k, in the shape that the user asked for."""
        if self.keep_empty_features:
            full = np.where(observed, table, 0).astype(table.dtype)
            full[:, self.has_values_] = filled
            filled = full
        if self._indicator is None:
            return filled
        flags = self._indicator.transform(np.where(observed, 0, np.nan))
        return np.hstack([filled, flags.astype(filled.dtype)])
