"""Single rows with a fixed dictionary: the part of each in F is minimized over its missing entries.

Compiled where that is possible, otherwise in NumPy: the same steps, rounded differently. The result
for a row must not depend on which others come with it. Two things ensure that: all decisions (step
length, curvature, acceptance, end) are made per row, and sums run in an order that is the same for
any number of rows. In NumPy, products run on stacked blocks of one fixed number of rows, because
they round differently for different shapes and an optimization amplifies such differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank import _compiled
from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, make_box
from hirank.core.curvature import MIN_DIAGONAL, sample_hessians
from hirank.core.objective import Basis, gradient_without, sample_gradient
from hirank.kernels import RBF, Poly
from hirank.optim.quasi_newton import minimize_rows

# Not 16, 32 or 64: there OpenBLAS's dtrmm for AVX-512 rounds a row differently by its position in
# the block, and a permuted batch differed by up to 1e-2. With 24 none of the eight kernel sets that
# were measured does (docs/notes/out_of_sample.md).
ROWS_PER_BLOCK = 24
MAX_TABLE = 1 << 25
"""Bytes of curvature of points that are kept for later rows. The compiled core has the same."""
MAX_BLOCK_ENTRIES = 4_000_000
"""Of the matrices of curvature of the rows that are computed side by side in NumPy."""


@dataclass(frozen=True)
class RowRules:
    """When rows end, and how their steps are found."""

    rounds: int  # evaluations after the first one, at most
    memory: int  # steps that a row remembers
    tolerance: float = 0.0  # a row ends where no entry of its next step is larger,
    min_decrease: float = 0.0  # or where that step promises no larger decrease of F
    damping: float = 0.0  # of the curvature at the nearest point of the dictionary, the inverse of
    # which preconditions the steps, in mean diagonals; 0 for steps without it


class _Curvature(NamedTuple):
    """The curvature at a point of the dictionary."""

    H: Array  # m x m
    unit: float  # mean diagonal of its first term


class RowResult(NamedTuple):
    """What was found for each of b rows."""

    value: Array  # b, the part of each row in F
    evaluations: IntArray  # b


@dataclass(frozen=True, eq=False)
class RowSolver:
    """Minimizes the parts of rows in F, with what depends on the dictionary computed once."""

    basis: Basis  # with D, r x m, in double precision
    _packed: dict[str, Any] = field(default_factory=dict, repr=False)  # by instruction set
    _table: dict[int, _Curvature] = field(default_factory=dict, repr=False)  # by point

    @classmethod
    def prepare(cls, basis: Basis) -> RowSolver:
        """Return a solver for a basis of any precision; it computes in double precision."""
        return cls(replace(basis, D=np.ascontiguousarray(basis.D, dtype=np.float64)))

    def nearest(self, X: Array, observed: BoolArray) -> IntArray:
        """Return the point of the dictionary nearest to each row of X on its observed entries."""
        compiled = self._compiled()
        if compiled is not None:
            found: IntArray = compiled.nearest(X, observed)
            return found
        return nearest(pad(X, 0), pad(observed, True), self.basis.D)[: len(X)]

    def minimize(
        self,
        X: Array,
        observed: BoolArray,
        rules: RowRules,
        *,
        rows: IntArray | None = None,
        bounds: Bounds | None = None,
        left_out: IntArray | None = None,
    ) -> RowResult:
        """Move the missing entries of some rows of X, n x m, in place; of all without `rows`.

        X must be in double precision and C order, and within the bounds. The row i does without
        the point ``left_out[i]`` of the dictionary, unless that is -1.
        """
        rows = np.arange(len(X)) if rows is None else rows
        bounds = bounds if bounds is not None and bounds.bounded else None
        compiled = self._compiled()
        if compiled is None:
            return self._minimize_numpy(X, observed, rules, rows, bounds, left_out)
        value, evaluations = compiled.minimize(
            X,
            observed,
            rows,
            lower=None if bounds is None else bounds.lower,
            upper=None if bounds is None else bounds.upper,
            left_out=left_out,
            rounds=rules.rounds,
            memory=rules.memory,
            tolerance=rules.tolerance,
            decrease=rules.min_decrease,
            damping=rules.damping,
        )
        return RowResult(value, evaluations)

    def _compiled(self) -> Any | None:
        """Return the packed dictionary of the compiled core; None if it cannot be used."""
        core = _compiled.core()
        if core is None:
            return None
        packed = self._packed.get(core.__name__)
        if packed is None:
            kernel = self.basis.kernel
            if type(kernel) is RBF and kernel.sigma is not None:
                formula = {"rbf": True, "inverse_square": kernel.sigma**-2}
            elif type(kernel) is Poly:
                formula = {"rbf": False, "degree": kernel.degree, "offset": kernel.offset}
            else:
                return None
            root = replace(self.basis).root  # of a copy, which does not stay
            packed = core.RowBasis(D=self.basis.D, root=root, **formula)
            self._packed[core.__name__] = packed
        return packed

    def _minimize_numpy(
        self,
        X: Array,
        observed: BoolArray,
        rules: RowRules,
        rows: IntArray,
        bounds: Bounds | None,
        left_out: IntArray | None,
    ) -> RowResult:
        self.basis.prepare()
        size = 10 * ROWS_PER_BLOCK
        if rules.damping:
            size = max(ROWS_PER_BLOCK, min(size, MAX_BLOCK_ENTRIES // X.shape[1] ** 2))
        results = []
        for i in range(0, len(rows), size):
            part = rows[i : i + size]
            points = None if left_out is None else left_out[part]
            x, result = self._minimize_block(X[part], observed[part], rules, bounds, points)
            X[part] = x
            results.append(result)
        if not results:
            return RowResult(np.zeros(0), np.zeros(0, np.intp))
        return RowResult(*map(np.concatenate, zip(*results, strict=True)))

    def _minimize_block(
        self,
        x: Array,
        observed: BoolArray,
        rules: RowRules,
        bounds: Bounds | None,
        left_out: IntArray | None,
    ) -> tuple[Array, RowResult]:
        """Return the rows at the end, b x m."""

        def evaluate(x: Array, rows: IntArray) -> tuple[Array, Array]:
            if left_out is None:
                value, gradient = sample_gradient(stack(pad(x, 0)), self.basis)
                value, gradient = value.ravel(), gradient.reshape(-1, x.shape[1])
            else:
                points = left_out[rows]
                value, gradient = gradient_without(x, self.basis, points, points >= 0)
            return value[: len(x)], np.where(observed[rows], 0, gradient[: len(x)])

        done = minimize_rows(
            evaluate,
            x,
            rounds=rules.rounds,
            memory=rules.memory,
            box=make_box(bounds, observed, x.dtype),
            inverses=self._inverses(x, observed, rules.damping) if rules.damping else None,
            tolerance=rules.tolerance,
            min_decrease=rules.min_decrease,
        )
        return done.x, RowResult(done.value, done.evaluations)

    def _inverses(self, x: Array, observed: BoolArray, damping: float) -> Array:
        """Return (H + damping)^-1 on the missing entries of rows, b x m x m, with H of points.

        The nearest point is the one with the nearest image: |phi(x) - phi(d)|^2 is
        k(x, x) - 2 k(x, d) + k(d, d).
        """
        b, m = x.shape
        K = self.basis.bound.rows(stack(pad(x, 0)))[0].reshape(-1, len(self.basis.D))[:b]
        nearest = (self.basis.kernel.diag(self.basis.D) - 2 * K).argmin(axis=1)
        points = [self._curvature(int(point)) for point in nearest]
        H, unit = np.stack([point.H for point in points]), np.array([p.unit for p in points])
        missing, diagonal = ~observed, np.arange(m)
        count = np.maximum(missing.sum(axis=1), 1)
        mean = (H[:, diagonal, diagonal] * missing).sum(axis=1) / count
        both = missing[:, :, None] & missing[:, None, :]
        H *= both
        added = damping * np.maximum(mean, MIN_DIAGONAL * unit)
        H[:, diagonal, diagonal] += np.where(observed, 1, added[:, None])
        return np.linalg.inv(H) * both

    def _curvature(self, point: int) -> _Curvature:
        """Return the curvature at a point, computed on its own when a row needs it first."""
        known = self._table.get(point)
        if known is None:
            d = self.basis.D[point : point + 1]
            unit = float(np.trace(self.basis.kernel.metric(d)[0])) / d.shape[1]
            known = _Curvature(sample_hessians(d, self.basis)[0], unit)
            if (len(self._table) + 1) * known.H.nbytes <= MAX_TABLE:
                self._table[point] = known
        return known


def nearest(X: Array, observed: BoolArray, D: Array) -> IntArray:
    """Return the row of D nearest to each row of X on its observed entries.

    X must have a multiple of `ROWS_PER_BLOCK` rows.
    """
    known = np.where(observed, X, 0)
    cross = stack(known) @ D.T
    squares = stack(observed.astype(X.dtype)) @ (D * D).T
    found: IntArray = (squares - 2 * cross).argmin(axis=-1).ravel()
    return found


def stack(x: Array) -> Array:
    """Return x as blocks, which NumPy multiplies one by one."""
    return x.reshape(-1, ROWS_PER_BLOCK, x.shape[1])


def pad(x: NDArray[Any], value: float | bool) -> NDArray[Any]:
    """Return x with rows of `value` appended, to a multiple of `ROWS_PER_BLOCK` rows."""
    return np.pad(x, ((0, -len(x) % ROWS_PER_BLOCK), (0, 0)), constant_values=value)
