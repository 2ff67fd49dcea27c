"""Small scaled tables, each with one kind of structure, and their observed entries."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def with_missing(rng, X, share=0.2):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    observed = rng.random(X.shape) >= share
    observed[:, 0] |= ~observed.any(axis=1)
    return X, observed


@pytest.fixture
def low_rank(rng):
    X = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 12)) + 0.02 * rng.normal(size=(120, 12))
    return with_missing(rng, X)


@pytest.fixture
def noise(rng):
    """Independent normal columns, 100 x 6."""
    return with_missing(rng, rng.normal(size=(100, 6)))


@pytest.fixture
def curve(rng):
    t = rng.uniform(-2, 2, size=120)
    X = np.column_stack([t, t**2, np.sin(2 * t), np.cos(3 * t), t**3 - 2 * t])
    return with_missing(rng, X)


@pytest.fixture
def clusters(rng):
    """Two clusters, each close to a plane of its own, 180 x 6."""
    centers, maps = 6 * rng.normal(size=(2, 6)), rng.normal(size=(2, 2, 6))
    parts = [rng.normal(size=(90, 2)) @ A + c for A, c in zip(maps, centers, strict=True)]
    return with_missing(rng, np.vstack(parts) + 0.1 * rng.normal(size=(180, 6)))
