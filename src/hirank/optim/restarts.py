"""New starting points, between two stages, for samples that may have ended in the wrong place.

A point of the dictionary that is used by one sample only explains that sample by itself, wherever
it is, and so does not constrain its missing entries. Such samples are solved again without the
point that they own. The samples that fit worst then restart from where their neighbors are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, clip_missing
from hirank.core.objective import Basis, codes, gradient_without
from hirank.core.slices import count_work
from hirank.core.threads import Workers
from hirank.optim.path import Setting
from hirank.optim.rows import RowRules, RowSolver

MIN_SHARE = 0.5  # of all use of a point, with which a sample owns it
WORST = 0.1  # part of the samples that restart from elsewhere
SPARSEST = 0.2  # part of the samples whose places are averaged
SAME_PLACE = 1e-2  # distance of two places, a root mean square over features, that counts as none
N_STARTS = 5  # neighbors that such a sample starts from
MAX_CANDIDATES = 2000  # samples among which neighbors are searched
MIN_GAIN = 1e-3  # relative decrease that a new place must bring
ROUNDS = 50  # of L-BFGS for each start
MEMORY = 10
BLOCK = 250  # samples solved together


class _Own(NamedTuple):
    """For each of n samples: the point it uses most, and whether that point is its own."""

    point: IntArray
    owns: BoolArray

    def at(self, rows: IntArray) -> _Own:
        return _Own(self.point[rows], self.owns[rows])


def restart_samples(
    X: Array,
    D: Array,
    observed: BoolArray,
    setting: Setting,
    workers: Workers,
    bounds: Bounds | None = None,
) -> tuple[Array, Array]:
    """Return better places for some samples of X, n x m; points of D, r x m, follow their owners.

    The missing entries of X must be within the bounds, and stay there.
    """
    basis = setting.basis(D).prepare()
    own = _owners(X, basis)
    complete = observed.all(axis=1)

    moved = X.copy()
    owners = np.flatnonzero(own.owns & ~complete)
    moved[owners], _ = _solve(X[owners], observed[owners], basis, own.at(owners), workers, bounds)

    value = gradient_without(moved, basis, own.point, own.owns)[0]
    value[complete] = -np.inf
    worst = np.argsort(-value, kind="stable")[: int(np.ceil(WORST * len(X)))]
    worst = worst[np.isfinite(value[worst])]
    if len(X) > 1 and len(worst):
        places, reached = _solve_from_neighbors(X, observed, worst, basis, own, workers, bounds)
        best = reached.argmin(axis=1)
        better = reached.min(axis=1) < (1 - MIN_GAIN) * value[worst]
        moved[worst[better]] = places[np.arange(len(worst)), best][better]

    D = D.copy()
    D[own.point[own.owns]] += (moved - X)[own.owns]
    return moved, D


def _owners(X: Array, basis: Basis) -> _Own:
    use = np.square(codes(X, basis))
    use /= np.maximum(use.sum(axis=0), np.finfo(use.dtype).tiny)
    point = use.argmax(axis=1)
    return _Own(point, use[np.arange(len(X)), point] > MIN_SHARE)


def average_places(
    X: Array,
    D: Array,
    observed: BoolArray,
    setting: Setting,
    workers: Workers,
    bounds: Bounds | None = None,
) -> Array:
    """Return X, n x m, with samples that few entries leave undetermined at the mean of places.

    The sparsest samples are solved from their neighbors as well. Places count as those of a
    Gaussian whose variance is the median of F over samples, so that a sample stays where it is
    unless another place fits it as well as a typical sample is fitted. The missing entries of X
    must be within the bounds, and stay there.
    """
    basis = setting.basis(D).prepare()
    own = _owners(X, basis)
    n_observed = observed.sum(axis=1)
    rows = np.argsort(n_observed, kind="stable")[: int(np.ceil(SPARSEST * len(X)))]
    rows = rows[n_observed[rows] < X.shape[1]]
    if len(X) < 2 or not len(rows):
        return X
    here = gradient_without(X, basis, own.point, own.owns)[0]
    places, values = _solve_from_neighbors(X, observed, rows, basis, own, workers, bounds)
    values = np.column_stack([here[rows], values])
    variance = max(float(np.median(here)), np.finfo(values.dtype).tiny)
    weights = np.exp(-(values - values.min(axis=1, keepdims=True)) / (2 * variance))
    weights /= weights.sum(axis=1, keepdims=True)
    steps = places - X[rows][:, None]
    # What ends in the same place differs by the accuracy of the solver, which is not averaged in.
    steps[np.sqrt(np.square(steps).mean(axis=2)) < SAME_PLACE] = 0
    averaged = X.copy()
    averaged[rows] += np.einsum("bk,bkm->bm", weights[:, 1:], steps)
    return averaged


def _solve_from_neighbors(
    X: Array,
    observed: BoolArray,
    rows: IntArray,
    basis: Basis,
    own: _Own,
    workers: Workers,
    bounds: Bounds | None,
) -> tuple[Array, Array]:
    """Solve `rows` from each of k neighbors; return places, b x k x m, and values, b x k."""
    near = _neighbors(X, observed, rows)
    k = near.shape[1]
    again = np.repeat(rows, k)
    start = np.where(observed[again], X[again], X[near.ravel()])
    start = clip_missing(bounds, start, observed[again])
    places, values = _solve(start, observed[again], basis, own.at(again), workers, bounds)
    return places.reshape(len(rows), k, -1), values.reshape(-1, k)


def _neighbors(X: Array, observed: BoolArray, rows: IntArray) -> IntArray:
    """Return the samples nearest on the observed entries of each of `rows`, b -> b x k."""
    n = len(X)
    pool = np.linspace(0, n - 1, min(n, MAX_CANDIDATES)).astype(np.intp)
    k = min(N_STARTS, len(pool) - 1)
    known = observed[rows].astype(X.dtype)
    distance = known @ np.square(X[pool]).T - 2 * (known * X[rows]) @ X[pool].T
    distance[rows[:, None] == pool] = np.inf
    return pool[np.argpartition(distance, k - 1, axis=1)[:, :k]]


def _solve(
    X: Array,
    observed: BoolArray,
    basis: Basis,
    own: _Own,
    workers: Workers,
    bounds: Bounds | None,
) -> tuple[Array, Array]:
    """Minimize each sample's part of F without its own point; return places, b x m, and values."""
    b, m = X.shape
    if b == 0:
        return X, np.zeros(0)
    solver, rules = RowSolver.prepare(basis), RowRules(ROUNDS, MEMORY)
    places = np.array(X, dtype=np.float64, order="C")
    observed = np.ascontiguousarray(observed)
    left_out = np.where(own.owns, own.point, -1)

    def block(rows: slice) -> Array:
        x, seen, without = places[rows], observed[rows], left_out[rows]
        return solver.minimize(x, seen, rules, bounds=bounds, left_out=without).value

    blocks = [slice(i, min(i + BLOCK, b)) for i in range(0, b, BLOCK)]
    cost = 1.0 * ROUNDS * b * len(basis.D) * (m + len(basis.D))
    values = np.concatenate([*workers.map(block, blocks, cost)])
    count_work(cost / 2)  # most samples end before
    return places.astype(X.dtype, copy=False), values
