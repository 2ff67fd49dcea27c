import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hirank.datasets import (
    missing_blocks,
    missing_gaps,
    missing_per_sample,
    uniform_missing,
    value_dependent_missing,
)

shapes = st.tuples(st.integers(1, 60), st.integers(1, 12))
rates = st.floats(0, 0.95)
seeds = st.integers(0, 2**32)


def runs(known):
    """Lengths of the sequences of missing entries of a feature."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], known, [True]]).astype(int)))
    return edges[1::2] - edges[::2]


def table(shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


PATTERNS = {
    "uniform": lambda shape, rate, **k: uniform_missing(shape, rate, **k),
    "value": lambda shape, rate, **k: value_dependent_missing(table(shape, 0), rate, **k),
    "blocks": lambda shape, rate, **k: missing_blocks(
        shape, rate, length=(shape[0] + 2) // 3, width=(shape[1] + 1) // 2, **k
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
@given(shape=shapes, rate=rates, seed=seeds)
def test_keep_one_leaves_no_row_or_column_empty_and_changes_nothing_else(name, shape, rate, seed):
    plain = PATTERNS[name](shape, rate, random_state=seed)
    kept = PATTERNS[name](shape, rate, keep_one=True, random_state=seed)
    for observed in (plain, kept):
        assert observed.shape == shape
        assert observed.dtype == bool
    assert kept.any(axis=0).all()
    assert kept.any(axis=1).all()
    new = kept & ~plain
    assert not (plain & ~kept).any()
    lost = ~plain.any(axis=1)[:, None] | ~plain.any(axis=0)
    assert not (new & ~lost).any()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("strength", [None, 0.0, 2.0, 50.0])
def test_rates_in_expectation(rate, strength):
    """Over many draws the share differs from the rate by less than five standard errors."""
    X = np.random.default_rng(1).lognormal(size=(300, 10))
    draws = [
        uniform_missing(X.shape, rate, random_state=seed)
        if strength is None
        else value_dependent_missing(X, rate, strength=strength, random_state=seed)
        for seed in range(20)
    ]
    error = 5 * np.sqrt(rate * (1 - rate) / (20 * X.size))
    assert abs(1 - np.mean(draws) - rate) < error


def test_uniform_missing_is_the_plain_comparison_of_random_numbers():
    expected = np.random.default_rng(5).random((20, 7)) >= 0.3
    np.testing.assert_array_equal(uniform_missing((20, 7), 0.3, random_state=5), expected)


@given(shape=shapes, data=st.data(), seed=seeds)
def test_missing_per_sample_is_exact(shape, data, seed):
    count = data.draw(st.integers(0, shape[1]))
    observed = missing_per_sample(shape, count, random_state=seed)
    assert observed.shape == shape
    assert ((~observed).sum(axis=1) == count).all()


def test_missing_per_sample_spares_no_feature():
    share = missing_per_sample((6000, 4), 1, random_state=0).mean(axis=0)
    np.testing.assert_allclose(share, 0.75, atol=0.03)


@given(n=st.integers(1, 80), m=st.integers(1, 4), rate=rates, gaps=st.integers(1, 20), seed=seeds)
def test_gaps_have_the_number_length_and_rate_requested(n, m, rate, gaps, seed):
    missing = round(rate * n)
    assume(missing == 0 or gaps <= min(missing, n - missing + 1))
    observed = missing_gaps((n, m), rate, gaps=gaps, random_state=seed)
    assert ((~observed).sum(axis=0) == missing).all()
    if missing:
        for known in observed.T:
            lengths = runs(known)
            assert len(lengths) == gaps
            assert lengths.max() - lengths.min() <= 1


def test_gaps_of_the_paper():
    observed = missing_gaps((3392, 62), 0.5, random_state=0)
    lengths = np.concatenate([runs(known) for known in observed.T])
    assert len(lengths) == 50 * 62
    assert {*lengths} <= {33, 34}  # about 68 * 0.5
    by_time = observed.reshape(8, -1, 62).mean(axis=(1, 2))  # nowhere more than elsewhere
    np.testing.assert_allclose(by_time, 0.5, atol=0.05)
    assert len({*map(bytes, observed.T)}) == 62


def test_large_values_go_missing_more_often_the_stronger_the_more():
    X = table((2000, 3), 0) * [1, 10, 100] + 5
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    means = [
        z[~value_dependent_missing(X, 0.3, strength=strength, random_state=0)].mean()
        for strength in (0, 1, 3, 100)
    ]
    assert abs(means[0]) < 0.05
    assert (np.diff(means) > 0.1).all()
    share = (~value_dependent_missing(X, 0.3, random_state=0)).mean(axis=0)
    np.testing.assert_allclose(share, 0.3, atol=0.04)  # in units of each feature
    lost = ~value_dependent_missing(-X, 0.3, random_state=0)
    assert z[lost].mean() < -0.5


def test_missing_entries_stay_missing_and_constant_features_go_missing_too():
    X = table((400, 3), 0)
    X[:, 1] = 7  # at its mean: goes missing, but not as often as large values
    X[::2, 0] = np.nan
    X[:, 2] = np.nan
    observed = value_dependent_missing(X, 0.25, keep_one=True, random_state=0)
    assert not observed[np.isnan(X)].any()
    assert 0.02 < (~observed[:, 1]).mean() < 0.98
    assert value_dependent_missing(X, 0, random_state=0).sum() == 600
    assert not value_dependent_missing(np.full((2, 2), np.nan), 0.5).any()


@given(shape=shapes, rate=rates, data=st.data(), seed=seeds)
def test_blocks_reach_the_rate_and_overshoot_by_less_than_a_row_of_a_block(shape, rate, data, seed):
    length, width = (data.draw(st.integers(1, size)) for size in shape)
    observed = missing_blocks(shape, rate, length=length, width=width, random_state=seed)
    wanted = round(rate * observed.size)
    assert wanted <= (~observed).sum() < wanted + width or wanted == (~observed).sum() == 0


def test_blocks_are_consecutive_samples_of_features_together():
    observed = missing_blocks((1000, 10), 0.02, length=25, width=4, random_state=0)
    first = np.flatnonzero(~observed.all(axis=1))[0]
    features = ~observed[first]
    assert features.sum() == 4
    lost = (~observed[first : first + 25])[:, features]
    assert lost.all()
    share = np.mean(
        [missing_blocks((40, 4), 0.3, length=10, width=2, random_state=s) for s in range(400)],
        axis=0,
    )
    np.testing.assert_allclose(share, 0.7, atol=0.12)  # ends are as likely as the middle


def test_seeds_and_generators():
    for make in PATTERNS.values():
        first, again = (make((50, 5), 0.4, random_state=2) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        rng = np.random.default_rng(2)
        np.testing.assert_array_equal(make((50, 5), 0.4, random_state=rng), first)
        assert (make((50, 5), 0.4, random_state=rng) != first).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: uniform_missing((10, 3), 1.0), "rate must be a number of at least 0 and below 1"),
        (lambda: uniform_missing((10, 3), -0.1), "rate must be a number of at least 0 and below 1"),
        (
            lambda: uniform_missing((10, 3), float("nan")),
            "rate must be a number of at least 0 and below 1",
        ),
        (
            lambda: uniform_missing((10, 3), "30%"),
            "rate must be a number of at least 0 and below 1",
        ),
        (lambda: uniform_missing(np.ones((10, 3)), 0.1), r"X\.shape"),
        (lambda: uniform_missing((10,), 0.1), r"\(n_samples, n_features\)"),
        (lambda: uniform_missing((10, 0), 0.1), "number of features"),
        (lambda: missing_per_sample((10, 3), 4), "n_missing must be an integer from 0 to 3"),
        (lambda: missing_per_sample((10, 3), 0.5), "n_missing"),
        (lambda: missing_gaps((100, 3), 0.3), "at most 30"),
        (lambda: missing_gaps((100, 3), 0.9, gaps=20), "at most 11"),
        (lambda: missing_gaps((100, 3), 0.9, gaps=0), "gaps"),
        (lambda: value_dependent_missing([[np.inf, 1.0]], 0.1), "infinite"),
        (lambda: value_dependent_missing([1.0, 2.0], 0.1), "X must be a table"),
        (lambda: value_dependent_missing([[1.0]], 0.1, strength=-1), "strength"),
        (lambda: missing_blocks((10, 3), 0.1, length=11, width=1), "length .* from 1 to 10"),
        (lambda: missing_blocks((10, 3), 0.1, length=2, width=4), "width .* from 1 to 3"),
    ],
)
def test_wrong_arguments_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
