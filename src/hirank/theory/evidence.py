"""What a table itself says: known entries are hidden, filled again, and compared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.scaling import Scaling
from hirank.estimators.kfmc import KFMC
from hirank.estimators.validation import components_of
from hirank.models.als import completions

PART = 0.1
"""Part of the observed entries that is hidden in a round."""
MOST_OF_FEATURE = 0.25
"""Most that is hidden of the observed entries of a feature."""
ENOUGH = 60
"""Hidden entries after which no further round is made."""
FEWEST = 20
"""Hidden entries below which errors would be chance."""
FEWEST_OF_FEATURE = 10
"""The same for a single feature."""
ROUNDS = 3
FAIR = 0.67
"""Of the entries that incomplete samples have, those that samples must be left with on average."""
PAIRS = 300
"""Pairs of values that are looked at."""
WILD = 4.0
"""Values are compared within this many standard deviations: a few wild ones must not decide."""
COMPONENTS = 120
LEAST_ITER, MOST_ITER = 30, 100
"""A quick KFMC: errors are up to twice those of the default, at a third of its time. Small tables
need more steps (and can have them)."""


@dataclass(frozen=True)
class HeldOut:
    """How well hidden entries came out. Errors are relative to those of the feature means.

    An error of 0 is perfect and 1 as bad as filling in the mean: root mean squares of standardized
    features.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.theory import advise
    >>> t = np.linspace(-1, 1, 60)
    >>> X = np.column_stack([t, t**2, 2 * t])
    >>> X[::5, 1] = np.nan
    >>> held_out = advise(X, random_state=0).held_out
    >>> held_out.kfmc_error < 0.5 * held_out.linear_error
    True
    """

    n_entries: int
    """Known entries that were hidden."""
    n_samples: int
    """Samples that the test was made on: all, or some at random."""
    linear_error: float
    """Of the best of many linear completions (chosen on other hidden entries)."""
    kfmc_error: float
    """Of a quick KFMC; a full one is better."""
    kfmc_gain: float
    """Lower end of linear_error / kfmc_error over redrawn entries: above 1 if surely better."""
    fair: bool
    """Whether the samples kept as many entries as incomplete ones have. If not, what is hidden is
    harder to fill than what is missing."""
    pair_spread: float
    """How far pairs of known values are from lying on curves: near 0 if they do, 1 if by chance.
    Decides where the test is not fair."""


@dataclass(frozen=True)
class Trial:
    """Hidden entries, their fills by both methods, and the table completed by the better one."""

    held_out: HeldOut
    completed: Array  # standardized, n x v
    error_of_feature: Array  # v; of the better method, NaN where too few entries were hidden
    truth: Array  # h; the hidden entries
    difference: Array  # h; of the better method
    left: NDArray[np.int_]  # h; entries that the sample was left with

    def error_of_thin(self, fewer_than: int) -> float:
        """Error in samples with fewer entries left; NaN if that was hardly tested."""
        thin = self.left < fewer_than
        if thin.sum() < FEWEST or not self.truth[thin].any():
            return float("nan")
        return _relative(self.difference[thin], self.truth[thin])


def hide(observed: BoolArray, rng: np.random.Generator) -> tuple[BoolArray, bool]:
    """Entries to hide, n x m, and whether they leave samples as they are.

    The test should be as hard as the task. So the more entries of a feature are missing, the more
    are hidden, up to a fourth of the known ones; and as an incomplete sample that loses entries is
    harder to complete than it really is, samples with more entries than incomplete ones typically
    have give theirs first, down to that number. Others follow only if that is not enough; if it
    takes more than a third of what samples have, the test is not fair.

    Every row keeps one observed entry, every column two.
    """
    missing = ~observed
    in_row, in_column = observed.sum(axis=1), observed.sum(axis=0)
    least = np.maximum(2, (1 - MOST_OF_FEATURE) * in_column)
    usual = int(np.median(np.repeat(in_row, missing.sum(axis=1)))) if missing.any() else 1
    weight = (
        missing.sum(axis=0) / np.maximum(in_column, 1) if missing.any() else np.ones(len(least))
    )
    wanted = int(np.ceil(PART * observed.sum()))
    few = min(ENOUGH, wanted / 2)
    hidden = np.zeros(observed.shape, bool)
    for keep in (max(usual, 1), 1):
        rows, columns = np.nonzero(observed & ~hidden & (weight > 0))
        # Exponential times over rates: those with larger weights tend to come first.
        for at in np.argsort(rng.standard_exponential(len(rows)) / weight[columns]):
            i, j = rows[at], columns[at]
            if wanted > 0 and in_row[i] > keep and in_column[j] - 1 >= least[j]:
                hidden[i, j] = True
                in_row[i] -= 1
                in_column[j] -= 1
                wanted -= 1
        if hidden.sum() >= few:
            break
    left = in_row[np.nonzero(hidden)[0]]
    return hidden, bool(len(left)) and float(left.mean()) >= FAIR * usual


def try_out(X: Array, observed: BoolArray, rng: np.random.Generator) -> Trial | None:
    """Hide entries of X, n x v, and fill them with a linear method and with KFMC.

    Every row of X has an observed entry and every feature varies. None if too few entries can be
    hidden to learn anything.
    """
    if min(X.shape) < 2:
        return None
    parts = []
    for _ in range(ROUNDS):
        hidden, fair = hide(observed, rng)
        if not hidden.any():
            return None
        parts.append(_round(X, observed, hidden, rng))
        if sum(len(part.truth) for part in parts) >= ENOUGH:
            break
    truth = np.concatenate([part.truth for part in parts])
    if len(truth) < FEWEST or not truth.any():
        return None
    linear = np.concatenate([part.linear for part in parts]) - truth
    kfmc = np.concatenate([part.kfmc for part in parts]) - truth
    column = np.concatenate([part.column for part in parts])
    held_out = HeldOut(
        len(truth),
        len(X),
        _relative(linear, truth),
        _relative(kfmc, truth),
        _gain(linear, kfmc, rng),
        fair,
        pair_spread(X, observed, rng),
    )
    curved = held_out.kfmc_error < held_out.linear_error
    completed = parts[-1].by_kfmc if curved else parts[-1].by_linear
    difference = kfmc if curved else linear
    by_feature = _by_feature(difference, truth, column, X.shape[1])
    left = np.concatenate([part.left for part in parts])
    return Trial(held_out, completed, by_feature, truth, difference, left)


@dataclass(frozen=True)
class _Round:
    truth: Array  # h; hidden values, standardized
    column: IntArray  # h
    left: NDArray[np.int_]  # h; entries that the sample was left with
    linear: Array  # h; fills
    kfmc: Array  # h
    by_linear: Array  # n x v; the completed table, the hidden entries back in it
    by_kfmc: Array


def _round(X: Array, observed: BoolArray, hidden: BoolArray, rng: np.random.Generator) -> _Round:
    seen = observed & ~hidden
    scaling = Scaling.measure(X, seen, scale="standard")
    # A feature can lose its variation with the hidden entries: it keeps its place, at its mean.
    spread = np.where(scaling.varying, scaling.spread, 1.0)
    Y = (np.where(observed, X, scaling.mean) - scaling.mean) / spread
    at = np.nonzero(hidden)
    truth = np.clip(Y[at], -WILD, WILD)
    linear, table = _best_linear(Y, seen, at, truth, rng)
    model = KFMC(
        min(COMPONENTS, components_of(KFMC(), len(Y))),
        kernel="rbf",
        bandwidth="path",
        mix=False,
        max_iter=int(np.clip(10_000 / len(Y), LEAST_ITER, MOST_ITER)),
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        # A sample whose only entry is in a feature that lost its variation: of no interest here.
        warnings.simplefilter("ignore", UserWarning)
        filled = model.fit_transform(np.where(seen, Y, np.nan))
    kfmc = np.clip(filled[at], -WILD, WILD)
    return _Round(
        truth,
        at[1],
        seen.sum(axis=1)[at[0]],
        linear,
        kfmc,
        np.where(observed, Y, np.clip(table, -WILD, WILD)),
        np.where(observed, Y, np.clip(filled, -WILD, WILD)),
    )


def _best_linear(
    Y: Array,
    seen: BoolArray,
    at: tuple[IntArray, ...],
    truth: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Fills of the hidden entries and of the table, by the best linear completion.

    The hidden entries are dealt into two hands. Those of one are filled by the completion that is
    best for the other, so that no entry is filled by a model chosen to fit it.
    """
    hand = rng.permutation(len(truth)) % 2 == 0
    fills, lowest = (
        np.zeros_like(truth),
        [float(np.sum(truth[side] ** 2)) for side in (hand, ~hand)],
    )
    table, lowest_sum = np.zeros_like(Y), sum(lowest)
    for completion in completions(Y, seen):
        fill = np.clip(completion[at], -WILD, WILD)
        squares = (fill - truth) ** 2
        for number, side in enumerate((hand, ~hand)):
            if squares[side].sum() < lowest[number]:
                lowest[number] = float(squares[side].sum())
                fills[~side] = fill[~side]
        if squares.sum() < lowest_sum:
            lowest_sum, table = float(squares.sum()), completion
    return fills, table


