"""KFMC as a scikit-learn estimator: its parameters, in terms of the solvers; no mathematics."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank.estimators.imputer import Imputer
from hirank.estimators.parameters import (
    check_parameters,
    components_of,
    generator,
    is_missing,
    kernel_of,
    stages_of,
)
from hirank.kernels import Array, Kernel
from hirank.model.scaling import Scaling
from hirank.model.workers import Workers
from hirank.solvers.features import complete_features
from hirank.solvers.fitted import Dictionary
from hirank.solvers.loop import Options, Result, nothing_to_learn
from hirank.solvers.path import resettle
from hirank.solvers.record import Callback
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
    kernel: str | Kernel = "rbf"
    bandwidth: str | float = "path"
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float | None = None
    solver: str = "lbfgs"
    max_iter: int = 250
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None

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
        assert isinstance(self._rows, Dictionary)
        V = self._rows.coordinates(self._scaling.forward(filled))
        scaling = Scaling.measure(new, seen, scale=True)
        scaled = scaling.forward(np.where(seen, new, 0).astype(np.float64))
        completed = complete_features(scaled, seen[:, scaling.varying], V)
        return np.where(seen, new, scaling.backward(completed).astype(new.dtype))

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _most_steps(self) -> int:
        return (len(stages_of(self)) + 1) * self.max_iter

    def _learn(
        self, X: Array, observed: NDArray[np.bool_], callback: Callback
    ) -> tuple[Result, Dictionary]:
        stages, r = stages_of(self), components_of(self, len(X))
        options = Options(self.alpha, self.max_iter, self.tol, callback)
        task = Task(X, observed, r, kernel_of(self), stages, options)
        rng = generator(self.random_state)
        if not X.shape[1]:
            result = nothing_to_learn(X, r)
        elif self.solver == "newton":
            result = complete_table_as_paper(task, rng)
        else:
            with Workers() as workers:
                result = complete_table(task, workers, rng)
        return result, Dictionary(result.D, resettle(result.settings, stages, result.D))

    def _publish(self, outcome: Result) -> None:
        self.dictionary_ = self._scaling.backward(outcome.D)
        self.n_components_ = len(outcome.D)
        self.kernel_ = outcome.settings[-1].kernel if outcome.settings else kernel_of(self)
