"""Which entries go missing. Every function gives `observed`: bool, n x m, True = known.

To make holes in a table: ``np.where(observed, X, np.nan)``. Patterns combine: ``a & b`` is what
both leave.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit

from hirank._typing import Array, BoolArray
from hirank.datasets.checks import check_count, check_number, check_rate, check_shape
from hirank.datasets.tables import as_table, moments

Observed = BoolArray
Seed = int | np.random.Generator | None


def uniform_missing(
    shape: tuple[int, int], rate: float, *, keep_one: bool = False, random_state: Seed = None
) -> Observed:
    """Every entry goes missing with the same probability.

    Parameters
    ----------
    shape : (n, m)
    rate : float
        Probability, 0 <= rate < 1: the share that goes missing is `rate` in expectation.
    keep_one : bool, default=False
        Give every sample and every feature that lost all entries one of them back, chosen at
        random. A little less than `rate` is then missing.
    random_state : int, numpy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> from hirank.datasets import uniform_missing
    >>> observed = uniform_missing((10000, 30), 0.3, random_state=0)
    >>> round(float(1 - observed.mean()), 2)
    0.3
    """
    shape = check_shape(shape)
    check_rate(rate)
    rng = np.random.default_rng(random_state)
    observed = rng.random(shape) >= rate
    return _given_back(observed, rng) if keep_one else observed


def missing_per_sample(
    shape: tuple[int, int], count: int, *, random_state: Seed = None
) -> Observed:
    """The same number of entries of every sample goes missing, chosen at random.

    Parameters
    ----------
    shape : (n, m)
    count : int
        Exactly so many of the m entries of each sample, 0 <= count <= m.
    random_state : int, numpy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> from hirank.datasets import missing_per_sample
    >>> missing_per_sample((4, 3), 1, random_state=0).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """
    n, m = check_shape(shape)
    check_count("count", count, least=0, most=m)
    rng = np.random.default_rng(random_state)
    return rng.permuted(np.tile(np.arange(m) >= count, (n, 1)), axis=1)


def missing_gaps(
    shape: tuple[int, int], rate: float, *, gaps: int = 50, random_state: Seed = None
) -> Observed:
    """Sequences of consecutive samples go missing, in each feature on its own.

    The pattern of the paper's motion capture experiment: the missing entries of a feature are
    split into `gaps` sequences of equal length (up to one), which lie anywhere with equal chance
    but never touch. For the paper's 3392 samples and 50 gaps their length is about 68 * rate.

    Parameters
    ----------
    shape : (n, m)
        Samples in order of time.
    rate : float
        0 <= rate < 1. Exactly round(rate * n) entries of each feature go missing.
    gaps : int, default=50
        Sequences in each feature. At most round(rate * n), and one observed sample must be left
        between two sequences.
    random_state : int, numpy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> from hirank.datasets import missing_gaps
    >>> observed = missing_gaps((20, 1), 0.4, gaps=2, random_state=0)
    >>> "".join("x" if known else "." for known in observed[:, 0])
    'xxxxxx....x....xxxxx'
    """
    n, m = check_shape(shape)
    check_rate(rate)
    check_count("gaps", gaps)
    missing = round(rate * n)
    known = n - missing
    if not missing:
        return np.ones((n, m), dtype=bool)
    if gaps > min(missing, known + 1):
        raise ValueError(
            f"{missing} of {n} samples can't be missing in gaps={gaps} sequences that do not "
            f"touch: ask for at most {min(missing, known + 1)}."
        )
    rng = np.random.default_rng(random_state)
    observed = np.ones((n, m), dtype=bool)
    for feature in range(m):
        lengths = missing // gaps + (rng.permutation(gaps) < missing % gaps)
        # A gap lies before, between or after the known samples: one in a place, none touch.
        places = np.sort(rng.choice(known + 1, gaps, replace=False))
        starts = places + np.cumsum(lengths) - lengths
        for start, length in zip(starts, lengths, strict=True):
            observed[start : start + length, feature] = False
    return observed


def value_dependent_missing(
    X: ArrayLike,
    rate: float,
    *,
    strength: float = 2.0,
    keep_one: bool = False,
    random_state: Seed = None,
) -> Observed:
    """Large values go missing more often than small ones.

    An entry whose value is v standard deviations above the mean of its feature goes missing with
    probability 1 / (1 + exp(-(strength * v + c))), c such that the rate is as asked.

    Parameters
    ----------
    X : n x m
        NaN is not observed, whatever the rate. For another dependence pass other numbers: -X to
        lose small values, ``abs(X - X.mean(axis=0))`` to lose those far from the mean.
    rate : float
        Probability over all entries of X that are not NaN, 0 <= rate < 1: the share of them that
        goes missing is `rate` in expectation.
    strength : float, default=2.0
        0: the values do not matter; 10 and more: nearly a limit above which values are lost.
    keep_one : bool, default=False
        Give every sample and every feature that lost all entries one of them back, chosen at
        random. A little less than `rate` is then missing.
    random_state : int, numpy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.datasets import value_dependent_missing
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> observed = value_dependent_missing(X, 0.3, random_state=1)
    >>> bool(X[observed].mean() < 0 < X[~observed].mean())
    True
    """
    X = as_table(X)
    check_rate(rate)
    check_number("strength", strength, least=0)
    rng = np.random.default_rng(random_state)
    known = ~np.isnan(X)
    observed = known & (rng.random(X.shape) >= _probabilities(X, known, rate, strength))
    return _given_back(observed, rng, known) if keep_one else observed


def missing_blocks(
    shape: tuple[int, int],
    rate: float,
    *,
    length: int,
    width: int,
    keep_one: bool = False,
    random_state: Seed = None,
) -> Observed:
    """Blocks go missing: some features together, over consecutive samples, as a logger fails.

    Blocks are added at random until the rate is reached, the last one is cut short. They may
    overlap and hang over the first and the last sample.

    Parameters
    ----------
    shape : (n, m)
        Samples in order of time.
    rate : float
        0 <= rate < 1. The number of missing entries is at least round(rate * n * m), and less than
        `width` more.
    length : int
        Consecutive samples in a block.
    width : int
        Features in a block, any of the m.
    keep_one : bool, default=False
        Give every sample and every feature that lost all entries one of them back, chosen at
        random. A little less than `rate` may then be missing.
    random_state : int, numpy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> from hirank.datasets import missing_blocks
    >>> observed = missing_blocks((12, 3), 0.3, length=4, width=2, random_state=0)
    >>> for feature in observed.T:
    ...     print("".join("x" if known else "." for known in feature))
    x...xxxxxxxx
    xxxxxxxxx...
    x...xxxxx...
    """
    n, m = check_shape(shape)
    check_rate(rate)
    check_count("length", length, most=n)
    check_count("width", width, most=m)
    rng = np.random.default_rng(random_state)
    observed = np.ones((n, m), dtype=bool)
    to_lose = round(rate * n * m)
    while to_lose > 0:
        # Starting before the first sample too makes all samples equally likely.
        start = int(rng.integers(1 - length, n))
        begin, end = max(start, 0), min(start + length, n)
        features = rng.choice(m, width, replace=False)
        lost = observed[begin:end, features].sum(axis=1).cumsum()
        if lost[-1] > to_lose:
            end = begin + int(np.searchsorted(lost, to_lose)) + 1
        to_lose -= int(lost[end - begin - 1])
        observed[begin:end, features] = False
    return _given_back(observed, rng) if keep_one else observed


def _probabilities(X: Array, known: Observed, rate: float, strength: float) -> Array:
    """Probability of each entry to go missing; their mean over the known entries is `rate`."""
    if rate == 0 or not known.any():
        return np.zeros(X.shape)
    mean, spread = moments(X)
    v = strength * np.where(known, X - mean, 0) / np.where(spread > 0, spread, 1)
    given, center = v[known], logit(rate)
    offset = brentq(
        lambda c: expit(given + c).mean() / rate - 1,
        center - given.max() - 1,
        center - given.min() + 1,
        xtol=1e-10,
    )
    return expit(v + offset)


def _given_back(
    observed: Observed, rng: np.random.Generator, allowed: Observed | None = None
) -> Observed:
    """`observed` with one entry more in each empty row and column, where one is allowed."""
    allowed = np.ones_like(observed) if allowed is None else allowed
    observed = observed.copy()
    for seen, free in ((observed, allowed), (observed.T, allowed.T)):
        empty = np.flatnonzero(~seen.any(axis=1) & free.any(axis=1))
        for row in empty:
            seen[row, rng.choice(np.flatnonzero(free[row]))] = True
    return observed
