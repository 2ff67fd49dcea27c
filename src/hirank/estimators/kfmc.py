"""KFMC as a scikit-learn estimator: its parameters, in terms of the solvers; no mathematics."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank._typing import Array, BoolArray, PathLike
from hirank.core.bounds import Bounds, clip_missing
from hirank.core.masking import MaskingConfig
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.estimators.base import Imputer
from hirank.estimators.callbacks import teller
from hirank.estimators.column_constraints import (
    bounds_of,
    check_whole,
    rounded,
    times_of,
    warn_violations,
    whole_features,
)
from hirank.estimators.saving import save
from hirank.estimators.search_plan import Learned, is_automatic, plan_of
from hirank.estimators.summary import THIN, Summary, summarize
from hirank.estimators.uncertainty import draws_of, held_out_of, interval_of
from hirank.estimators.validation import (
    check_parameters,
    components_of,
    generator,
    is_missing,
    kernel_of,
    stages_of,
)
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import Task, complete_table, complete_table_as_paper
from hirank.models.gaps import too_long
from hirank.models.new_features import complete_features
from hirank.models.row_models import Dictionary, RowModel
from hirank.models.temporal_smoother import Drift
from hirank.optim.path import PathSolution, SolverConfig, rescale_ridges
from hirank.optim.trace import Callback, Monitor
from hirank.selection.temporal import InTime
from hirank.selection.uncertainty import Confidence
from hirank.selection.whole_table import choose


@dataclass(eq=False, repr=False)
class KFMC(Imputer):
    """Imputation of tables with curved structure, by models that hidden entries choose.

    Without arguments there is nothing to set. Some observed entries are hidden, candidates are
    fitted to the rest and judged by what they fill in for them:

    - linear: one Gaussian, with more or less noise;
    - locally linear: mixtures of 2 to 32 Gaussians;
    - low rank: factors, for tables without noise or with few samples;
    - kernelized: a dictionary of points in the space of the data. Seen through a kernel, every
      sample is close to a linear combination of them. Several kernels, paths and sizes are tried.

    The best of each kind get weights, also by hidden entries; who gains nothing gets none. What has
    weight is fitted once more to all entries, and the weighted mean of the fills is the result.
    ``print(model.summary())`` tells what was chosen and how good it is.

    With ``mix=False`` and ``n_components``, ``kernel`` and ``bandwidth`` all given, nothing is
    chosen but the end of the path: one dictionary is fitted, as in the paper.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points in a dictionary, at most the number of samples. ``"auto"`` begins with a third of
        ``3.8 * n_samples**0.6`` (20 for 100 samples, 80 for 1000) and takes three times as many, up
        to twice that number and 800, as long as hidden entries gain 3 % and no other model is
        ahead.
    kernel : {"auto", "rbf", "poly"} or Kernel, default="auto"
        ``"auto"`` tries the RBF kernel, then the polynomial one unless models that are no
        dictionaries are ahead by then. A kernel object is used as it is, in units of the scaled
        features.
    bandwidth : {"auto", "path"} or float, default="auto"
        Length scale of the RBF kernel as a multiple of the mean distance between samples.
        ``"path"`` grows from 1 to 8 along the stages; ``"auto"`` also tries a smoother path, from 2
        to 8 with ten times the first ridge, which suits noise; a number stays.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
    beta : float, optional
        Ridge of the codes, in units of the mean of k(d, d) over the dictionary: the value at the
        end of the path for ``solver="lbfgs"``, throughout for ``"newton"``. By default 1e-10 and
        1e-3. A path also ends earlier, where hidden entries are recovered best.
    solver : {"lbfgs", "newton"}, default="lbfgs"
        ``"lbfgs"`` minimizes over missing entries and dictionary together, along a path from
        strong to weak regularization. ``"newton"`` is Algorithm 1 of the paper: one dictionary
        whatever else is "auto" (RBF kernel, bandwidth 1, ``3.8 * n_samples**0.6`` points, at most
        400). ``mix`` has no effect; ``order``, ``n_starts`` and ``max_time`` are errors.
    mix : bool, default=True
        Whether Gaussians, mixtures of them and low-rank factors take part. With False there are
        only dictionaries.
    n_starts : int or "auto", default="auto"
        Models of a kind whose fills are averaged. ``"auto"`` takes four dictionaries from
        different starts, or two if they have more than 120 points, and up to four mixtures. Of
        mixtures there are never more than sets of hidden entries (one if the table is large, five
        at most), of linear models always one.
    bounds : pair, list of pairs or dict, optional
        Limits of the fills. A pair ``(lower, upper)`` for all features, one for each, or a
        dictionary from names or numbers of columns to pairs; None is no limit. Observed values
        beyond stay what they are, with a warning.
    integers : "auto", bool or list of columns, optional
        Features whose fills are rounded to whole numbers, by name or number; ``"auto"``: those with
        nothing but whole numbers observed; True: all. By default none.
    order : "time", str or int, optional
        Rows follow each other in time, and neighbors in time help to fill gaps. ``"time"``: as they
        stand, evenly spaced (unless a column has that name); else the name or number of the column
        with the times, which must be complete and different. If they are not, rows are taken as
        they stand, with a warning.
    max_gap : int, optional
        Entries in gaps of more rows than this, in the order in which rows stand, remain NaN. Needs
        ``order``.
    scale : {"auto", "standard", "robust"} or bool, default="auto"
        ``"standard"`` brings each feature to mean 0 and standard deviation 1 first, and back
        afterwards. ``"auto"`` (or True) does too, but gross errors don't count, neither in that nor
        in the fit, and amounts with heavy tails are compressed. ``"robust"`` compresses all heavy
        tails. False leaves the units as they are.
    max_iter : int, default=250
        Most steps in each stage of a dictionary (``"newton"`` has one stage).
    tol : float, default=1e-3
        A stage ends when the objective fell by less than this fraction over ten steps.
    max_time : float, optional
        Seconds that learning may take. A search begins nothing new after 60 % of them, so that the
        best so far can be fitted to everything; after all of them it ends with what it has. The
        step that is being taken, ``order`` and the learning of widths come on top.
    missing_values : float, default=nan
        What stands for a missing value. NaN always does as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature that had missing entries in ``fit``.
    keep_empty_features : bool, default=False
        Features without any observed entry in ``fit`` are dropped; with True they are kept and
        filled with 0.
    random_state : int, RandomState or None, default=None
        Chooses the entries that are hidden and the starting dictionaries.
    verbose : int, default=0
        1 writes a line per candidate to standard error, 2 also one per stage, 3 one per step. With
        nothing to choose, 1 is a line per stage, 2 one per step.

    Attributes
    ----------
    search_results_ : dict of arrays
        A row for each candidate, best of each kind last: ``candidate`` ("column means",
        "linear", "locally linear", "low rank", "kernelized"), ``kernel``, ``n_components``
        (Gaussians, rank or points), ``bandwidth``, ``beta``, ``noise`` (part of the variance, of
        Gaussians), ``ridge`` (of factors), ``error`` (at hidden entries, in scaled features:
        the geometric mean of the mean absolute and the root mean square error), ``seconds``,
        ``weight`` in the result, ``failure`` (why it came to nothing, if so). NaN or
        "" where a setting has no meaning. ``pandas.DataFrame(model.search_results_)`` shows it.
        Empty if nothing was chosen.
    held_out_ : dict of arrays
        The hidden entries in the units of the data: ``row``, ``feature``, ``truth``, and what the
        chosen models (``fill``) and the best linear one (``linear``) filled in without having seen
        them. Empty if nothing was hidden.
    dictionary_ : array, n_components_ x n_features_kept
        The first dictionary, in the units of the data; also learned if it has no weight.
    n_components_ : int
        Its points.
    kernel_ : Kernel
        Its kernel at the last stage, for scaled features.
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    objective_ : float
        Its reduced objective at the end; NaN if there was no dictionary to learn.
    n_iter_ : int
        Steps in all, those of all candidates.
    stop_reason_ : str
        A sentence: what was chosen, or how one dictionary ended.
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``, one candidate after the other; of
        Gaussians ``objective`` is the negative log likelihood of a sample.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.

    See Also
    --------
    hirank.complete : One call for arrays and data frames.
    hirank.OnlineKFMC : For rows that keep coming.

    Notes
    -----
    Observed entries come back bit for bit. ``fit_transform`` returns the solution of the fit;
    ``transform`` completes with what was learned and never changes the model, so the two differ
    slightly on the same table. ``transform`` completes each sample on its own, the same alone and
    in any batch, except with ``order``: then neighbors in time count.

    ``interval`` and ``sample`` know from hidden entries how far fills are off. They need a table
    with 50 observed entries or more, and something to choose; else they raise. Below 50, one
    cautious Gaussian fills the table, with a warning (with ``mix=False`` one dictionary).

    Models are chosen and learned from at most 10 000 samples, drawn at random (with ``order``, a
    stretch from the middle); further ones are completed as ``transform`` would.

    float32 comes back as float32, but is solved in double precision: the end of the path needs the
    digits. A sample without any observed entry is left out of the fit and filled with the feature
    means, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> holes = X.copy()
    >>> holes[::3, 1] = np.nan
    >>> model = KFMC(random_state=0)
    >>> filled = model.fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    >>> model.stop_reason_[:28]
    'Chosen on 40 hidden entries:'
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
            Around what ``transform`` fills in, within ``bounds``; at observed entries, their
            values. Ends are not rounded to ``integers``; what ``max_gap`` leaves empty is NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import KFMC
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> truth = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X = truth.copy()
        >>> X[::4, 1] = np.nan
        >>> model = KFMC(max_iter=20, random_state=0).fit(X)
        >>> lower, upper = model.interval(X, coverage=0.9)
        >>> bool(((lower <= truth) & (truth <= upper))[::4, 1].mean() >= 0.8)
        True
        """
        return interval_of(self, X, coverage)

    def sample(self, X: Any, n_draws: int = 5, random_state: Any = None) -> Array:
        """Completed tables as they may be: for multiple imputation.

        Missing entries are drawn around what ``transform`` fills in, those of a sample together,
        as far apart as hidden entries were from their fills. What is computed from each table
        differs by what is not known. Draws keep to ``bounds`` and ``integers``.

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
        >>> from hirank import KFMC
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> truth = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X = truth.copy()
        >>> X[::4, 1] = np.nan
        >>> model = KFMC(max_iter=20, random_state=0).fit(X)
        >>> tables = model.sample(X, n_draws=4, random_state=0)
        >>> tables.shape
        (4, 40, 3)
        >>> bool(tables[:, 0, 1].std() > 0), bool(tables[:, 1, 1].std() == 0)  # missing, observed
        (True, True)
        """
        return draws_of(self, X, n_draws, random_state)

    def summary(self) -> Summary:
        """What was chosen, how good it is, and what not to trust.

        Returns
        -------
        summary : Summary
            A dictionary that prints as text: ``chosen`` (candidates with weight and settings),
            ``stop_reason``, ``n_components``, ``seconds``, ``verdict`` (a sentence) and
            ``n_hidden``; if entries were hidden
            also ``error`` and ``linear_error`` at them (root mean square, column mean = 1;
            ``linear_error`` is NaN with ``mix=False``), ``mean_error``, ``features`` (the same of
            each feature, with a remark) and ``thin_samples`` (with two observed entries or fewer).

        Examples
        --------
        >>> import numpy as np
        >>> from hirank import KFMC
        >>> rng = np.random.default_rng(0)
        >>> size = rng.normal(size=40)
        >>> truth = np.column_stack([size, 2 * size, 3 * size]) + rng.normal(size=(40, 3)) / 4
        >>> X = truth.copy()
        >>> X[::4, 1] = np.nan
        >>> model = KFMC(max_iter=20, random_state=0).fit(X)
        >>> summary = model.summary()
        >>> summary["verdict"][:30]
        'A linear method does as well: '
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
        filled = super()._complete(table, observed).astype(np.float64)  # long gaps too
        V = self._dictionary.coordinates(self._scaling.forward(filled))
        scaling = Scaling.measure(new, seen, scale="standard")
        scaled = scaling.forward(np.where(seen, new, 0).astype(np.float64))
        completed = complete_features(scaled, seen[:, scaling.varying], V)
        return np.where(seen, new, scaling.backward(completed).astype(new.dtype))

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a file, from which :func:`hirank.load` makes it again.

        The model that is loaded gives the same results to the bit. The file is there as a whole
        or not at all, holds arrays, numbers and words, and is read without running any code. It
        holds the entries that were hidden in ``fit`` (``held_out_``): who gets it sees them.

        Parameters
        ----------
        path : str or path
            Any name; ``.hirank`` is usual. A file of that name is replaced.

        Notes
        -----
        A RandomState object given as ``random_state`` is saved as None: ``fit`` has drawn from it,
        and nothing else does. A kernel that is not one of hirank's own can't be saved.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import hirank
        >>> X = np.outer(np.arange(9.0), [1, 2, 3])
        >>> X[::3, 1] = np.nan
        >>> model = hirank.KFMC(3, kernel="rbf", bandwidth="path", mix=False, max_iter=20)
        >>> model = model.set_params(random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.hirank")
        ...     model.save(path)
        ...     again = hirank.load(path)
        >>> bool((again.transform(X) == model.transform(X)).all())
        True
        """
        save(self, path)

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _most_steps(self) -> int:
        return (len(stages_of(self)) + 1) * self.max_iter * (10 if is_automatic(self) else 1)

    def _verbosity(self) -> int:
        # Of the many stages of a search, candidates are told of instead.
        return self.verbose - 1 if self.verbose and is_automatic(self) else self.verbose

    def _prepare(self, table: Array, observed: BoolArray, used: BoolArray) -> None:
        self._began = perf_counter()
        names = getattr(self, "feature_names_in_", None)
        limits = bounds_of(self.bounds, names, table.shape[1])
        self._limits = self._scaled_limits = None
        if limits is not None:
            warn_violations(limits, table, observed, names)
            kept = self.has_values_
            self._limits = Bounds(limits.lower[kept], limits.upper[kept])
            self._scaled_limits = self._limits.scale(self._scaling)
        self._used = np.flatnonzero(used)
        self._thin = int((observed[used].sum(axis=1) <= THIN).sum()) if table.shape[1] > THIN else 0
        self._whole = whole_features(self.integers, table, observed, names)
        check_whole(self._whole, limits, names)
        times = times_of(self.order, table, observed, names)
        self._times = None if times is None else times[used]
        self._drift: Drift | None = None
        self._confidence: Confidence | None = None

    def _learn(self, X: Array, observed: BoolArray, callback: Callback) -> tuple[Learned, RowModel]:
        options = SolverConfig(self.alpha, self.max_iter, self.tol)
        monitor = Monitor(
            callback,
            max_time=self.max_time,
            subscriber=teller(type(self).__name__, self.verbose),
        )
        rng = generator(self.random_state)
        enough = self.mix or self.order is not None or observed.sum() >= MaskingConfig.min_observed
        if X.shape[1] and is_automatic(self) and enough:
            return self._choose(X, observed, options, monitor, rng)
        stages, r = stages_of(self), components_of(self, len(X))
        task = Task(X, observed, r, kernel_of(self), stages, options, self._scaled_limits)
        if not X.shape[1]:
            result = PathSolution.empty(X, r)
        elif self.solver == "newton":
            result = complete_table_as_paper(task, rng, monitor)
        else:
            with Workers() as workers:
                result = complete_table(task, workers, rng, monitor)
        settings = rescale_ridges(result.settings, stages, result.D)
        rows = Dictionary(result.D, settings, bounds=self._scaled_limits)
        ended = len(result.settings), len(stages)
        run = monitor.finish(
            result.reason,
            objective=result.objective,
            tol=self.tol,
            max_iter=self.max_iter,
            stage=ended if ended[0] < ended[1] else None,
        )
        return Learned.plain(result.X, run, rows), rows

    def _choose(
        self,
        X: Array,
        observed: BoolArray,
        options: SolverConfig,
        record: Monitor,
        rng: np.random.Generator,
    ) -> tuple[Learned, RowModel]:
        """Let hidden entries decide what fills the table, n x v."""
        plan = plan_of(self, len(X), options, self._scaled_limits)
        chosen, self._drift = choose(X, observed, plan, record, rng, self._times)
        if chosen.held_out is not None:
            rows = self._used[chosen.held_out.rows]  # of the table
            chosen = replace(chosen, held_out=replace(chosen.held_out, rows=rows))
            assert chosen.held_out is not None
            self._confidence = Confidence.learn(
                chosen.held_out, chosen.blend, chosen.mixture, X.shape[1], chosen.gain
            )
        return Learned.chosen(chosen, record), chosen.blend

    def _publish(self, outcome: Learned) -> None:
        self._dictionary, self._chosen = outcome.dictionary, outcome.notes
        self.dictionary_ = self._scaling.backward(outcome.dictionary.D)
        self.n_components_ = len(outcome.dictionary.D)
        settings = outcome.dictionary.settings
        self.kernel_ = settings[-1].kernel if settings else kernel_of(self)
        self.search_results_ = outcome.results
        self.held_out_ = held_out_of(self, outcome.notes)
        self._seconds = perf_counter() - self._began

    def _finish(
        self,
        scaled: Array,
        known: BoolArray,
        blank: BoolArray,
        table: Array,
        observed: BoolArray,
    ) -> Array:
        kept = self.has_values_
        if self._drift is None:
            filled = super()._finish(scaled, known, blank, table, observed)
        else:
            names = getattr(self, "feature_names_in_", None)
            times = times_of(self.order, table, observed, names, quiet=True)
            assert times is not None
            fill = np.where(blank[:, None], np.nan, scaled)
            scaled = InTime(times).combine(self._drift, scaled, known, fill)
            filled = self._scaling.backward(clip_missing(self._scaled_limits, scaled, known))
        return rounded(filled, self._whole[kept], self._limits)

    def _fit(self, X: Any) -> tuple[Array, BoolArray, Array]:
        table, observed, filled = super()._fit(X)
        return table, observed, self._with_gaps(table, observed, filled)

    def _complete(self, table: Array, observed: BoolArray) -> Array:
        times_of(self.order, table, observed, getattr(self, "feature_names_in_", None))  # may warn
        return self._with_gaps(table, observed, super()._complete(table, observed))

    def _with_gaps(self, table: Array, observed: BoolArray, filled: Array) -> Array:
        """Kept features, n x k, with NaN in gaps that are too long to fill."""
        if self.max_gap is None:
            return filled
        names = getattr(self, "feature_names_in_", None)
        times = times_of(self.order, table, observed, names, quiet=True)
        assert times is not None  # max_gap needs an order
        order = np.argsort(times, kind="stable")
        wide = np.empty(filled.shape, bool)
        wide[order] = too_long(observed[:, self.has_values_][order], self.max_gap)
        return np.where(wide, np.array(np.nan, filled.dtype), filled)
