"""Imputer: models are selected on held-out entries, stacked, and refitted."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import check_is_fitted

from hirank._checks import Rule, count, flag, number, optional
from hirank._typing import Array, BoolArray, PathLike
from hirank.core.bounds import Bounds
from hirank.core.columns import Columns
from hirank.core.plausible import ObservedValues
from hirank.estimators import uncertainty
from hirank.estimators.base import BaseImputer, FitData, FitResult
from hirank.estimators.callbacks import with_callbacks
from hirank.estimators.columns import (
    Names,
    number_labels,
    resolve_bounds,
    resolve_integers,
    resolve_time,
    warn_of_violations,
)
from hirank.estimators.fitted import FittedImputer
from hirank.estimators.groups import Labels, group_column, take_labels
from hirank.estimators.saving import save
from hirank.estimators.summary import MAX_SPARSE, Summary, summarize
from hirank.estimators.validation import check_coverage, check_table, job_count, make_rng
from hirank.exceptions import ParameterError, StopReason
from hirank.models.stacking import MAX_MODELS
from hirank.optim.path import SolverConfig, default_path
from hirank.selection.config import SearchConfig
from hirank.selection.search import search


@dataclass(eq=False, repr=False)
class Imputer(BaseImputer[FittedImputer]):
    """Impute missing values with a stack of models selected on held-out entries.

    Seven families are compared on observed entries that are held out: one Gaussian, mixtures of
    Gaussians, factor analysis (of wide tables), low-rank factors, low-rank kernel matrices, kernel
    dictionaries (:class:`KFMC`), and routed dictionaries, a small one for each component of a
    mixture. Nonnegative stacking weights are fitted to the held-out entries; models with a positive
    weight are refitted to all entries. :meth:`summary` reports what was selected and the error to
    expect.

    Parameters
    ----------
    n_init : int or "auto", default="auto"
        Models of a family whose imputed values are averaged, up to 20. ``"auto"`` takes four
        dictionaries with different starting points, or two if they have more than 120 points, up to
        four mixtures, and four low-rank kernel matrices, or two where they are not far ahead of
        linear models. There are never more mixtures than folds, and always one Gaussian.
    bounds : pair, list of pairs or dict, optional
        Limits of imputed values: a pair ``(lower, upper)`` for all features, one for each, or a
        dictionary from names or numbers of columns to pairs; None is no limit. Observed values
        outside are kept, with a warning.
    integers : "auto", bool or list of columns, optional
        Features whose imputed values are rounded to integers, by name or number. ``"auto"`` takes
        those whose observed values are all integers, True takes all. By default none.
    plausible : bool, default=False
        Imputed values look like the observed ones of their feature: they have no more decimals, and
        are not below 0, above 0, above 1 or above 100 where no observed value is. What is imputed
        is rounded and clipped; models are fitted as without it.
    time : True, str or int, optional
        Rows follow each other in time, and neighbors in time help to impute gaps. True takes the
        rows in the given order, evenly spaced; a name or number is the column with the times, which
        must be complete and distinct. If they are not, the given order is taken, with a warning.
    groups : str or int, optional
        Name or number of a column with labels, text or numbers, of devices or other groups: rows of
        one group follow each other, those of others do not. Without `time` they do in the given
        order. The column must be complete; it is not a feature, and is returned unchanged. How rows
        change is learned from all groups, so ``transform`` takes new ones. If labels are text, the
        array that is returned is one of objects; with ``set_output(transform="pandas")`` it is a
        data frame. ``interval`` and ``sample`` have numbers in the place of text.
    max_gap : int, optional
        Entries in gaps of more rows than this, in order of time, remain NaN. Requires `time` or
        `groups`.
    scale : {"auto", "standard", "robust"} or bool, default="auto"
        ``"standard"`` brings each feature to mean 0 and standard deviation 1 first, and back
        afterwards. ``"auto"`` (or True) does the same, but outliers are not used, and amounts with
        heavy tails are compressed. ``"robust"`` compresses all heavy tails. False keeps the units.
    max_iter : int, default=250
        Maximum number of steps in each stage of a dictionary; a low-rank kernel matrix takes at
        most 150.
    tol : float, default=1e-3
        A stage ends when the objective fell by less than this fraction over ten steps.
    max_time : float, optional
        Seconds that a fit may take. No new trial begins after 60 % of them, so that the best models
        so far can be refitted; after all of them the fit ends with what it has, and rows that are
        left are imputed by the model that takes the least time. The step that is being taken, and
        with `time` the smoothing, come on top.
    missing_values : float, default=nan
        The placeholder of a missing value. NaN always counts as missing as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature that had missing entries in ``fit``.
    keep_empty_features : bool, default=False
        Features without any observed entry in ``fit`` are dropped; with True they are kept and
        imputed with 0.
    random_state : int, RandomState or None, default=None
        Determines the held-out entries and the starting dictionaries.
    n_jobs : int, optional
        Threads that fit and impute, as in scikit-learn: None is one, unless a context of joblib
        sets another number, and -1 is one for each processor. Results do not depend on it.
    verbose : int, default=0
        1 shows the progress in a line of the terminal or notebook, or prints a line per trial to
        standard error if that is a file; 2 prints lines, also one per stage, 3 one per step.

    Attributes
    ----------
    search_results_ : dict of arrays
        A row for each trial, with the best of each family last: ``family`` ("column means",
        "Gaussian", "Gaussian mixture", "factor analysis", "low rank",
        "low-rank kernel (linear)", "low-rank kernel (poly)", "low-rank kernel (rbf)",
        "routed dictionaries", "dictionary"), ``kernel``, ``n_components`` (Gaussians, factors,
        landmarks, routed components or points), ``bandwidth``, ``beta`` (the
        ridge of a dictionary, or the smoothing of a low-rank kernel matrix),
        ``noise`` (share of the variance, of Gaussians), ``ridge`` (of factors),
        ``error`` (root mean square at held-out entries, column mean = 1), ``loss`` (by which trials
        are compared: the geometric mean of the mean absolute and the root mean square error, in
        scaled features; of trials that were given up, both are of the first fold of entries),
        ``seconds``, ``weight`` in the stack, and ``failure`` (why a fit failed).
        NaN or "" where a parameter does not apply. ``pandas.DataFrame(model.search_results_)``
        shows it.
    held_out_ : dict of arrays
        The held-out entries in the units of the data: ``row``, ``feature``, ``truth``, and what the
        stack (``imputed``) and the best linear family (``linear``) imputed without having seen
        them. Empty if no entries were held out.
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    n_iter_ : int
        The number of steps of all trials and refits.
    stop_reason_ : str
        What was selected, as a sentence.
    status_ : StopReason
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``, one trial after the other; of
        Gaussians ``objective`` is the negative log likelihood of a row, and of low-rank kernel
        matrices the Schatten-p penalty.
    indicator_ : MissingIndicator or None
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.

    See Also
    --------
    hirank.complete : One call for arrays and data frames.
    hirank.KFMC : One kernel dictionary, as in the paper.
    hirank.OnlineImputer : For rows that keep arriving.

    Notes
    -----
    Observed entries are returned bit for bit. ``fit_transform`` returns the solution of the fit;
    ``transform`` imputes with the fitted models, so the two differ slightly on the same table.
    ``transform`` imputes each row on its own, the same alone and in any batch, except with `time`
    or `groups`, where neighbors in time count.

    ``interval`` and ``sample`` are calibrated on the held-out entries. A table with fewer than 50
    observed entries has none: it is imputed by one strongly regularized Gaussian, with a warning,
    and both methods raise an error.

    Models are selected and fitted on at most 10 000 rows, drawn at random (with `time`, a stretch
    from the middle of each group); further rows are imputed as ``transform`` would.

    float32 is returned as float32, but computed in double precision, which the end of the path
    needs. A row without any observed entry is left out of the fit and imputed with column means,
    with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> t = np.linspace(-1, 1, 60)
    >>> truth = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X = truth.copy()
    >>> X[::3, 1] = np.nan
    >>> model = Imputer(random_state=0)
    >>> filled = model.fit_transform(X)
    >>> bool(np.abs(filled - truth).max() < 0.05)
    True
    >>> model.stop_reason_[:33]
    'Selected on 40 held-out entries: '
    """

    _: KW_ONLY
    n_init: int | str = "auto"
    bounds: Any = None
    integers: Any = None
    plausible: bool = False
    time: bool | str | int | None = None
    groups: str | int | None = None
    max_gap: int | None = None
    max_iter: int = 250
    tol: float = 1e-3
    max_time: float | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    _config: ClassVar[SearchConfig] = SearchConfig()
    _record_type: ClassVar[Any] = FittedImputer
    _rules: ClassVar[dict[str, Rule]] = {
        "n_init": optional(count(most=MAX_MODELS), "auto"),
        "plausible": flag,
        "groups": group_column,
        "max_gap": optional(count()),
        "max_iter": count(),
        "tol": number(least=0),
        "max_time": optional(number(above=0)),
        "n_jobs": job_count,
    }

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Array, Array]:
        """Fit the imputer, and return the table imputed, with intervals around missing values.

        What ``fit_transform`` returns, and what ``interval`` would return around it, without
        imputing all rows a second time.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        X : array, n_samples x n_features_out
        lower, upper : arrays, n_samples x n_features_kept
            As of ``interval``; NaN where a value is missing, if the table is too small to hold out
            entries.

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import Imputer
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> X = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X[::4, 1] = np.nan
        >>> filled, lower, upper = Imputer(max_iter=20, random_state=0).fit_interval(X)
        >>> bool(((lower <= filled) & (filled <= upper)).all())
        True
        """
        check_coverage(coverage)
        table, observed, values, spread = self._fit_with_spread(X)
        ends = uncertainty.interval_around(
            self._fitted, table, observed, float(coverage), values=values, spread=spread
        )
        filled = self._restore_labels(X, self._output(table, observed, values))
        return _wrap_data_with_container("transform", filled, X, self), *ends

    def interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return intervals that contain missing values with a given probability.

        The widths are calibrated on the held-out entries, a share of `coverage` of which lay
        inside. They are wider where the models disagree or leave more possible.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        lower, upper : arrays, n_samples x n_features_kept
            Around what ``transform`` imputes, within `bounds`; at observed entries, their values.
            Ends are not rounded to `integers`; entries that `max_gap` leaves empty are NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import Imputer
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> truth = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X = truth.copy()
        >>> X[::4, 1] = np.nan
        >>> model = Imputer(max_iter=20, random_state=0).fit(X)
        >>> lower, upper = model.interval(X, coverage=0.9)
        >>> bool(((lower <= truth) & (truth <= upper))[::4, 1].mean() >= 0.8)
        True
        """
        check_coverage(coverage)
        check_is_fitted(self)
        table, observed = self._read(X)
        with self._workers():
            return uncertainty.interval(self._fitted, table, observed, float(coverage))

    def sample(self, X: Any, n_draws: int = 5, random_state: Any = None) -> Array:
        """Draw completed tables, for multiple imputation.

        Missing values are drawn around what ``transform`` imputes, those of a row jointly, as far
        away as the held-out entries were. Statistics computed from each table differ by what is not
        known. Draws respect `bounds` and `integers`.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        n_draws : int, default=5
        random_state : int, RandomState or None, default=None

        Returns
        -------
        tables : array, n_draws x n_samples x n_features_kept

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import Imputer
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> X = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X[::4, 1] = np.nan
        >>> model = Imputer(max_iter=20, random_state=0).fit(X)
        >>> tables = model.sample(X, n_draws=4, random_state=0)
        >>> tables.shape
        (4, 40, 3)
        >>> bool(tables[:, 0, 1].std() > 0), bool(tables[:, 1, 1].std() == 0)  # missing, observed
        (True, True)
        """
        count()("n_draws", n_draws)
        check_is_fitted(self)
        table, observed = self._read(X)
        with self._workers():
            return uncertainty.draw(self._fitted, table, observed, n_draws, make_rng(random_state))

    def summary(self) -> Summary:
        """Return what was selected, the error to expect, and which values not to rely on.

        Returns
        -------
        summary : Summary
            A dictionary that prints as text: ``selected`` (trials with their weights and
            parameters), ``stop_reason``, ``seconds``, ``verdict`` (a sentence) and ``n_held_out``.
            If entries were held out also ``error`` and ``linear_error`` (root mean square, column
            mean = 1), ``mean_error``, ``features`` (the same for each feature, with a remark),
            ``sparse_rows`` (the number of rows with two observed entries or fewer) and
            ``unjudged`` (the part of the missing entries whose row is unlike any in which they are
            observed, so that nothing shows their error).

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import Imputer
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> X = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X[::4, 1] = np.nan
        >>> Imputer(max_iter=20, random_state=0).fit(X).summary()["verdict"][:29]
        'A linear method does as well:'
        """
        check_is_fitted(self)
        return summarize(self._fitted, getattr(self, "feature_names_in_", None))

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a file, from which :func:`hirank.load` restores it.

        The restored model gives the same results to the bit. The file appears complete or not at
        all, contains arrays, numbers and strings, and is read without running any code. It
        contains the held-out entries (``held_out_``), so whoever has the file can read them.

        Parameters
        ----------
        path : str or path
            By convention with the extension ``.hirank``. An existing file is replaced.

        Notes
        -----
        A RandomState object given as `random_state` is saved as None: only ``fit`` draws from it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import hirank
        >>> X = np.outer(np.arange(20.0), [1, 2, 3])
        >>> X[::3, 1] = np.nan
        >>> model = hirank.Imputer(max_iter=20, random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder, "model.hirank"))
        ...     restored = hirank.load(Path(folder, "model.hirank"))
        >>> bool((restored.transform(X) == model.transform(X)).all())
        True
        """
        save(self, path)

    @property
    def search_results_(self) -> dict[str, NDArray[Any]]:
        return self._fitted.search.to_columns()

    @property
    def held_out_(self) -> dict[str, NDArray[Any]]:
        return uncertainty.held_out_entries(self._fitted)

    def _check_params(self) -> None:
        super()._check_params()
        if self.max_gap is not None and not self._is_ordered:
            raise ParameterError("max_gap", "requires {time} or {groups}.", "time", "groups")

    @property
    def _is_ordered(self) -> bool:
        """Whether neighbors in time count; a column of times may have the number 0."""
        return self.groups is not None or not (self.time is None or self.time is False)

    def _read(self, X: Any, *, reset: bool = False) -> tuple[Array, BoolArray]:
        """Return a table as floats and its observed entries, with numbers for labels of groups."""
        rest, labels = self._take_labels(X, reset=reset)
        table, observed = check_table(self, rest, reset=reset)
        if labels is None:
            return table, observed
        if labels.given is not None:
            table = table.copy()
            table[:, labels.column] = number_labels(labels.names)
        observed[:, labels.column] = True
        return table, observed

    def _take_labels(self, X: Any, *, reset: bool = False) -> tuple[Any, Labels | None]:
        names = None if reset else getattr(self, "feature_names_in_", None)
        return take_labels(X, self.groups, names)

    def _restore_labels(self, X: Any, out: Array) -> Any:
        labels = self._take_labels(X)[1]
        if labels is None or labels.given is None:
            return out
        before = self.has_values_[: labels.column]
        place = labels.column if self.keep_empty_features else int(before.sum())
        return replace(labels, column=place).restore(out, X, self)

    def _max_steps(self) -> int:
        return 10 * (len(default_path()) + 1) * self.max_iter

    def _step_verbosity(self) -> int:
        return max(self.verbose - 1, 0)  # 1 prints trials only

    def _resolve_columns(self, table: Array, observed: BoolArray, names: Names) -> Columns:
        axis = resolve_time(self.time, self.groups, self.max_gap, names, table.shape[1])
        grouped = axis is not None and axis.group is not None
        one_by_one = axis.one_by_one(table, observed) if axis and grouped else (table, observed)
        columns = super()._resolve_columns(*one_by_one, names)
        kept = columns.has_values
        bounds = resolve_bounds(self.bounds, names, table.shape[1])
        integers = resolve_integers(self.integers, table, observed, bounds, names)
        if bounds is not None:
            warn_of_violations(bounds, table, observed, names)
            bounds = Bounds(bounds.lower[kept], bounds.upper[kept])
        imitated = (
            ObservedValues.measure(*columns.keep(table, observed)) if self.plausible else None
        )
        return replace(columns, bounds=bounds, integers=integers[kept], imitated=imitated)

    def _fit_data(self, data: FitData) -> FitResult[FittedImputer]:
        columns, X, m = data.columns, data.X, data.table.shape[1]
        axis = resolve_time(self.time, self.groups, self.max_gap, data.names, m)
        timeline = None
        if axis is not None:
            timeline = axis.timeline(data.table, data.observed).take(np.flatnonzero(data.used))
        monitor = data.monitor(self.max_time)
        selected = search(
            X,
            data.known,
            config=self._config,
            solver=SolverConfig(max_iter=self.max_iter, tol=self.tol),
            monitor=monitor,
            rng=make_rng(self.random_state),
            n_init=None if self.n_init == "auto" else int(self.n_init),
            bounds=columns.scaled_bounds,
            means=columns.scaled_means,
            spread=columns.scaling.spread[columns.scaling.varying],
            timeline=timeline,
        )
        result = selected.result.at_rows(np.flatnonzero(data.used))
        run = monitor.finish_search(result.describe())
        if not X.shape[1]:
            run = monitor.finish(StopReason.NOTHING_TO_FIT)
        n_sparse = (data.observed[data.used].sum(axis=1) <= MAX_SPARSE).sum()
        fitted = FittedImputer(
            columns=columns,
            model=selected.stack,
            run=run,
            mixture=selected.mixture,
            time=axis,
            smoother=selected.smoother,
            calibration=uncertainty.calibrate(selected, X.shape[1]),
            search=result,
            n_sparse_rows=int(n_sparse) if m > MAX_SPARSE else 0,
            seconds=data.seconds,
        )
        return FitResult(fitted, selected.filled, selected.spread)
