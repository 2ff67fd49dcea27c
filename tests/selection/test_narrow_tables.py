"""Selection where a held-out entry leaves far less in its row than a missing entry has."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import CONFIG, make_data, run_search

from hirank.selection.candidates import ColumnMeans
from hirank.selection.config import SchattenConfig
from hirank.selection.narrow_tables import find_exact
from hirank.selection.trial import Trial


def without_one_per_row(X, rng):
    observed = np.ones(X.shape, bool)
    observed[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return X, observed


@pytest.fixture
def cubic():
    """The twisted cubic, 100 x 3, two entries of each row observed."""
    rng = np.random.default_rng(1)
    t = rng.uniform(-1, 1, size=100)
    X = np.column_stack([t, t**2, t**3])
    return without_one_per_row((X - X.mean(axis=0)) / X.std(axis=0), rng)


def imputed(data, errors):
    """Return a trial with these errors at the held-out entries, h, in any order of the folds."""
    filled, at = [], 0
    for held_out in data.folds:
        X = data.X.copy()
        X[held_out] += errors[at : at + held_out.sum()]
        filled.append(X)
        at += held_out.sum()
    return Trial.scored(ColumnMeans(), "some", {}, filled, data, 0.0)


def two_trials(data):
    """Return one that hedges, and one that is exact or on the wrong branch and has more loss."""
    h = len(data.truth)
    hedging = imputed(data, np.full(h, 0.3))
    exact = imputed(data, np.where(np.arange(h) % 3 == 0, 2.0, 1e-4))
    assert exact.loss > hedging.loss
    return hedging, exact


def test_two_entries_on_a_curve_determine_the_third(cubic):
    X, observed = cubic
    config = replace(CONFIG, schatten=SchattenConfig())

    selected = run_search(X, observed, config, max_iter=100)

    chosen = selected.result.selected
    assert len(chosen) == 1
    error = np.sqrt(np.mean((selected.filled - X)[~observed] ** 2))
    assert error < 0.05  # it is .026, and .086 with the stack that has the lowest loss


def test_a_model_that_is_exact_at_most_entries_is_preferred_in_narrow_tables(cubic):
    data = make_data(*cubic)
    hedging, exact = two_trials(data)

    assert find_exact([hedging, exact], data) is exact
    assert find_exact([hedging], data) is None


def test_rows_that_keep_nearly_all_entries_are_compared_by_their_loss(rng):
    X = rng.normal(size=(100, 4)) @ rng.normal(size=(4, 8))
    data = make_data(*without_one_per_row(X, rng))

    assert find_exact(two_trials(data), data) is None


def test_values_that_repeat_are_no_evidence(cubic):
    X, observed = cubic
    data = make_data(np.round(X), observed)

    assert find_exact(two_trials(data), data) is None


def test_a_complete_table_is_compared_by_its_loss(cubic):
    data = make_data(cubic[0], np.ones_like(cubic[1]))

    assert find_exact(two_trials(data), data) is None
