"""The paper's algorithms in the paper's units, where the estimators differ from them.

Ridges are those of the formulas, not multiples of k(d, d), and nothing is scaled. All start as in
the authors' code: from zeros for missing entries and a normal random dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.low_rank import Subspace
from hirank.models.out_of_sample import complete_by_algorithm3
from hirank.optim.algorithm3 import Algorithm3Config
from hirank.optim.loop import Solver
from hirank.optim.newton import Newton, NewtonState
from hirank.optim.path import P, PathPoint, Setting


@dataclass
class Formula:
    """The parameters of the paper's objective."""

    n_components: int  # r
    _: KW_ONLY
    kernel: str = "rbf"  # or "poly"
    bandwidth: float = 1.0  # sigma of RBF, in mean distances of the table with zeros for missing
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float = 1e-3

    def setting(self, X: Array) -> Setting:
        """Return the kernel and ridges, with sigma measured on X, n x m."""
        if self.kernel not in ("rbf", "poly"):
            raise ValueError(f"kernel must be 'rbf' or 'poly'; got {self.kernel!r}.")
        kernel: Kernel = RBF() if self.kernel == "rbf" else Poly(self.degree, self.offset)
        return Setting(kernel.resolve(X, self.bandwidth), self.beta, self.alpha)


@dataclass
class Algorithm1(Formula):
    """The parameters of the objective and of Algorithm 1."""

    momentum: float = 0.5  # eta


def algorithm_1(
    X: Array, observed: BoolArray, formula: Algorithm1, rng: np.random.Generator
) -> Iterator[NewtonState]:
    """Yield the states of Algorithm 1, from the start on, as long as the objective is finite.

    X is n x m; for a complete table only the dictionary is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import islice
    >>> from reproduction.published import Algorithm1, algorithm_1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> states = algorithm_1(X, np.ones(X.shape, bool), Algorithm1(5), rng)
    >>> objectives = [state.objective for state in islice(states, 10)]
    >>> objectives[-1] < objectives[0]
    True
    """
    return iterate(Newton(observed, formula.momentum), X, observed, formula, rng)


def iterate(
    solver: Solver[P],
    X: Array,
    observed: BoolArray,
    formula: Formula,
    rng: np.random.Generator,
) -> Iterator[P]:
    """Yield the states of any solver, from the same start."""
    X = np.where(observed, X, 0)
    D = rng.standard_normal((formula.n_components, X.shape[1]))
    state = solver.init(PathPoint(formula.setting(X), X, D))
    while np.isfinite(state.objective):
        yield state
        state = solver.step(state)


@dataclass
class OutOfSampleKFMC(Algorithm1):
    """OSE-KFMC: Algorithm 1 on a complete table, then Algorithm 3 on each new sample.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.published import OutOfSampleKFMC
    >>> t = np.linspace(-1, 1, 101)
    >>> X = np.column_stack([t, t**2, t**3])
    >>> new = X[1::10].copy()
    >>> new[:, 1] = np.nan
    >>> filled = OutOfSampleKFMC(20, beta=1e-4, max_iter=50, random_state=0).fit(X).transform(new)
    >>> bool(np.abs(filled - X[1::10]).max() < 0.1)
    True
    """

    max_iter: int = 500
    max_inner: int = 500  # iterations for a new sample
    random_state: int = 0

    def fit(self, X: Array) -> OutOfSampleKFMC:
        """Fit a dictionary to a complete table, n x m; keep the best of all iterations."""
        rng = np.random.default_rng(self.random_state)
        states = algorithm_1(X, np.ones(X.shape, bool), self, rng)
        with Workers():  # BLAS on one thread: these products are small
            best = next(states)
            for _, state in zip(range(self.max_iter), states, strict=False):
                if state.objective < best.objective:
                    best = state
        self.basis = best.basis
        return self

    def transform(self, X: Array) -> Array:
        """Impute new samples, n x m with NaN for missing entries."""
        observed = ~np.isnan(X)
        relaxation = 1.1 if self.kernel == "rbf" else 1.0  # as in the authors' code
        config = Algorithm3Config(self.momentum, relaxation, self.max_inner, tol_change=1e-5)
        known = np.where(observed, X, 0)
        with Workers() as workers:
            return complete_by_algorithm3(known, observed, self.basis, config, workers)


class OutOfSampleLRF:
    """OSE-LRF: impute new samples from the span of a complete table, by ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.published import OutOfSampleLRF
    >>> X = np.outer(np.arange(1.0, 9), [1.0, 2, 3])
    >>> OutOfSampleLRF().fit(X).transform(np.array([[2.0, np.nan, 6]])).round(4)
    array([[2., 4., 6.]])
    """

    def __init__(self, ridge: float = 1e-6) -> None:
        self.ridge = ridge

    def fit(self, X: Array) -> OutOfSampleLRF:
        """Compute the span of a complete table, n x m."""
        rows = np.linalg.svd(X, full_matrices=False)[2]
        self.span = Subspace(rows[: np.linalg.matrix_rank(X)], self.ridge)
        return self

    def transform(self, X: Array) -> Array:
        """Impute new samples, n x m with NaN for missing entries."""
        observed = ~np.isnan(X)
        return self.span.complete(np.where(observed, X, 0), observed)
