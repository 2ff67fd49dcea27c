"""Patterns of missing values. Every function returns `observed`: bool, n x m, False = missing.

``np.where(observed, X, np.nan)`` removes entries of a table, and ``a & b`` combines patterns.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit

from hirank._checks import check_counts, count, number
from hirank._typing import Array, BoolArray
from hirank.datasets.latent import Seed
from hirank.datasets.tables import check_table, measure_columns
from hirank.exceptions import ParameterError


def uniform_missing(
    shape: tuple[int, int], rate: float, *, keep_one: bool = False, random_state: Seed = None
) -> BoolArray:
    """Remove every entry with the same probability.

    Parameters
    ----------
    shape : (n, m)
    rate : float
        Probability, 0 <= rate < 1: the expected share of missing entries.
    keep_one : bool, default=False
        Restore a random entry of every sample and every feature that lost all of them. A little
        less than `rate` is then missing.
    random_state : int, NumPy Generator or None

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
    shape = _check_shape(shape)
    _check_rate(rate)
    rng = np.random.default_rng(random_state)
    observed = rng.random(shape) >= rate
    return _restore_one(observed, rng) if keep_one else observed


def missing_per_sample(
    shape: tuple[int, int], n_missing: int, *, random_state: Seed = None
) -> BoolArray:
    """Remove the same number of random entries of every sample.

    Parameters
    ----------
    shape : (n, m)
    n_missing : int
        The number of missing entries of each sample, 0 <= n_missing <= m.
    random_state : int, NumPy Generator or None

    Returns
    -------
    observed : bool array, n x m

    Examples
    --------
    >>> from hirank.datasets import missing_per_sample
    >>> missing_per_sample((4, 3), 1, random_state=0).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """
    n, m = _check_shape(shape)
    count(0, m)("n_missing", n_missing)
    rng = np.random.default_rng(random_state)
    return rng.permuted(np.tile(np.arange(m) >= n_missing, (n, 1)), axis=1)


def missing_gaps(
    shape: tuple[int, int], rate: float, *, gaps: int = 50, random_state: Seed = None
) -> BoolArray:
    """Remove sequences of consecutive samples, independently in each feature.

    The pattern of the paper's motion capture experiment: the missing entries of a feature are
    split into `gaps` sequences of equal length (up to one), at random places where they do not
    touch. For the paper's 3392 samples and 50 gaps their length is about 68 * rate.

    Parameters
    ----------
    shape : (n, m)
        Samples in order of time.
    rate : float
        0 <= rate < 1. Exactly round(rate * n) entries of each feature go missing.
    gaps : int, default=50
        Sequences in each feature. At most round(rate * n), and one observed sample must be left
        between two sequences.
    random_state : int, NumPy Generator or None

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
    n, m = _check_shape(shape)
    _check_rate(rate)
    check_counts(gaps=gaps)
    observed, missing = np.ones((n, m), dtype=bool), round(rate * n)
    known = n - missing
    if not missing:
        return observed
    if gaps > min(missing, known + 1):
        raise ParameterError(
            "gaps",
            f"must be at most {min(missing, known + 1)}, so that {missing} of {n} samples are "
            f"missing in sequences that do not touch; got {gaps}.",
        )
    rng = np.random.default_rng(random_state)
    for feature in range(m):
        lengths = missing // gaps + (rng.permutation(gaps) < missing % gaps)
        # A gap lies before, between or after the known samples, at most one in each place.
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
) -> BoolArray:
    """Remove large values more often than small ones.

    An entry whose value is v standard deviations above the mean of its feature is removed with
    probability 1 / (1 + exp(-(strength * v + c))), c such that the mean over all entries is `rate`.

    Parameters
    ----------
    X : n x m
        NaN is missing in any case. For another dependence pass other numbers: -X to remove small
        values, ``abs(X - X.mean(axis=0))`` to remove those far from the mean.
    rate : float
        Expected share of the entries that are not NaN to remove, 0 <= rate < 1.
    strength : float, default=2.0
        With 0 the values do not matter; from 10 on, nearly all values above a limit are removed.
    keep_one : bool, default=False
        Restore a random entry of every sample and every feature that lost all of them. A little
        less than `rate` is then missing.
    random_state : int, NumPy Generator or None

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
    X = check_table(X)
    _check_rate(rate)
    number(least=0)("strength", strength)
    rng = np.random.default_rng(random_state)
    known = ~np.isnan(X)
    observed = known & (rng.random(X.shape) >= _probabilities(X, known, rate, strength))
    return _restore_one(observed, rng, known) if keep_one else observed


def missing_blocks(
    shape: tuple[int, int],
    rate: float,
    *,
    length: int,
    width: int,
    keep_one: bool = False,
    random_state: Seed = None,
) -> BoolArray:
    """Remove blocks: some features together, over consecutive samples, as if a logger failed.

    Blocks are added at random until the rate is reached; the last one is cut short. They may
    overlap, and extend beyond the first and the last sample.

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
        Restore a random entry of every sample and every feature that lost all of them. A little
        less than `rate` may then be missing.
    random_state : int, NumPy Generator or None

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
    n, m = _check_shape(shape)
    _check_rate(rate)
    count(most=n)("length", length)
    count(most=m)("width", width)
    rng = np.random.default_rng(random_state)
    observed = np.ones((n, m), dtype=bool)
    to_remove = round(rate * n * m)
    while to_remove > 0:
        # Blocks that start before the first sample make all samples equally likely.
        start = int(rng.integers(1 - length, n))
        begin, end = max(start, 0), min(start + length, n)
        features = rng.choice(m, width, replace=False)
        removed = observed[begin:end, features].sum(axis=1).cumsum()
        if removed[-1] > to_remove:
            end = begin + int(np.searchsorted(removed, to_remove)) + 1
        to_remove -= int(removed[end - begin - 1])
        observed[begin:end, features] = False
    return _restore_one(observed, rng) if keep_one else observed


def _probabilities(X: Array, known: BoolArray, rate: float, strength: float) -> Array:
    """Return the probability that an entry is removed; the mean over known entries is `rate`."""
    if rate == 0 or not known.any():
        return np.zeros(X.shape)
    mean, spread = measure_columns(X)
    v = strength * np.where(known, X - mean, 0) / np.where(spread > 0, spread, 1)
    given, center = v[known], logit(rate)
    ends = center - given.max() - 1, center - given.min() + 1
    return expit(v + brentq(lambda c: expit(given + c).mean() / rate - 1, *ends, xtol=1e-10))


def _restore_one(
    observed: BoolArray, rng: np.random.Generator, allowed: BoolArray | None = None
) -> BoolArray:
    """Return `observed` with one entry more in each empty row and column, where allowed."""
    allowed = np.ones_like(observed) if allowed is None else allowed
    observed = observed.copy()
    for seen, free in ((observed, allowed), (observed.T, allowed.T)):
        empty = np.flatnonzero(~seen.any(axis=1) & free.any(axis=1))
        for row in empty:
            seen[row, rng.choice(np.flatnonzero(free[row]))] = True
    return observed


def _check_rate(rate: float) -> None:
    """Raise ParameterError unless 0 <= rate < 1."""
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 <= float(rate) < 1:
        raise ParameterError("rate", f"must be a number of at least 0 and below 1; got {rate!r}.")


def _check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return numbers of samples and features; raise ParameterError if `shape` is not a pair."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ParameterError(
            "shape", f"must be (n_samples, n_features), as X.shape; got {type(shape).__name__}."
        )
    count()("The number of samples in shape", shape[0])
    count()("The number of features in shape", shape[1])
    return int(shape[0]), int(shape[1])
