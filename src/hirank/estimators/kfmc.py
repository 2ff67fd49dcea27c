"""KFMC: one kernel dictionary, as in the paper."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank._checks import Rule, choice, count, number, optional
from hirank._text import plural
from hirank._typing import Array, BoolArray, PathLike
from hirank.core.bounds import Bounds
from hirank.core.columns import Columns
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.estimators.base import BaseImputer, FitData, FitResult
from hirank.estimators.columns import Names, resolve_bounds, warn_of_violations
from hirank.estimators.fitted import FittedKFMC
from hirank.estimators.saving import save
from hirank.estimators.validation import (
    KERNEL_RULES,
    NEWTON_RULES,
    check_n_components,
    check_table,
    is_missing,
    job_count,
    make_kernel,
    make_rng,
    unmask,
    warn_of_relaxation,
)
from hirank.exceptions import InputError, ParameterError
from hirank.kernels import Kernel
from hirank.models.dictionary import Dictionary
from hirank.models.fit_dictionary import (
    DictionaryProblem,
    default_n_components,
    fit_algorithm1,
    fit_dictionary,
)
from hirank.models.new_features import complete_features
from hirank.models.newton_dictionary import NewtonDictionary
from hirank.optim.algorithm3 import MAX_STEPS, Algorithm3Config
from hirank.optim.newton import MOMENTUM, RELAXATION
from hirank.optim.path import (
    BANDWIDTHS,
    LAST_BETA,
    PathSolution,
    SolverConfig,
    Stage,
    default_path,
    rescale_ridges,
)

NEWTON_BETA = 1e-3
"""The ridge of the paper's RBF experiments."""


