"""Each sample as a sparse combination of the others: the lasso problems of SSC, solved together.

For sample x (a row, d numbers) and the others as atoms, rows of B, the code c minimizes

    |c|_1 + (fit / 2) |x - c B|^2    with sum(c) = 1 if affine.

The dual has d + 1 unknowns however many samples there are: y (and t for the sum) with
|B y + t| <= 1. Proximal steps c <- soft(c + s (B y + t), s) with growing s lead to the solution;
(y, t) of each is the minimum of a convex, piecewise quadratic function, found by Newton steps
on the atoms in use (Li, Sun and Toh, SIAM J. Optim. 2018). docs/notes/clustering.md compares
this with ADMM. Starting from c = 0, it tends to the most even of all solutions where there
are several, and does not depend on the order of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._typing import Array, IntArray
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor

# Lengths of the proximal steps. Shorter ones take more steps and give less sparse codes; rounding
# errors grow with the length (docs/notes/clustering.md).
FIRST_STEP, GROWTH, LAST_STEP = 100.0, 4.0, 1e5
PROXIMAL_STEPS = 30  # at most
BACKTRACKS = 40  # of a Newton step, at most
SUFFICIENT = 1e-4  # part of the expected decrease that a Newton step must bring


@dataclass(frozen=True)
class Codes:
    """What `sparse_self_expression` found for n samples."""

    coefficients: Array  # n x n, row i for sample i, zero diagonal
    outliers: Array  # n x d, the part explained by wrong entries; zero without that term
    n_iter: IntArray  # n, Newton steps
    violation: Array  # n, how far from optimal: distance to the subgradient of |c|_1


@dataclass(frozen=True)
class _Atoms:
    """The dual problem that all samples share: N atoms of D numbers."""

    B: Array  # N x D, the last column for the sum if affine
    ridge: Array  # D, 1 / fit, and 0 for the sum


def penalty_scale(X: Array) -> float:
    """Return the smallest over samples of the largest |x_i . x_j| with another sample.

    With ``fit = alpha / penalty_scale(X)`` and alpha > 1 no sample has a zero code. Samples that
    are orthogonal to all others (a zero row is) cannot be expressed at all and do not count.

    Parameters
    ----------
    X : array, n x d

    Returns
    -------
    scale : float
        0 if all samples are orthogonal to each other.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.cluster import penalty_scale
    >>> penalty_scale(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0]]))
    3.0
    """
    gram = np.abs(X @ X.T)
    rounding = 1e-12 * gram.max(initial=0)
    np.fill_diagonal(gram, 0)
    largest = gram.max(axis=1)
    return float(min(largest[largest > rounding], default=0.0))


def sparse_self_expression(
    X: Array,
    fit: float,
    *,
    affine: bool = True,
    outlier_cost: float | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    report: Callable[[int, int, float], None] | None = None,
    block_size: int = 128,
) -> Codes:
    """Code each sample by the others, sparsely.

    Parameters
    ----------
    X : array, n x d
        Complete.
    fit : float
        Weight of the squared error against the sum of absolute coefficients.
    affine : bool, default=True
        Coefficients of a sample sum to 1.
    outlier_cost : float, optional
        If given, sample i is coded as c X + e with ``outlier_cost * |e|_1`` added to the objective.
    tol : float, default=1e-3
        A sample is done when each coefficient is optimal up to a change of its penalty by this
        share, and the sum is right within it.
    max_iter : int, default=200
        Newton steps for a sample, at most.
    report : function of the number of samples done, of all samples, and of seconds, optional
    block_size : int, default=128
        Samples solved together: enough for efficient products, few enough for the cache.

    Returns
    -------
    codes : Codes

    Examples
    --------
    The first two samples are on one line through the origin, the last two on another.

    >>> import numpy as np
    >>> from hirank.cluster import sparse_self_expression
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> sparse_self_expression(X, 1e6, affine=False, tol=1e-9).coefficients.round(3)
    array([[0.   , 0.5  , 0.   , 0.   ],
           [2.   , 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.333],
           [0.   , 0.   , 3.   , 0.   ]])
    """
    n, d = X.shape
    B, ridge = X, np.full(d, 1 / fit)
    if outlier_cost is not None:
        B = np.vstack([X, np.eye(d) / outlier_cost])
    if affine:
        B = np.column_stack([B, np.arange(len(B)) < n])
        ridge = np.append(ridge, 0.0)
    atoms = _Atoms(np.ascontiguousarray(B, dtype=np.float64), ridge)
    found, n_iter, violation = np.empty((n, len(B))), np.zeros(n, np.intp), np.empty(n)
    monitor = Monitor()
    for start in range(0, n, block_size):
        rows = np.arange(start, min(start + block_size, n))
        solver = _ProximalPoint(atoms, rows, affine, tol, max_iter)
        state = minimize(solver, None, max_iter=PROXIMAL_STEPS, monitor=monitor).state
        found[rows], n_iter[rows], violation[rows] = state.codes, state.n_iter, state.violation
        if report is not None:
            report(int(rows[-1]) + 1, n, monitor.seconds)
    wrong = found[:, n:] / outlier_cost if outlier_cost is not None else np.zeros((n, d))
    return Codes(found[:, :n], wrong, n_iter, violation)


@dataclass(frozen=True)
class _State:
    """Codes of b samples; those that are not optimal yet are listed in `left`."""

    codes: Array  # b x N
    dual: Array  # b x D
    n_iter: IntArray  # b, Newton steps
    violation: Array  # b
    left: IntArray
    length: float  # of the next proximal step

    @property
    def objective(self) -> float:
        return float(self.violation.max())


@dataclass(frozen=True)
class _ProximalPoint:
    """Proximal steps of growing length for some samples at once."""

    atoms: _Atoms
    rows: IntArray  # b; the atoms that the samples are
    affine: bool
    tol: float
    max_iter: int  # Newton steps for a sample
    monotone: ClassVar[bool] = False

    def init(self, start: None) -> _State:
        b, (n_atoms, width) = len(self.rows), self.atoms.B.shape
        dual = np.zeros((b, width))
        if self.affine:  # all samples with equal weight
            dual[:, -1] = 1 + 1 / (FIRST_STEP * n_atoms)
        codes, steps, violation = np.zeros((b, n_atoms)), np.zeros(b, np.intp), np.full(b, np.inf)
        return _State(codes, dual, steps, violation, np.arange(b), FIRST_STEP)

    def step(self, state: _State) -> _State:
        left, length = state.left, state.length
        arrays = (state.codes, state.dual, state.n_iter, state.violation)
        codes, dual, n_iter, violation = (array.copy() for array in arrays)
        rows = self.rows[left]
        step = _ProximalStep(self.atoms, rows, codes[left], dual[left], length)
        n_iter[left] += step.minimize(0.1 * self.tol, self.max_iter - n_iter[left])
        codes[left], dual[left] = step.codes, step.dual
        violation[left] = _violation(self.atoms, rows, codes[left], dual[left], self.affine)
        left = left[(violation[left] > self.tol) & (n_iter[left] < self.max_iter)]
        return _State(codes, dual, n_iter, violation, left, min(GROWTH * length, LAST_STEP))

    def terminate(self, state: _State, objectives: Sequence[float]) -> bool:
        return not len(state.left)


class _ProximalStep:
    """soft(c + s B y, s) for b samples, where y minimizes the (regularized) dual objective.

    f(y) = |y|^2 / (2 fit) - x . y + |soft(c + s B y, s)|^2 / (2 s), with gradient
    y / fit - x + soft(...) B and generalized Hessian 1 / fit + s B_J' B_J, J the atoms in use.
    """

    def __init__(
        self, atoms: _Atoms, rows: IntArray, before: Array, dual: Array, length: float
    ) -> None:
        self.atoms, self.rows, self.before, self.length = atoms, rows, before, length
        self.targets, self.dual = atoms.B[rows], dual
        self.values, self.codes, self.gradients = self._evaluate(np.arange(len(rows)), dual)

    def minimize(self, tol: float, limit: IntArray) -> IntArray:
        """Take Newton steps until gradients are small, up to `limit` each; return how many."""
        taken = np.zeros(len(self.rows), np.intp)
        left = np.arange(len(self.rows))
        # What an error changes in the slopes that must stay below 1; a wrong sum counts as it is.
        size = np.linalg.norm(self.atoms.B, axis=1).max()
        small = np.where(self.atoms.ridge > 0, tol * self.atoms.ridge / size, tol)
        small += np.finfo(float).eps * self.length * size  # rounding errors of codes
        while True:
            large = (np.abs(self.gradients[left]) > small).any(axis=1)
            left = left[large & (taken[left] < limit[left])]
            if not len(left):
                return taken
            taken[left] += 1
            left = self._search(left, self._directions(left))

    def _evaluate(self, which: IntArray, dual: Array) -> tuple[Array, Array, Array]:
        """Return objective, b, codes, b x N, and gradient, b x D."""
        targets = self.targets[which]
        codes = dual @ self.atoms.B.T
        codes *= self.length
        codes += self.before[which]
        codes -= np.clip(codes, -self.length, self.length)
        codes[np.arange(len(which)), self.rows[which]] = 0  # no sample is coded by itself
        values = 0.5 * dual**2 @ self.atoms.ridge - np.sum(targets * dual, axis=1)
        values += np.einsum("bn,bn->b", codes, codes) / (2 * self.length)
        return values, codes, dual * self.atoms.ridge - targets + codes @ self.atoms.B

    def _directions(self, which: IntArray) -> Array:
        hessians = np.empty((len(which), *2 * self.atoms.ridge.shape))
        for hessian, codes in zip(hessians, self.codes[which], strict=True):
            used = self.atoms.B[np.flatnonzero(codes)]
            np.matmul(used.T, used, out=hessian)
        hessians *= self.length
        diagonal = np.einsum("bii->bi", hessians)
        # The sum has no ridge of its own, and there may be fewer atoms in use than unknowns.
        diagonal += self.atoms.ridge + 1e-15 * (1 + diagonal.max(axis=1, keepdims=True))
        return -np.linalg.solve(hessians, self.gradients[which, :, None])[:, :, 0]

    def _search(self, which: IntArray, p: Array) -> IntArray:
        """Halve steps until the objective falls enough; return those for which it did.

        Where it is flat up to rounding, its slope decides (Hager and Zhang 2005).
        """
        slope, share = np.einsum("bd,bd->b", p, self.gradients[which]), 1.0
        todo = np.arange(len(which))
        for _ in range(BACKTRACKS):
            at = which[todo]
            dual = self.dual[at] + share * p[todo]
            values, codes, gradients = self._evaluate(at, dual)
            change, rounding = values - self.values[at], 1e-14 * np.abs(self.values[at])
            slope_there = np.einsum("bd,bd->b", p[todo], gradients)
            flat = (change <= rounding) & (slope_there <= (2 * SUFFICIENT - 1) * slope[todo])
            fine = ((change <= SUFFICIENT * share * slope[todo]) & (change < -rounding)) | flat
            done = at[fine]
            self.dual[done], self.values[done] = dual[fine], values[fine]
            self.codes[done], self.gradients[done] = codes[fine], gradients[fine]
            todo, share = todo[~fine], share / 2
            if not len(todo):
                break
        return np.delete(which, todo)


def _violation(atoms: _Atoms, rows: IntArray, codes: Array, dual: Array, affine: bool) -> Array:
    """Return the distance of b codes from optimal, in units of the penalty."""
    errors = atoms.B[rows] - codes @ atoms.B
    fitted = errors / np.where(atoms.ridge > 0, atoms.ridge, 1)
    if affine:
        fitted[:, -1] = dual[:, -1]
    slopes = fitted @ atoms.B.T
    distance = np.where(codes != 0, np.abs(slopes - np.sign(codes)), np.abs(slopes) - 1)
    distance[np.arange(len(rows)), rows] = 0
    worst = distance.max(axis=1, initial=0)
    return np.maximum(worst, np.abs(errors[:, -1])) if affine else worst
