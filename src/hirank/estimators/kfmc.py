"""KFMC as a scikit-learn estimator: checking, scaling and bookkeeping; no mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import MissingIndicator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from hirank.estimators.callbacks import (
    CallbackSupportMixin,
    SklearnBridge,
    reporter,
    with_callbacks,
)
from hirank.estimators.parameters import (
    check_parameters,
    components_of,
    is_missing,
    kernel_of,
    stages_of,
)
from hirank.kernels import Array, Kernel
from hirank.model.scaling import Scaling
from hirank.model.workers import Workers
from hirank.solvers.features import complete_features
from hirank.solvers.fitted import Fitted, fill_blank
from hirank.solvers.loop import Options, Progress, Result, nothing_to_learn
from hirank.solvers.path import resettle
from hirank.solvers.table import Task, complete_table, complete_table_as_paper


class KFMC(CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Imputation of tables with nonlinear structure by kernelized factorization.

    The samples (rows) are taken to lie near a curved surface, or several, or many subspaces. The
    model is a dictionary of points in the space of the data; seen through a kernel, every sample is
    close to a linear combination of them. Missing entries are chosen such that this holds.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points in the dictionary, at most the number of samples. ``"auto"`` takes
        ``3.8 * n_samples**0.6`` (60 for 100 samples, 240 for 1000), at most 400.
    kernel : {"rbf", "poly"} or Kernel, default="rbf"
        A kernel object is used as it is, in units of the scaled features.
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between samples.
        ``"path"`` grows from 1 to 8 along the stages; a number stays.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
    beta : float, optional
        Ridge of the codes, in units of the mean of k(d, d) over the dictionary: the value at the
        end of the path for ``solver="lbfgs"``, throughout for ``"newton"``. Raise it for noisy
        data. By default 1e-10 and 1e-3.
    solver : {"lbfgs", "newton"}, default="lbfgs"
        ``"lbfgs"`` minimizes over missing entries and dictionary together, along a path from
        strong to weak regularization that ends where a few hidden entries are recovered best.
        ``"newton"`` is Algorithm 1 of the paper.
    scale : bool, default=True
        Bring each feature to mean 0 and standard deviation 1 first, and back afterwards.
    max_iter : int, default=250
        Most steps in each stage (``"newton"`` has one stage).
    tol : float, default=1e-3
        A stage ends when the objective fell by less than this fraction over ten steps.
    missing_values : float, default=nan
        What stands for a missing value. NaN always does as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature that had missing entries in ``fit``.
    keep_empty_features : bool, default=False
        Features without any observed entry in ``fit`` are dropped; with True they are kept and
        filled with 0.
    random_state : int, RandomState or None, default=None
        Chooses the starting dictionary.
    verbose : int, default=0
        1 writes a line per stage to standard error, 2 a line per step.

    Attributes
    ----------
    dictionary_ : array, n_components_ x n_features_kept
        The dictionary, in the units of the data.
    n_components_ : int
    kernel_ : Kernel
        The kernel of the last stage, for scaled features.
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    objective_ : float
        Reduced objective at the end.
    n_iter_ : int
        Steps in all.
    stop_reason_ : str
        A sentence.
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.

    Notes
    -----
    Observed entries come back bit for bit. ``fit_transform`` returns the solution of the fit;
    ``transform`` completes each sample on its own with the fitted dictionary and never changes the
    model. float32 comes back as float32, but is solved in double precision: the end of the path
    needs the digits. A sample without any observed entry is left out of the fit and filled with the
    feature means, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> holes = X.copy()
    >>> holes[::3, 1] = np.nan
    >>> filled = KFMC(random_state=0).fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        kernel: str | Kernel = "rbf",
        bandwidth: str | float = "path",
        degree: int = 2,
        offset: float = 1.0,
        alpha: float = 0.0,
        beta: float | None = None,
        solver: str = "lbfgs",
        scale: bool = True,
        max_iter: int = 250,
        tol: float = 1e-3,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.offset = offset
        self.alpha = alpha
        self.beta = beta
        self.solver = solver
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: object = None) -> KFMC:
        """Learn the dictionary from a table.

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
        """Learn the dictionary and return the table that was completed in doing so.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y, **params : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        return self._output(*self._fit(X))

    def transform(self, X: Any) -> Any:
        """Complete samples with the fitted dictionary, each on its own.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        check_is_fitted(self)
        table, observed = self._checked(X, reset=False)
        return self._output(table, observed, self._fitted.complete(table, observed))

    def complete_features(self, X: Any, features: Any) -> Array:
        """Complete columns that were not there at fit time, from where their samples lie.

        Parameters
        ----------
        X : array-like, n_samples x n_features
            The samples in the features of the fit, complete (for instance the result of
            ``fit_transform``) or not (then ``transform`` completes them first).
        features : array-like, n_samples x n_new
            The new columns, with missing entries.

        Returns
        -------
        features : array, n_samples x n_new
        """
        check_is_fitted(self)
        table, observed = self._checked(X, reset=False)
        new = check_array(features, dtype=(np.float64, np.float32), ensure_all_finite="allow-nan")
        seen = ~is_missing(new, self.missing_values)
        if len(new) != len(table):
            raise ValueError(
                f"X has {len(table)} samples but features has {len(new)}: "
                "give the same samples, in the same order, to both."
            )
        if not seen.any(axis=0).all():
            empty = np.flatnonzero(~seen.any(axis=0)).tolist()
            raise ValueError(f"New features {empty} have no observed entry: drop them.")
        V = self._fitted.coordinates(self._fitted.complete(table, observed))
        scaling = Scaling.measure(new, seen, scale=True)
        scaled = scaling.forward(np.where(seen, new, 0).astype(np.float64))
        completed = complete_features(scaled, seen[:, scaling.varying], V)
        return np.where(seen, new, scaling.backward(completed).astype(new.dtype))

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
        kept = names if self.keep_empty_features else names[self._fitted.nonempty]
        if self._indicator is None:
            return kept
        return np.concatenate([kept, self._indicator.get_feature_names_out(names)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit(self, X: Any) -> tuple[Array, NDArray[np.bool_], Array]:
        """Learn, and return the table, what was observed in it, and its kept features filled."""
        check_parameters(self)
        table, observed = self._checked(X, reset=True)
        nonempty = observed.sum(axis=0) > 0
        if not nonempty.any():
            raise ValueError(
                "X has no observed entry: there is nothing to learn from. "
                f"Check that missing_values={self.missing_values!r} is what you mean."
            )
        kept, seen = table[:, nonempty], observed[:, nonempty]
        scaling = Scaling.measure(kept, seen, scale=self.scale)
        blank = seen[:, scaling.varying].sum(axis=1) == 0
        scaled = scaling.forward(np.where(seen, kept, 0).astype(np.float64))
        if scaling.varying.any():
            result = self._solve(scaled[~blank], seen[~blank][:, scaling.varying], X)
            scaled[~blank] = result.X
        else:
            result = nothing_to_learn(scaled, components_of(self, len(scaled)))
        settings = resettle(result.settings, stages_of(self), result.D)
        self._fitted = Fitted(nonempty, scaling, result.D, settings)
        self._indicator = self._fit_indicator(observed)
        self.has_values_ = nonempty
        self.dictionary_ = self._fitted.dictionary()
        self.n_components_ = len(result.D)
        self.kernel_ = result.settings[-1].kernel if result.settings else kernel_of(self)
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.stop_reason_ = result.stop_reason
        self.trace_ = result.trace
        filled = scaling.backward(scaled)
        fill_blank(filled, blank, scaling)
        return table, observed, np.where(seen, kept, filled.astype(kept.dtype))

    def _solve(self, X: Array, observed: NDArray[np.bool_], source: Any) -> Result:
        """Run the solver on scaled samples, n x v, each with an observed entry."""
        stages = stages_of(self)
        bridge = SklearnBridge(self, source, (len(stages) + 1) * self.max_iter)
        report = reporter(type(self).__name__, self.verbose)

        def callback(line: Progress) -> bool:
            if report is not None:
                report(line)
            return bridge(line)

        options = Options(self.alpha, self.max_iter, self.tol, callback)
        task = Task(X, observed, components_of(self, len(X)), kernel_of(self), stages, options)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with Workers() as workers:
            if self.solver == "newton":
                result = complete_table_as_paper(task, rng)
            else:
                result = complete_table(task, workers, rng)
        bridge.close()
        return result

    def _checked(self, X: Any, *, reset: bool) -> tuple[Array, NDArray[np.bool_]]:
        """The table as floats, and which of its entries are known."""
        table = validate_data(
            self,
            X,
            reset=reset,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        return table, ~is_missing(table, self.missing_values)

    def _fit_indicator(self, observed: NDArray[np.bool_]) -> MissingIndicator | None:
        if not self.add_indicator:
            return None
        return MissingIndicator(error_on_new=False).fit(np.where(observed, 0, np.nan))

    def _output(self, table: Array, observed: NDArray[np.bool_], filled: Array) -> Array:
        """Put kept features, n x k, in the shape that the user asked for."""
        if self.keep_empty_features:
            full = np.where(observed, table, 0).astype(table.dtype)
            full[:, self._fitted.nonempty] = filled
            filled = full
        if self._indicator is None:
            return filled
        flags = self._indicator.transform(np.where(observed, 0, np.nan))
        return np.hstack([filled, flags.astype(filled.dtype)])