def _relative(difference: Array, truth: Array) -> float:
    return float(np.linalg.norm(difference) / np.linalg.norm(truth))


def _gain(linear: Array, kfmc: Array, rng: np.random.Generator) -> float:
    """Lower end of linear error / KFMC error, over redrawn sets of hidden entries."""
    draws = rng.integers(len(linear), size=(200, len(linear)))
    squares = np.sum(linear[draws] ** 2, axis=1), np.sum(kfmc[draws] ** 2, axis=1)
    ratio = np.sqrt(squares[0] / np.maximum(squares[1], np.finfo(float).tiny))
    return float(np.quantile(ratio, 0.05))


def _by_feature(difference: Array, truth: Array, column: IntArray, v: int) -> Array:
    count = np.bincount(column, minlength=v)
    error = np.bincount(column, difference**2, minlength=v)
    size = np.bincount(column, truth**2, minlength=v)
    trusted = (count >= FEWEST_OF_FEATURE) & (size > 0)
    return np.where(trusted, np.sqrt(error / np.where(size > 0, size, 1)), np.nan)


def pair_spread(X: Array, observed: BoolArray, rng: np.random.Generator) -> float:
    """Whether two features of a sample, known together, lie near a curve. X is n x m.

    The distance of such a pair to the nearest other sample, in the plane of the two features, over
    the same with one of the two values drawn from another sample. About 1 if the two are unrelated,
    or related through more than one latent dimension; near 0 on a curve, however it folds. It needs
    no model and hides nothing, so it works where samples have just two entries.
    """
    rows = np.flatnonzero(observed.sum(axis=1) >= 2)
    place = np.argsort(np.argsort(np.where(observed, X, np.inf), axis=0), axis=0)
    place = place / np.maximum(observed.sum(axis=0), 1)  # of equal density, whatever the units
    real, drawn = [], []
    for i in rng.choice(rows, min(PAIRS, len(rows)), replace=False):
        j, k = rng.choice(np.flatnonzero(observed[i]), 2, replace=False)
        others = np.flatnonzero(observed[:, j] & observed[:, k])
        others = others[others != i]
        if len(others) < 2:
            continue
        real.append(_nearest(place[others][:, [j, k]], place[i, j], place[i, k]))
        drawn.append(_nearest(place[others][:, [j, k]], rng.choice(place[others, j]), place[i, k]))
    if not real or np.median(drawn) == 0:
        return 1.0
    return float(np.median(real) / np.median(drawn))


def _nearest(points: Array, x: float, y: float) -> float:
    return float(np.sqrt(np.min((points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2)))
