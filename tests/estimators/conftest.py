"""A small table, and an Imputer that was fitted to it."""

import numpy as np
import pytest
from helpers.estimators import fast_imputer, fast_online, remove_entries

from hirank import OnlineImputer, OnlineKFMC


@pytest.fixture(scope="session")
def truth():
    """Five features of two latent variables and one that is unrelated, 110 x 6."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 110))
    X = np.column_stack([a, b, a + 2 * b, a * b, np.sin(2 * a) + b, rng.normal(size=110)])
    return X + 0.05 * rng.normal(size=X.shape) * [1, 1, 1, 1, 1, 0]


@pytest.fixture(scope="session")
def table(truth):
    return remove_entries(np.random.default_rng(1), truth)


@pytest.fixture(scope="session")
def fitted(table):
    return fast_imputer().fit(table)


@pytest.fixture(scope="session")
def series():
    """Times and three features that change with them, 120 x 4; a long gap in column 2."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 20, 120))
    X = np.column_stack([t, np.sin(t), np.cos(t), np.cumsum(rng.normal(size=120))])
    missing = rng.random(X.shape) < 0.15
    missing[:, 0], missing[50:62, 2] = False, True
    return np.where(missing, np.nan, X)


@pytest.fixture(params=[OnlineImputer, OnlineKFMC], ids=lambda kind: kind.__name__)
def new(request):
    """Makes streaming estimators of one class, with settings that make tests fast."""
    return lambda **changes: fast_online(request.param, **changes)
