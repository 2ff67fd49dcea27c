"""What all imputers of a whole table share: checks, scaling and output; no mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hirank._checks import Rule, count, flag
from hirank._typing import Array, BoolArray
from hirank.core.columns import Columns, ScaledTable
from hirank.core.threads import Workers
from hirank.estimators.callbacks import (
    CallbackSupportMixin,
    Reporting,
    reporting,
    with_callbacks,
)
from hirank.estimators.columns import Names
from hirank.estimators.fitted import FittedTable
from hirank.estimators.validation import (
    check_observed,
    check_params,
    check_table,
    missing_value,
    scale_method,
)
from hirank.exceptions import StopReason
from hirank.optim.trace import Monitor

if TYPE_CHECKING:  # the import takes as long as imputing 20 000 rows
    from sklearn.impute import MissingIndicator

F = TypeVar("F", bound=FittedTable)


class FitData(NamedTuple):
    """A table as a fit uses it. Of m features, k have values and v of these vary."""

    table: Array  # n x m
    observed: BoolArray  # n x m
    names: Names
    columns: Columns
    scaled: ScaledTable  # n x v
    used: BoolArray  # n; rows to fit on: those with a usable value
    reporting: Reporting
    began: float

    @property
    def X(self) -> Array:
        """The scaled rows to fit on."""
        return self.scaled.X[self.used]

    @property
    def known(self) -> BoolArray:
        """Their observed entries."""
        return self.scaled.observed[self.used]

    @property
    def seconds(self) -> float:
        return perf_counter() - self.began

    def monitor(self, max_time: float | None = None) -> Monitor:
        """Return the monitor of the fit."""
        callback, subscriber = self.reporting
        return Monitor(callback, max_time=max_time, subscriber=subscriber, began=self.began)


class FitResult(NamedTuple, Generic[F]):
    """What was learned, and the u rows that were used."""

    fitted: F
    filled: Array  # u x v; imputed
    spread: Array | float = 0.0  # u x v; how far the families of models are apart


@dataclass(eq=False, repr=False)
class BaseTransformer(
    CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC
):
    """What imputers of tables and of streams share as scikit-learn transformers."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the imputer to a table; everything learned before is forgotten.

        Parameters
        ----------
        X : array-like, n_samples x n_features
            With or without missing entries.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Fit the imputer to a table, and return the table imputed.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        return self._restore_labels(X, self._output(*self._fit(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _workers(self) -> Workers:
        """Return the threads that this estimator may use; one if it has no `n_jobs`."""
        return Workers(getattr(self, "n_jobs", None))

    def _restore_labels(self, X: Any, out: Array) -> Any:
        """Return imputed rows with the labels of groups in X that are text, if there are any."""
        return out

    @abstractmethod
    def _fit(self, X: Any) -> tuple[Any, Any, Any]:
        """Fit, and return what `_output` takes."""

    @abstractmethod
    def _output(self, table: Array, rows: Any, filled: Any) -> Array:
        """Return imputed rows in the columns and precision that the user asked for."""


@dataclass(eq=False, repr=False)
class BaseImputer(BaseTransformer, Generic[F]):
    """A scikit-learn transformer that is fitted to a table and imputes its missing values.

    A subclass declares the rules of its parameters (``_rules``) and fits a model to the scaled
    table (``_fit_data``). Parameters are fields of a dataclass: the constructor only stores them.
    Fitted attributes are read from one frozen record, ``_fitted``.

    Parameters
    ----------
    scale : {"auto", "standard", "robust"} or bool, default="auto"
        ``"standard"`` brings each feature to mean 0 and standard deviation 1 first, and back
        afterwards. ``"auto"`` (or True) does the same, but outliers are not used, and amounts with
        heavy tails are compressed. ``"robust"`` compresses all heavy tails. False keeps the units.
    missing_values : float, default=nan
        The placeholder of a missing value. NaN always counts as missing as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature that had missing entries in ``fit``.
    keep_empty_features : bool, default=False
        Features without any observed entry in ``fit`` are dropped; with True they are kept and
        imputed with 0.
    verbose : int, default=0
        1 shows the progress in a line of the terminal or notebook, or prints a line per stage to
        standard error if that is a file; 2 prints a line per step.

    Attributes
    ----------
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    n_iter_ : int
        The number of steps.
    stop_reason_ : str
        Why the fit stopped, as a sentence.
    status_ : StopReason
        The same as an enumeration.
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``.
    indicator_ : MissingIndicator or None
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

    _rules: ClassVar[dict[str, Rule]] = {}

    @abstractmethod
    def _fit_data(self, data: FitData) -> FitResult[F]:
        """Fit a model to the rows that are used."""

    def _attributes(self, fitted: F) -> dict[str, Any]:
        """Return fitted attributes that are not read from the record."""
        return {}

    def _resolve_columns(self, table: Array, observed: BoolArray, names: Names) -> Columns:
        """Return what is known about the columns before the fit."""
        columns = Columns.measure(table, observed, scale=self.scale)
        indicated = np.any(~observed, axis=0) if self.add_indicator else None
        return replace(columns, indicated=indicated)

    def _check_params(self) -> None:
        """Raise ParameterError if a parameter cannot be used."""
        check_params(self, _SHARED_RULES | self._rules)

    def _max_steps(self) -> int | None:
        """Return as many steps as a fit may take, for progress bars; None if that is not known."""
        return int(getattr(self, "max_iter", 1))

    def transform(self, X: Any) -> Any:
        """Impute rows with the fitted model, which does not change.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        check_is_fitted(self)
        table, observed = self._read(X)
        with self._workers():
            filled = self._fitted.complete(table, observed)
        return self._restore_labels(X, self._output(table, observed, filled))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, optional

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        names = super().get_feature_names_out(input_features)
        kept = names if self.keep_empty_features else names[self.has_values_]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    @property
    def _fitted(self) -> F:
        """Everything that the fit learned; an AttributeError before the fit."""
        if "_record" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        record: F = vars(self)["_record"]
        return record

    @property
    def has_values_(self) -> BoolArray:
        return self._fitted.columns.has_values

    @property
    def n_iter_(self) -> int:
        return self._fitted.run.n_iter

    @property
    def stop_reason_(self) -> str:
        return self._fitted.run.stop_reason

    @property
    def status_(self) -> StopReason:
        return self._fitted.run.reason

    @property
    def trace_(self) -> NDArray[np.void]:
        return self._fitted.run.trace

    @property
    def indicator_(self) -> MissingIndicator | None:
        indicated = self._fitted.columns.indicated
        if indicated is None:
            return None
        from sklearn.impute import MissingIndicator

        one_row = np.where(indicated, np.nan, 0.0)[None]
        return MissingIndicator(error_on_new=False).fit(one_row)

    def __sklearn_is_fitted__(self) -> bool:
        return "_record" in vars(self)

    def _fit(self, X: Any) -> tuple[Array, BoolArray, Array]:
        """Fit, and return the table, its observed entries, and its kept features imputed."""
        return self._fit_with_spread(X)[:3]

    def _fit_with_spread(self, X: Any) -> tuple[Array, BoolArray, Array, Array]:
        """Fit, and also return how far the families of models are apart, n x v."""
        self._check_params()
        began, before = perf_counter(), set(vars(self))
        witness = copy(self)  # a fit that fails must leave this estimator as it was
        table, observed = witness._read(X, reset=True)
        check_observed(observed, self.missing_values)
        names = getattr(witness, "feature_names_in_", None)
        columns = self._resolve_columns(table, observed, names)
        scaled = columns.scale(table, observed)
        used = ~scaled.empty if columns.scaling.varying.any() else np.ones(len(table), bool)
        with (
            reporting(
                self,
                X,
                self._max_steps(),
                verbose=self.verbose,
                step_verbose=self._step_verbosity(),
            ) as report,
            self._workers(),
        ):
            fitted, filled, apart = self._fit_data(
                FitData(table, observed, names, columns, scaled, used, report, began)
            )
            rows, spread = scaled.X.copy(), np.zeros(scaled.X.shape)
            rows[used], spread[used] = filled, apart
            values = fitted.finish(rows, scaled, table, observed)
        # All attributes in one assignment, so that an interrupted fit changes nothing.
        gone = before - set(vars(witness))
        kept = {name: value for name, value in vars(self).items() if name not in gone}
        self.__dict__ = kept | vars(witness) | self._attributes(fitted) | {"_record": fitted}
        return table, observed, values, spread

    def _read(self, X: Any, *, reset: bool = False) -> tuple[Array, BoolArray]:
        """Return a table as floats, n x m, and which of its entries are observed."""
        return check_table(self, X, reset=reset)

    def _step_verbosity(self) -> int:
        """Return how much to print about steps: 1 a line per stage, 2 a line per step."""
        return self.verbose

    def _output(self, table: Array, observed: BoolArray, filled: Array) -> Array:
        """Return kept features, n x k, in the columns that the user asked for."""
        if self.keep_empty_features:
            full = np.where(observed, table, 0).astype(table.dtype)
            full[:, self.has_values_] = filled
            filled = full
        indicated = self._fitted.columns.indicated
        if indicated is None:
            return filled
        return np.hstack([filled, (~observed)[:, indicated].astype(filled.dtype)])


_SHARED_RULES: dict[str, Rule] = {
    "scale": scale_method,
    "missing_values": missing_value,
    "add_indicator": flag,
    "keep_empty_features": flag,
    "verbose": count(0),
}
