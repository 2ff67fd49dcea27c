"""Mixtures like one that was grown: as good, different, and better on average."""

import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.models.em import EMConfig, EMFit, IncompleteTable
from hirank.models.mixture import Mixture
from hirank.models.more_mixtures import grow_another, growth_cost
from hirank.optim.trace import Monitor

SIZE = 6


@pytest.fixture(scope="module")
def curve():
    """A noisy closed curve in eight dimensions, 300 x 8, and an incomplete table of it."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 2 * np.pi, 300)
    waves = [f(k * t) for k in (1, 2) for f in (np.sin, np.cos)]
    X = np.column_stack(waves) @ rng.normal(size=(4, 8)) + 0.1 * rng.normal(size=(300, 8))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    observed = rng.random(X.shape) >= 0.3
    return X, IncompleteTable(np.where(observed, X, 0), observed)


def grow(table, seed, size=SIZE, monitor=None):
    v = table.X.shape[1]
    like = EMFit(
        Mixture(np.full(size, 1 / size), np.zeros((size, v)), np.ones((size, v, v))), 1e-3, table.X
    )
    return grow_another(
        table,
        like,
        np.random.default_rng(seed),
        config=EMConfig(),
        workers=Workers(1),
        monitor=monitor or Monitor(),
    )


def test_mixtures_have_the_size_asked_for_and_depend_on_the_generator_only(curve):
    _, table = curve

    one, same, other = (grow(table, seed) for seed in (0, 0, 1))

    assert len(one.model) == len(other.model) == SIZE
    assert (one.filled == same.filled).all()
    assert (one.filled != other.filled).any()
    assert (one.filled == table.X)[table.observed].all()
    one.model.check()


def test_the_mean_of_several_is_better_than_each(curve):
    X, table = curve
    tables = [grow(table, seed).filled for seed in range(4)]

    def error(filled):
        return np.sqrt(np.mean((filled - X)[~table.observed] ** 2))

    assert error(np.mean(tables, axis=0)) < min(map(error, tables))


def test_growth_ends_where_rows_are_too_few_and_when_a_fit_is_stopped(curve):
    _, table = curve
    few = IncompleteTable(table.X[:20], table.observed[:20])

    assert len(grow(few, 0, size=8).model) == 2  # a component that is split has 16 rows
    assert len(grow(table, 0, monitor=Monitor(lambda line: True)).model) == 1


def test_the_cost_of_a_growth_is_that_of_its_rows_and_components(curve):
    _, table = curve
    half = IncompleteTable(table.X[:150], table.observed[:150])
    config = EMConfig()

    assert growth_cost(table, 8, config) == 2 * growth_cost(table, 4, config)
    assert growth_cost(half, 4, config) == pytest.approx(growth_cost(table, 4, config) / 2, rel=0.1)
