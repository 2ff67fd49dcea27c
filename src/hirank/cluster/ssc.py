"""Sparse subspace clustering as a scikit-learn estimator."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from hirank._checks import Rule, count, flag, number, optional
from hirank._text import abbreviated, plural
from hirank._typing import Array
from hirank.cluster.affinity import affinity_matrix, cut
from hirank.cluster.self_expression import Codes, penalty_scale, sparse_self_expression
from hirank.estimators.imputer import Imputer
from hirank.estimators.validation import check_params, unmask
from hirank.exceptions import InputError, ParameterError


@dataclass(eq=False, repr=False)
class SSC(ClusterMixin, BaseEstimator):
    """Sparse subspace clustering, of complete or incomplete tables.

    Each sample (row) is written as a sparse combination of other samples. Those on the same
    subspace need the fewest, so the graph of samples that use each other falls into the subspaces,
    and spectral clustering finds them. Missing entries are imputed first.

    Parameters
    ----------
    n_clusters : int, default=8
        Subspaces to find.
    alpha : float, default=800.0
        How closely samples must be expressed: weight of the squared error against the sum of
        absolute coefficients, in units of the smallest weight at which no sample has a zero code
        (with ``affine=False``). 800 is the authors' value for motion segmentation, where the noise
        is small; try 10 to 100 for noisy data.
    affine : bool, default=True
        Subspaces need not contain the origin: coefficients of a sample sum to 1. If all of them
        contain it, False is much better: a sample in the hull of the others is a mean of any.
    outlier_alpha : float, optional
        Allows single entries to be wrong by any amount, at a cost proportional to this number;
        try 5 to 20. By default there is no such term.
    keep : float, default=0.7
        Use only the largest coefficients of each sample, those with this share of the sum of
        absolute values; 1 uses all.
    n_components : int, optional
        Project samples on so many principal directions (through the origin) first. The authors
        take ``4 * n_clusters`` for motions. The time grows with the cube of the number of
        features: worth it from a few hundred.
    completer : estimator, optional
        Imputes X by its ``fit_transform`` if entries are missing (NaN). By default
        ``Imputer(random_state=random_state)``.
    max_iter : int, default=200
        Steps of the solver for a sample, at most.
    tol : float, default=1e-3
        Largest deviation from optimality, in units of the penalty of a coefficient. A smaller
        one gives sparser codes, and not better clusters.
    random_state : int, RandomState or None, default=None
        For k-means in spectral clustering, and for the default completer.
    verbose : int, default=0
        1 prints lines to standard error.

    Attributes
    ----------
    labels_ : int array, n_samples
        0 to n_clusters - 1.
    coefficients_ : array, n_samples x n_samples
        Row i expresses sample i.
    affinity_matrix_ : array, n_samples x n_samples
    completer_ : estimator or None
        The fitted completer; None if nothing was missing.
    n_iter_ : int
        The largest number of steps that a sample took.
    stop_reason_ : str
        Why the solver stopped, as a sentence.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has string column names.

    References
    ----------
    E. Elhamifar and R. Vidal, Sparse subspace clustering: algorithm, theory, and applications,
    IEEE PAMI 35 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.cluster import SSC
    >>> rng = np.random.default_rng(0)
    >>> planes = [rng.standard_normal((30, 2)) @ rng.standard_normal((2, 6)) for _ in range(2)]
    >>> labels = SSC(n_clusters=2, affine=False, random_state=0).fit_predict(np.vstack(planes))
    >>> bool((labels[:30] == labels[0]).all() and (labels[30:] == 1 - labels[0]).all())
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    alpha: float = 800.0
    affine: bool = True
    outlier_alpha: float | None = None
    keep: float = 0.7
    n_components: int | None = None
    completer: Any = None
    max_iter: int = 200
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(self, X: Any, y: object = None) -> SSC:
        """Cluster the samples of a table.

        Parameters
        ----------
        X : array-like, n_samples x n_features
            With missing entries (NaN) or without; at least one entry in each row.
        y : ignored

        Returns
        -------
        self
        """
        check_params(self, _RULES)
        table = validate_data(
            self, unmask(X), dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2
        )
        if self.n_clusters > len(table):
            raise ParameterError(
                "n_clusters", f"must be at most n_samples={len(table)}; got {self.n_clusters}."
            )
        random_state = check_random_state(self.random_state)
        points = self._project(_unit_size(self._impute(table, random_state)))
        codes = self._express(points)
        self.coefficients_ = codes.coefficients
        self.affinity_matrix_ = affinity_matrix(codes.coefficients, self.keep)
        self.n_iter_ = int(codes.n_iter.max())
        self.stop_reason_ = self._stop_reason(codes)
        if self.affine:  # an affine subspace is a linear one with a further coordinate
            points = np.column_stack([points, np.ones(len(points))])
        self.labels_ = cut(self.affinity_matrix_, points, self.n_clusters, random_state)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _impute(self, table: Array, random_state: np.random.RandomState) -> Array:
        """Return the table imputed, n x (features with an observed entry)."""
        missing = np.isnan(table)
        self.completer_ = None
        if not missing.any():
            return table
        empty = np.flatnonzero(missing.all(axis=1)).tolist()
        if empty:
            raise InputError(
                f"Rows {abbreviated(empty)} have no observed values, so they cannot be clustered. "
                "Leave them out."
            )
        default = Imputer(random_state=random_state.randint(2**31))
        self.completer_ = default if self.completer is None else clone(self.completer)
        filled = np.asarray(self.completer_.fit_transform(table), dtype=np.float64)
        if len(filled) != len(table) or not np.isfinite(filled).all():
            raise InputError(
                f"{type(self.completer_).__name__} did not impute X: its output must have all "
                "rows of X and only finite numbers. Use another completer, or None for Imputer."
            )
        return filled

    def _project(self, points: Array) -> Array:
        """Return coordinates on the first principal directions; on all without a limit."""
        n, d = points.shape
        if self.n_components is not None and self.n_components > min(n, d):
            raise ParameterError(
                "n_components",
                f"must be None or at most {min(n, d)} for n_samples={n} with {d} features; got "
                f"{self.n_components}.",
            )
        if self.n_components is None and d <= n:
            return points
        U, S, _ = np.linalg.svd(points, full_matrices=False)
        return (U * S)[:, : self.n_components]

    def _express(self, points: Array) -> Codes:
        scale = penalty_scale(points)
        if scale == 0 and not self.affine:
            raise InputError(
                "Every sample is orthogonal to all others (or zero): none can be expressed by "
                "others. Use affine=True, or more samples."
            )
        # The sizes of samples; at worst, the second is the largest of the others.
        size = np.sort(np.abs(points).sum(axis=1))[-2]
        cost = None if self.outlier_alpha is None else self.outlier_alpha / max(size, 1e-300)
        codes = sparse_self_expression(
            points,
            self.alpha / (scale or 1),
            affine=self.affine,
            outlier_cost=cost,
            tol=self.tol,
            max_iter=self.max_iter,
            report=self._report if self.verbose else None,
        )
        if not codes.coefficients.any():
            raise InputError(
                f"All coefficients are zero: alpha={self.alpha:g} makes them too expensive. "
                "Raise alpha above 1 (800 is the default)"
                + ("." if cost is None else ", or outlier_alpha.")
            )
        return codes

    def _report(self, done: int, n: int, seconds: float) -> None:
        sys.stderr.write(f"[SSC] {done} of {n} samples expressed, {seconds:.1f} s\n")

    def _stop_reason(self, codes: Codes) -> str:
        late = np.flatnonzero(codes.violation > self.tol).tolist()
        if not late:
            return f"Converged: every sample is expressed optimally within tol={self.tol:g}."
        worst = float(codes.violation.max())
        return (
            f"Reached max_iter={self.max_iter} for {plural(len(late), 'sample')} (rows "
            f"{abbreviated(late)}), whose codes are within {worst:.1g} of optimal instead of "
            f"tol={self.tol:g}. Use a larger max_iter or tol."
        )


def _unit_size(table: Array) -> Array:
    """Return the table divided by its largest entry, so that squares cannot overflow."""
    largest = np.abs(table).max(initial=0)
    return table / largest if largest > 0 else table


_RULES: dict[str, Rule] = {
    "n_clusters": count(),
    "alpha": number(above=0),
    "affine": flag,
    "verbose": count(0),
    "outlier_alpha": optional(number(above=0)),
    "keep": number(above=0, most=1),
    "n_components": optional(count()),
    "max_iter": count(),
    "tol": number(above=0),
}
