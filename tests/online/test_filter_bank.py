import numpy as np
import pytest

from hirank.online.clock import Pace
from hirank.online.filter_bank import FilterBank
from hirank.online.filters import KINDS, FilterConfig
from hirank.online.moments import RunningMoments
from hirank.online.ordered import OrderedConfig, OrderedState

CONFIG = FilterConfig()
SMALL = FilterConfig(largest_lagged=3, largest_block=6, usual_block=4)


def walks(n, m):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(n, 2)), axis=0) @ rng.normal(size=(2, m))
    return np.where(rng.random(X.shape) < 0.3, np.nan, X)


def test_few_features_are_one_block():
    bank = FilterBank.start(100, CONFIG)
    assert [one.kind for one in bank.filters] == list(KINDS)
    assert bank.width == 100


def test_a_feature_that_follows_another_is_imputed_from_the_row_before():
    rng = np.random.default_rng(0)
    first = rng.normal(size=401)
    truth = np.column_stack([first[1:], first[:-1], rng.normal(size=400)])
    X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)

    _, expected = OrderedState.empty(3, OrderedConfig()).append(X, None, OrderedConfig())

    known = ~np.isnan(X[199:-1, 0])
    errors = np.abs(expected.imputed - truth)[200:, 1]
    # .02 on average; without the row before nothing is known, and they are .8.
    assert errors[known].mean() < 0.1
    assert errors[~known].mean() > 0.5


def test_features_that_are_added_later_are_those_of_a_wide_bank_without_values():
    X, moments = walks(30, 5), RunningMoments.empty(5)
    wide, narrow, few = (
        FilterBank.start(5, CONFIG),
        FilterBank.start(3, CONFIG),
        moments.at(slice(3)),
    )
    X[:, 3:], last = np.nan, np.full(5, np.nan)
    for y in X:
        wide = wide.step(y, last, moments, Pace(), CONFIG, learn=True).after
        narrow = narrow.step(y[:3], last[:3], few, Pace(), CONFIG, learn=True).after
        moments, few, last = moments.add(y, 500)[0], few.add(y[:3], 500)[0], y
    grown = narrow.add_features(2, CONFIG)
    grown.check()

    one, two = (
        bank.step(np.arange(5.0), last, moments, Pace(), CONFIG, learn=True)
        for bank in (wide, grown)
    )
    # The trend filter shrinks towards the mean of all features, also of those without values.
    np.testing.assert_allclose(one.imputed[:3, :3], two.imputed[:3, :3], rtol=1e-9)


@pytest.mark.parametrize("m", [129, 500, 2000])
def test_many_features_are_in_blocks_of_bounded_size(m):
    bank = FilterBank.start(m, CONFIG)
    sizes = [part.stop - part.start for part, _ in bank.blocks()]
    assert sum(sizes) == bank.width == m
    assert max(sizes) <= CONFIG.usual_block
    bank.check()


def test_a_block_is_filtered_as_a_stream_of_its_own():
    X, moments, state = walks(30, 10), RunningMoments.empty(10), FilterBank.start(10, SMALL)
    parts = [part for part, _ in state.blocks()]
    assert [part.stop for part in parts] == [4, 7, 10]
    # Alone, a few features would have a lagged filter.
    alone = [FilterBank(state.filters[4 * i : 4 * i + 4]) for i in range(3)]
    last = np.full(10, np.nan)
    for y in X:
        found = state.step(y, last, moments, Pace(), SMALL, learn=True)
        for i, part in enumerate(parts):
            own = alone[i].step(y[part], last[part], moments.at(part), Pace(), SMALL, learn=True)
            np.testing.assert_array_equal(found.imputed[:, part], own.imputed)
            np.testing.assert_array_equal(found.variance[part], own.variance)
            alone[i] = own.after
        state = found.after
        moments, _ = moments.add(y, SMALL.memory)


def test_new_features_join_the_last_block_or_begin_another():
    bank = FilterBank.start(5, SMALL).add_features(1, SMALL)
    assert [part.stop for part, _ in bank.blocks()] == [6]
    bank = bank.add_features(3, SMALL)
    assert [part.stop for part, _ in bank.blocks()] == [6, 9]
    bank.check()


def test_a_wide_stream_is_imputed_better_than_with_means():
    config, X = OrderedConfig(filters=SMALL), walks(200, 10)
    truth = walks(200, 10)
    state, expected = OrderedState.empty(10, config).append(X, None, config)
    state.check()
    observed = ~np.isnan(truth)
    errors = (expected.imputed - truth)[100:][observed[100:]] / np.nanstd(truth)
    assert np.sqrt(np.mean(errors**2)) < 0.3
