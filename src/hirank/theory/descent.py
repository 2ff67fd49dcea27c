"""What the steps of Algorithms 1 and 2 do to the objective: Lemmas 3 to 6 of the paper.

The steps are those of `hirank.optim`. Where the lemmas hold, and the smallest cases in which they
do not, is described in docs/notes/theory.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from hirank._typing import Array, BoolArray
from hirank.core.objective import Basis, codes, objective, reduced_gradient
from hirank.core.threads import Workers
from hirank.kernels import RBF, Kernel, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.newton import MOMENTUM, RELAXATION, Newton
from hirank.optim.path import PathPoint, Setting


class Decrease(NamedTuple):
    """By how much a step of the dictionary lowers the objective, with the codes as they were."""

    actual: float  # negative if the objective rises
    guaranteed: float  # by the lemma


class NeglectedTerm(NamedTuple):
    """Norms of changes that a step of the dictionary causes in the gradient of the RBF kernel."""

    change: float  # of the term X Q_1, whose derivative the paper's curvature leaves out
    kept: float  # of the other terms, by the paper's curvature
    printed: float  # the bound of Lemma 4 with c = 1
    bound: float  # the corrected bound


class Course(NamedTuple):
    """The course of Algorithm 1: one value before the first step and one after each step."""

    objectives: Array
    gradient_norms: Array  # of the reduced objective, in the missing entries and the dictionary


def offline_decrease(
    X: Any, D: Any, kernel: Poly, *, beta: float, alpha: float = 0.0, relaxation: float = RELAXATION
) -> Decrease:
    """Compare the decrease by one step of D in Algorithm 1 with that of Lemma 3.

    Lemma 3 guarantees a decrease of Tr(g H^-1 g') / (2 tau), where g and H are the gradient and the
    curvature for fixed weights (x.d + c)^(q - 1). For degree 1 this holds from tau = 1 on. For
    higher degrees it holds if tau is large enough, which may be far above 1.

    Parameters
    ----------
    X : array, n x m
        A complete table.
    D : array, r x m
        The dictionary. The codes are the best ones of X and D.
    kernel : Poly
    beta, alpha : float
        The ridges of codes and dictionary.
    relaxation : float, default=1.1
        tau

    Examples
    --------
    >>> from hirank.kernels import Poly
    >>> from hirank.theory import offline_decrease
    >>> step = offline_decrease([[2.0], [1.0]], [[0.5]], Poly(1, 0.0), beta=0.1, relaxation=1.0)
    >>> [round(value, 4) for value in step]  # equal: degree 1, and tau is 1
    [0.2041, 0.2041]
    >>> step = offline_decrease([[3.0]], [[0.5]], Poly(3, 1.0), beta=1.0, alpha=1.0)
    >>> step.actual < 0 < step.guaranteed  # the objective rises
    True
    """
    table, points = (check_array(array, dtype=np.float64) for array in (X, D))
    solver = Newton(np.ones(table.shape, bool), momentum=0.0, relaxation=relaxation)
    start = solver.init(PathPoint(Setting(kernel, beta, alpha), table, points))
    after = solver.step(start)
    if not np.isfinite(after.objective):
        raise np.linalg.LinAlgError(
            "The curvature of the dictionary is singular. Use alpha above 0, or fewer points."
        )
    g, H = _fixed_weight_derivatives(table, start.Z, start.basis, kernel.degree)
    actual = start.objective - objective(table, start.Z, after.basis)
    return Decrease(actual, float(np.sum(g * np.linalg.solve(H, g))) / (2 * relaxation))


def online_decrease(
    x: Any, D: Any, kernel: Poly, *, beta: float, alpha: float = 0.0, relaxation: float = RELAXATION
) -> Decrease:
    """Compare the decrease by one step of D in Algorithm 2 with that of Lemma 6.

    Lemma 6 guarantees a decrease of |g|^2 / (2 tau tau_0) for tau above 1, where tau_0 is the
    largest eigenvalue of the curvature H of the sample. For degree 1 this holds from tau = 1 on.

    Parameters
    ----------
    x : array, m
        A complete sample.
    D, kernel, beta, alpha, relaxation
        As in :func:`offline_decrease`.

    Examples
    --------
    >>> from hirank.kernels import Poly
    >>> from hirank.theory import online_decrease
    >>> step = online_decrease([2.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], Poly(2, 1.0), beta=0.1)
    >>> step.actual > step.guaranteed > 0
    True
    """
    row = check_array(np.asarray(x)[None], dtype=np.float64)
    points = check_array(D, dtype=np.float64)
    setting, start = Setting(kernel, beta, alpha), Algorithm2State.start(points)
    done = paper_pass(
        row,
        np.ones(row.shape, bool),
        np.zeros((1, len(points))),
        start,
        setting,
        momentum=0.0,
        relaxation=relaxation,
    )
    basis = setting.basis(points)
    g, H = _fixed_weight_derivatives(row, done.Z, basis, kernel.degree)
    actual = objective(row, done.Z, basis) - objective(row, done.Z, setting.basis(done.state.D))
    guaranteed = float(np.sum(g**2)) / (2 * relaxation * float(np.linalg.norm(H, 2)))
    return Decrease(actual, guaranteed)


def neglected_term(X: Any, D: Any, moved: Any, *, sigma: float, beta: float) -> NeglectedTerm:
    """Measure the term that the curvature of the RBF kernel leaves out: Lemma 4.

    The term is X Q_1, with Q_1 = -Z' * K(X, D), at two dictionaries and with the codes of the
    first. Lemma 4 bounds the norm of its change by c |X| |D - D_2| / (sigma sqrt(n)) with a small
    constant c. That does not hold for a fixed beta: the corrected bound, which holds for any codes,
    has exp(-1/2) max_j |z_j| in place of c / sqrt(n), where z_j are the n codes of point j.

    Parameters
    ----------
    X : array, n x m
        A complete table.
    D, moved : array, r x m
        The two dictionaries.
    sigma : float
        The length scale of :class:`hirank.kernels.RBF`.
    beta : float
        The ridge of the codes.

    Examples
    --------
    Equal samples show how the term grows with their number, where the printed bound stays:

    >>> from hirank.theory import neglected_term
    >>> for n in (1, 100):
    ...     term = neglected_term([[1.0]] * n, [[0.0]], [[0.1]], sigma=1.0, beta=0.1)
    ...     print([round(value, 3) for value in (term.change, term.printed, term.bound)])
    [0.033, 0.1, 0.033]
    [3.333, 0.1, 3.344]
    """
    table, first, second = (check_array(array, dtype=np.float64) for array in (X, D, moved))
    kernel = RBF(float(sigma))
    basis = Basis(kernel, first, beta)
    Z = codes(table, basis)
    P = -Z * kernel.matrix(table, first)
    move = second - first
    change = (P + Z * kernel.matrix(table, second)).T @ table
    curvature = kernel.dictionary_curvature(P, Z.T @ Z * basis.gram[1] / 2)
    unit = float(np.linalg.norm(table, 2) * np.linalg.norm(move)) / sigma
    return NeglectedTerm(
        float(np.linalg.norm(change)),
        float(np.linalg.norm(curvature @ move)) * sigma**2,
        unit / len(table) ** 0.5,
        unit * float(np.exp(-0.5) * np.linalg.norm(Z, axis=0).max()),
    )


def trace_algorithm_1(
    X: Any,
    D: Any,
    kernel: Kernel,
    *,
    observed: BoolArray | None = None,
    beta: float,
    alpha: float = 0.0,
    momentum: float = MOMENTUM,
    relaxation: float = RELAXATION,
    n_steps: int = 500,
) -> Course:
    """Run Algorithm 1 and return objectives and norms of gradients: Lemma 5.

    Lemma 5 states that the gradient goes to 0 if the momentum eta is small enough. It does in most
    cases, but not in all, even without momentum: the objective may end in a cycle.

    Parameters
    ----------
    X : array, n x m
        The table. Missing entries start from what X holds there.
    D : array, r x m
        The first dictionary.
    kernel : Kernel
        RBF, its sigma given, or Poly.
    observed : bool array, n x m, optional
        Observed entries never change. All are observed by default.
    beta, alpha : float
        The ridges of codes and dictionary.
    momentum, relaxation : float
        eta and tau
    n_steps : int, default=500
        The course ends earlier if the objective is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import RBF
    >>> from hirank.theory import trace_algorithm_1
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> observed = X < 1
    >>> start = np.where(observed, X, 0)
    >>> course = trace_algorithm_1(start, start[:4], RBF(2.0), observed=observed, beta=0.1)
    >>> bool(course.gradient_norms[-1] < 1e-4 * course.gradient_norms[0])
    True
    """
    table, points = (check_array(array, dtype=np.float64) for array in (X, D))
    seen = np.ones(table.shape, bool) if observed is None else np.asarray(observed, bool)
    solver = Newton(seen, momentum, relaxation)
    state = solver.init(PathPoint(Setting(kernel, beta, alpha), table, points))
    objectives, norms = [], []
    with Workers() as workers:
        for _ in range(n_steps + 1):
            if not np.isfinite(state.objective):
                break
            objectives.append(state.objective)
            gradient = reduced_gradient(state.X(), state.basis, workers)
            assert gradient.X is not None
            assert gradient.D is not None
            free = np.concatenate([gradient.X[~seen], gradient.D.ravel()])
            norms.append(np.linalg.norm(free))
            state = solver.step(state)
    return Course(np.array(objectives), np.array(norms))


def _fixed_weight_derivatives(X: Array, Z: Array, basis: Basis, degree: int) -> tuple[Array, Array]:
    """Return g, r x m, and H, r x r, of the polynomial kernel with its weights fixed.

    The derivatives of the objective itself are q times as large, and so are those of the kernel.
    """
    weights = Z.T @ Z + basis.alpha * np.eye(len(basis.D))
    H = weights * basis.gram[1] / degree
    P = Z * basis.bound.rows(X)[1] / degree
    return H @ basis.D - basis.bound.pull_points(P, X), H
