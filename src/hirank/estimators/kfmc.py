"""KFMC as a scikit-learn estimator: its parameters, in terms of the solvers; no mathematics."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank.choice.confidence import Confidence
from hirank.choice.folds import FEWEST
from hirank.choice.in_time import InTime
from hirank.choice.search import Chosen, search
from hirank.estimators.automatic import Learned, is_automatic, plan_of
from hirank.estimators.callbacks import teller
from hirank.estimators.features import (
    bounds_of,
    rounded,
    times_of,
    warn_violations,
    whole_features,
)
from hirank.estimators.imputer import Imputer
from hirank.estimators.parameters import (
    check_count,
    check_number,
    check_parameters,
    components_of,
    generator,
    is_missing,
    kernel_of,
    stages_of,
)
from hirank.estimators.summary import THIN, Summary, summarize
from hirank.kernels import Array, Kernel
from hirank.model.bounds import Bounds, clipped
from hirank.model.scaling import Scaling
from hirank.model.workers import Workers
from hirank.solvers.features import complete_features
from hirank.solvers.fitted import Dictionary, RowModel
from hirank.solvers.gaps import too_long
from hirank.solvers.loop import Options, nothing_to_learn
from hirank.solvers.ordered import Drift
from hirank.solvers.path import resettle
from hirank.solvers.record import Callback, Recorder
from hirank.solvers.table import Task, complete_table, complete_table_as_paper


@dataclass(eq=False, repr=False)
class KFMC(Imputer):
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

    n_components: int | str = "auto"
    _: KW_ONLY
    kernel: str | Kernel = "auto"
    bandwidth: str | float = "auto"
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float | None = None
    solver: str = "lbfgs"
    mix: bool = True
    n_starts: int | str = "auto"
    bounds: Any = None
    integers: Any = None
    order: str | int | None = None
    max_gap: int | None = None
    max_iter: int = 250
    tol: float = 1e-3
    max_time: float | None = None
    random_state: int | np.random.RandomState | None = None

    def interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Where missing entries may lie, each with the given probability.

        The widths come from entries that were hidden in ``fit``: of those, the given part lay
        within. They are wider where the models disagree or hold more possible.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        lower, upper : arrays, n_samples x n_features_kept
            Around what ``transform`` fills in; at observed entries, their values.
        """
        check_number("coverage", coverage, above=0)
        if not coverage < 1:
            raise ValueError(f"coverage must be below 1, for instance 0.9; got {coverage!r}.")
        table, observed, scaled, known = self._seen_as(X)
        confidence = self._sure()
        half = confidence.half_width(scaled, known, float(coverage))
        filled = self._complete(table, observed)
        around = self._scaling.forward(filled.astype(np.float64))
        kept = self.has_values_
        seen = observed[:, kept]
        ends = []
        for end in (around - half, around + half):
            limits = rounded(self._scaling.backward(end), self._whole[kept] & False, self._limits)
            ends.append(np.where(seen | np.isnan(filled), filled, limits.astype(filled.dtype)))
        return ends[0], ends[1]

    def sample(self, X: Any, n_draws: int = 5, random_state: Any = None) -> Array:
        """Completed tables as they may be: for multiple imputation.

        Missing entries are drawn around what ``transform`` fills in, those of a sample together,
        as far apart as hidden entries were from their fills. What is computed from each table
        differs by what is not known.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        n_draws : int, default=5
        random_state : int, RandomState or None, default=None

        Returns
        -------
        tables : array, n_draws x n_samples x n_features_kept
        """
        check_count("n_draws", n_draws)
        table, observed, scaled, known = self._seen_as(X)
        confidence, rng = self._sure(), generator(random_state)
        filled = self._complete(table, observed)
        seen = observed[:, self.has_values_]
        around = self._scaling.forward(filled.astype(np.float64))
        around = np.where(np.isnan(around), 0, around)
        tables = np.empty((n_draws, *filled.shape), filled.dtype)
        for i in range(n_draws):
            drawn = self._scaling.backward(confidence.draw(scaled, around, known, rng))
            drawn = rounded(drawn, self._whole[self.has_values_], self._limits)
            tables[i] = np.where(seen | np.isnan(filled), filled, drawn.astype(filled.dtype))
        return tables

    def summary(self) -> Summary:
        """What was chosen, how good it is, and what not to trust.

        Returns
        -------
        summary : Summary
            A dictionary that prints as text.
        """
        check_is_fitted(self)
        return summarize(self)

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
        filled = self._complete(table, observed).astype(np.float64)
        V = self._dictionary.coordinates(self._scaling.forward(filled))
        scaling = Scaling.measure(new, seen, scale="standard")
        scaled = scaling.forward(np.where(seen, new, 0).astype(np.float64))
        completed = complete_features(scaled, seen[:, scaling.varying], V)
        return np.where(seen, new, scaling.backward(completed).astype(new.dtype))

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _most_steps(self) -> int:
        return (len(stages_of(self)) + 1) * self.max_iter * (10 if is_automatic(self) else 1)

    def _verbosity(self) -> int:
        # Of the many stages of a search, candidates are told of instead.
        return self.verbose - 1 if self.verbose and is_automatic(self) else self.verbose

    def _prepare(self, table: Array, observed: NDArray[np.bool_], used: NDArray[np.bool_]) -> None:
        self._began = perf_counter()
        names = getattr(self, "feature_names_in_", None)
        limits = bounds_of(self.bounds, names, table.shape[1])
        self._limits = self._scaled_limits = None
        if limits is not None:
            warn_violations(limits, table, observed, names)
            kept = self.has_values_
            self._limits = Bounds(limits.lower[kept], limits.upper[kept])
            self._scaled_limits = self._limits.scaled(self._scaling)
        self._used = np.flatnonzero(used)
        self._thin = int((observed[used].sum(axis=1) <= THIN).sum()) if table.shape[1] > THIN else 0
        self._whole = whole_features(self.integers, table, observed, names)
        times = times_of(self.order, table, observed, names)
        self._times = None if times is None else times[used]
        self._drift: Drift | None = None
        self._confidence: Confidence | None = None

    def _learn(
        self, X: Array, observed: NDArray[np.bool_], callback: Callback
    ) -> tuple[Learned, RowModel]:
        options = Options(self.alpha, self.max_iter, self.tol, callback)
        rng = generator(self.random_state)
        enough = self.mix or self.order is not None or observed.sum() >= FEWEST
        if X.shape[1] and is_automatic(self) and enough:
            return self._choose(X, observed, options, rng)
        stages, r = stages_of(self), components_of(self, len(X))
        task = Task(X, observed, r, kernel_of(self), stages, options, self._scaled_limits)
        if not X.shape[1]:
            result = nothing_to_learn(X, r)
        elif self.solver == "newton":
            result = complete_table_as_paper(task, rng)
        else:
            with Workers() as workers:
                result = complete_table(task, workers, rng)
        settings = resettle(result.settings, stages, result.D)
        rows = Dictionary(result.D, settings, bounds=self._scaled_limits)
        return Learned.plain(result, rows), rows

    def _choose(
        self, X: Array, observed: NDArray[np.bool_], options: Options, rng: np.random.Generator
    ) -> tuple[Learned, RowModel]:
        """Let hidden entries decide what fills the table, n x v."""
        tell = teller(type(self).__name__, self.verbose)
        record = Recorder(options.callback, max_time=self.max_time, tell=tell)
        plan = plan_of(self, len(X), options, self._scaled_limits)
        in_time = None if self._times is None else InTime(self._times)
        with Workers() as workers:
            hidden = None if in_time is None else in_time.hidden(observed, rng)
            chosen = search(X, observed, plan, workers, record, rng, hidden)
        if in_time is not None:
            self._drift, chosen = in_time.learn(X, observed, chosen, rng)
        if chosen.held_out is not None:
            self._confidence = Confidence.learn(
                chosen.held_out, chosen.blend, chosen.mixture, X.shape[1]
            )
        return Learned.chosen(chosen, record), chosen.blend

    def _publish(self, outcome: Learned) -> None:
        self._dictionary, self._chosen = outcome.dictionary, outcome.notes
        self.dictionary_ = self._scaling.backward(outcome.dictionary.D)
        self.n_components_ = len(outcome.dictionary.D)
        settings = outcome.dictionary.settings
        self.kernel_ = settings[-1].kernel if settings else kernel_of(self)
        self.search_results_ = outcome.results
        self.held_out_ = self._in_units(outcome.notes)
        self._seconds = perf_counter() - self._began

    def _finish(
        self,
        scaled: Array,
        known: NDArray[np.bool_],
        blank: NDArray[np.bool_],
        table: Array,
        observed: NDArray[np.bool_],
    ) -> Array:
        kept = self.has_values_
        if self._drift is None:
            filled = super()._finish(scaled, known, blank, table, observed)
        else:
            names = getattr(self, "feature_names_in_", None)
            times = times_of(self.order, table, observed, names)
            assert times is not None
            fill = np.where(blank[:, None], np.nan, scaled)
            scaled = InTime(times).combine(self._drift, scaled, known, fill)
            filled = self._scaling.backward(clipped(self._scaled_limits, scaled, known))
        filled = rounded(filled, self._whole[kept], self._limits)
        if self.max_gap is not None:
            filled[too_long(observed[:, kept], self.max_gap)] = np.nan
        return filled

    def _seen_as(self, X: Any) -> tuple[Array, NDArray[np.bool_], Array, NDArray[np.bool_]]:
        """X as a table, what is observed in it, and both as the models see them, n x v."""
        check_is_fitted(self)
        table, observed = self._checked(X, reset=False)
        kept, seen = table[:, self.has_values_], observed[:, self.has_values_]
        scaled = self._scaling.forward(np.where(seen, kept, 0).astype(np.float64))
        return (
            table,
            observed,
            scaled,
            seen[:, self._scaling.varying] & self._scaling.believable(kept),
        )

    def _in_units(self, chosen: Chosen | None) -> dict[str, NDArray[Any]]:
        """Hidden entries and what was filled in for them, in the units of the data."""
        held_out = None if chosen is None else chosen.held_out
        if held_out is None:
            return {}
        h, v = len(held_out.truth), int(self._scaling.varying.sum())
        kept = np.flatnonzero(self.has_values_)[self._scaling.varying]

        def back(values: Array) -> NDArray[np.float64]:
            one = np.zeros((h, v))
            one[np.arange(h), held_out.columns] = values
            full = np.empty((h, len(self.has_values_)))
            full[:, self.has_values_] = self._scaling.backward(one)
            return full[np.arange(h), kept[held_out.columns]]

        return {
            "row": self._used[held_out.rows],
            "feature": kept[held_out.columns],
            "truth": back(held_out.truth),
            "fill": back(held_out.fill),
            "linear": back(held_out.linear),
        }

    def _sure(self) -> Confidence:
        if self._confidence is None:
            raise ValueError(
                "This fit has hidden no entries to learn from how good its fills are: the table "
                "was too small, or all settings were given. Use a larger table, or leave "
                "n_components='auto' or mix=True."
            )
        return self._confidence