@dataclass(eq=False, repr=False)
class KFMC(BaseImputer[FittedKFMC]):
    """Kernelized factorization matrix completion (Fan and Udell, 2019).

    Missing entries and a dictionary of `n_components` points are fitted jointly, such that every
    row, seen through the kernel, lies close to the span of the dictionary. Use :class:`Imputer`,
    which includes this model, for a table whose structure is not known.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points of the dictionary, at most the number of rows and 2000. ``"auto"`` takes
        ``3.8 * n_samples**0.6`` (60 for 100 rows), at most 400.
    kernel : {"rbf", "poly"} or Kernel, default="rbf"
        A kernel object is used as it is, in units of the scaled features.
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between rows. ``"path"``
        grows from 1 to 8 along the stages, and stands for 1 with ``solver="newton"``.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
    beta : float, optional
        Ridge of the codes, in units of the mean of k(d, d) over the dictionary: the value at the
        end of the path for ``solver="lbfgs"``, throughout for ``"newton"``. By default 1e-10 and
        1e-3. A path also ends earlier, where held-out entries are recovered best.
    solver : {"lbfgs", "newton"}, default="lbfgs"
        ``"lbfgs"`` minimizes over missing entries and dictionary together, along a path from
        strong to weak regularization. ``"newton"`` is Algorithm 1 of the paper, and ``transform``
        then is its Algorithm 3, with the same momentum, relaxation, `max_iter` and `tol`.
    momentum : float, optional
        eta of the paper: the part of the last Newton step that is added to the next, from 0 to
        below 1. By default 0.5. Requires ``solver="newton"``.
    relaxation : float, optional
        tau of the paper: the factor by which Newton steps are shortened. By default 1.1. With 1 or
        less, Lemma 3 of the paper does not hold, and a warning is issued. Requires
        ``solver="newton"``.
    bounds : pair, list of pairs or dict, optional
        Limits of imputed values: a pair ``(lower, upper)`` for all features, one for each, or a
        dictionary from names or numbers of columns to pairs; None is no limit. Observed values
        outside are kept, with a warning.
    scale : {"auto", "standard", "robust"} or bool, default="auto"
        As in :class:`Imputer`.
    max_iter : int, default=250
        Maximum number of steps in each stage (``"newton"`` has one stage), and of Algorithm 3 for
        each row, there at most 2000.
    tol : float, default=1e-3
        A stage ends when the objective fell by less than this fraction over ten steps; a row of
        Algorithm 3 ends when its part of the objective did.
    max_time : float, optional
        Seconds that a fit may take; then it ends with what it has.
    missing_values, add_indicator, keep_empty_features
        As in :class:`Imputer`.
    random_state : int, RandomState or None, default=None
        Determines the starting dictionary and the held-out entries.
    n_jobs : int, optional
        Threads that fit and impute, as in scikit-learn: None is one, unless a context of joblib
        sets another number, and -1 is one for each processor. Results do not depend on it.
    verbose : int, default=0
        1 shows the progress in a line of the terminal or notebook, or prints a line per stage to
        standard error if that is a file; 2 prints a line per step.

    Attributes
    ----------
    dictionary_ : array, n_components_ x n_features_kept
        The dictionary, in the units of the data.
    n_components_ : int
    kernel_ : Kernel
        The kernel of the last stage, for scaled features.
    objective_ : float
        The reduced objective at the end.
    n_iter_ : int
        The number of steps.
    stop_reason_ : str
        Why the fit stopped, as a sentence.
    status_ : StopReason
        The same as an enumeration.
    trace_ : structured array
        Columns ``step``, ``stage``, ``objective``, ``seconds``.
    has_values_ : bool array, n_features_in_
        Which features had an observed entry in ``fit``.
    indicator_ : MissingIndicator or None
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.

    Notes
    -----
    Observed entries are returned bit for bit. ``fit_transform`` returns the solution of the fit;
    ``transform`` imputes with the dictionary fixed, each row on its own, the same alone and in any
    batch. A table may be complete: then only the dictionary is fitted, for new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> t = np.linspace(-1, 1, 60)
    >>> truth = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X = truth.copy()
    >>> X[::3, 1] = np.nan
    >>> filled = KFMC(20, random_state=0).fit_transform(X)
    >>> bool(np.abs(filled - truth).max() < 0.05)
    True

    A dictionary from complete rows, by Algorithm 1, and new rows imputed by Algorithm 3:

    >>> model = KFMC(20, solver="newton", momentum=0.5, relaxation=1.1, random_state=0).fit(truth)
    >>> bool(np.abs(model.transform(X) - truth).max() < 0.1)
    True
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    kernel: str | Kernel = "rbf"
    bandwidth: str | float = "path"
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float | None = None
    solver: str = "lbfgs"
    momentum: float | None = None
    relaxation: float | None = None
    bounds: Any = None
    max_iter: int = 250
    tol: float = 1e-3
    max_time: float | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    _record_type: ClassVar[Any] = FittedKFMC
    _rules: ClassVar[dict[str, Rule]] = KERNEL_RULES | {
        "solver": choice("lbfgs", "newton"),
        "max_iter": count(),
        "tol": number(least=0),
        "max_time": optional(number(above=0)),
        "n_jobs": job_count,
        **{name: optional(rule) for name, rule in NEWTON_RULES.items()},
    }

    def complete_features(self, X: Any, features: Any) -> Array:
        """Impute columns that were not part of the fit, from the codes of their rows.

        Parameters
        ----------
        X : array-like, n_samples x n_features
            The rows in the features of the fit, complete (for instance the result of
            ``fit_transform``) or not (then ``transform`` imputes them first).
        features : array-like, n_samples x n_new
            The new columns, with missing entries.

        Returns
        -------
        features : array, n_samples x n_new
        """
        check_is_fitted(self)
        table, observed = check_table(self, X, reset=False)
        new = check_array(
            unmask(features), dtype=(np.float64, np.float32), ensure_all_finite="allow-nan"
        )
        seen = ~is_missing(new, self.missing_values)
        if len(new) != len(table):
            raise InputError(
                f"X has {plural(len(table), 'row')}, but features has {len(new)}. Give the same "
                "rows, in the same order, to both."
            )
        if not seen.any(axis=0).all():
            empty = np.flatnonzero(~seen.any(axis=0)).tolist()
            raise InputError(f"New features {empty} have no observed values. Drop them.")
        filled = self._fitted.complete(table, observed).astype(np.float64)
        codes = self._fitted.model.coordinates(self._fitted.columns.scaling.forward(filled))
        scaling = Scaling.measure(new, seen, scale="standard")
        scaled = scaling.forward(np.where(seen, new, 0).astype(np.float64))
        completed = complete_features(scaled, seen[:, scaling.varying], codes)
        return np.where(seen, new, scaling.backward(completed).astype(new.dtype))

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a file, from which :func:`hirank.load` restores it.

        Parameters
        ----------
        path : str or path
            By convention with the extension ``.hirank``. An existing file is replaced.

        Notes
        -----
        As :meth:`Imputer.save`. A kernel that is not one of hirank's own cannot be saved.
        """
        save(self, path)

    @property
    def objective_(self) -> float:
        return self._fitted.run.objective

    @property
    def dictionary_(self) -> Array:
        return self._fitted.dictionary

    @property
    def n_components_(self) -> int:
        return len(self._fitted.model.D)

    @property
    def kernel_(self) -> Kernel:
        settings = self._fitted.model.settings
        return settings[-1].kernel if settings else make_kernel(self)

    def _check_params(self) -> None:
        super()._check_params()
        make_kernel(self)  # checks degree and offset
        for name in NEWTON_RULES:
            if self.solver != "newton" and getattr(self, name) is not None:
                raise ParameterError(
                    name, f"requires {{solver}}='newton'; got {{solver}}={self.solver!r}.", "solver"
                )

    def _max_steps(self) -> int:
        return (len(self._stages()) + 1) * self.max_iter

    def _stages(self) -> tuple[Stage, ...]:
        """Return the path of the solver."""
        path = isinstance(self.bandwidth, str)
        if self.solver == "newton":
            beta = NEWTON_BETA if self.beta is None else self.beta
            return (Stage(1.0 if path else float(self.bandwidth), beta),)
        bandwidths = BANDWIDTHS if path else (float(self.bandwidth),) * len(BANDWIDTHS)
        return default_path(bandwidths, LAST_BETA if self.beta is None else self.beta)

    def _resolve_columns(self, table: Array, observed: BoolArray, names: Names) -> Columns:
        columns = super()._resolve_columns(table, observed, names)
        bounds = resolve_bounds(self.bounds, names, table.shape[1])
        if bounds is not None:
            warn_of_violations(bounds, table, observed, names)
            kept = columns.has_values
            bounds = Bounds(bounds.lower[kept], bounds.upper[kept])
        return replace(columns, bounds=bounds)

    def _fit_data(self, data: FitData) -> FitResult[FittedKFMC]:
        X, bounds, stages = data.X, data.columns.scaled_bounds, self._stages()
        r = default_n_components(len(X)) if self.n_components == "auto" else int(self.n_components)
        check_n_components(r, len(X))
        config = SolverConfig(self.alpha, self.max_iter, self.tol)
        problem = DictionaryProblem(X, data.known, r, make_kernel(self), stages, config, bounds)
        monitor, rng = data.monitor(self.max_time), make_rng(self.random_state)
        steps = self._newton_steps() if self.solver == "newton" else None
        if not X.shape[1]:
            solution = PathSolution.empty(X, r)
        elif steps is not None:
            solution = fit_algorithm1(
                problem, rng, monitor, momentum=steps.momentum, relaxation=steps.relaxation
            )
        else:
            with Workers() as workers:
                solution = fit_dictionary(problem, workers, rng, monitor)
        reached = len(solution.settings), len(stages)
        run = monitor.finish(
            solution.reason,
            objective=solution.objective,
            tol=self.tol,
            max_iter=self.max_iter,
            stage=reached if reached[0] < reached[1] else None,
        )
        model: Dictionary | NewtonDictionary
        if steps is None:
            settings = rescale_ridges(solution.settings, stages, solution.D)
            model = Dictionary(solution.D, settings, bounds=bounds)
        else:
            model = NewtonDictionary(solution.D, solution.settings, steps, bounds)
        fitted = FittedKFMC(data.columns, model, run, data.seconds)
        return FitResult(fitted, solution.X)

    def _newton_steps(self) -> Algorithm3Config:
        """Return how Algorithms 1 and 3 move, with a warning if Lemma 3 does not hold."""
        momentum = MOMENTUM if self.momentum is None else float(self.momentum)
        relaxation = RELAXATION if self.relaxation is None else float(self.relaxation)
        warn_of_relaxation(relaxation)
        max_iter = min(int(self.max_iter), MAX_STEPS)
        return Algorithm3Config(momentum, relaxation, max_iter, float(self.tol))
