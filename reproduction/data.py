"""Complete tables of the experiments, and patterns of missing entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.datasets import (
    missing_gaps,
    missing_per_sample,
    polynomial_manifolds,
    twisted_cubic,
    uniform_missing,
)
from reproduction.readers import load_hopkins, load_mocap


class DataNotFoundError(Exception):
    """A data file was not found; the message states how to get it."""


class Table(NamedTuple):
    """A complete table."""

    X: Array  # n x m
    labels: IntArray | None = None  # n, the group of each row


PLANES = {"n_features": 20, "latent": 2}
SURFACES: dict[str, dict[str, int]] = {
    "one curved surface": {"n_samples": 100, "degree": 3, "manifolds": 1},
    "three curved surfaces": {"n_samples": 100, "degree": 3, "manifolds": 3},
    "ten linear subspaces": {"n_samples": 100, "degree": 1, "manifolds": 10},
    # The paper's examples of equation 36: 0.56 for three surfaces, 0.64 for ten planes.
    "three quadratic surfaces": {"n_samples": 100, "degree": 2, "manifolds": 3, **PLANES},
    "three quadratic surfaces, 1200 samples": {
        "n_samples": 400,
        "degree": 2,
        "manifolds": 3,
        **PLANES,
    },
    "ten planes": {"n_samples": 30, "degree": 1, "manifolds": 10, **PLANES},
}
"""Arguments of `polynomial_manifolds`; n_samples counts the samples of each surface."""


def structure(name: str, **options: int) -> dict[str, Any]:
    """Return the structure of a table for `hirank.theory`, with the samples of all surfaces."""
    parts: dict[str, Any] = {"n_features": 30, "latent": 3, **SURFACES[name], **options}
    parts.pop("shuffle", None)
    parts["n_samples"] *= parts["manifolds"]
    return parts


def _surfaces(name: str, seed: int, **options: Any) -> Table:
    parts = {**SURFACES[name], **options}
    X, labels = polynomial_manifolds(**parts, return_labels=True, random_state=seed)
    return Table(X, labels)


SMOOTH: dict[str, tuple[Callable[[Array], Array], float]] = {
    "sines": (np.sin, 4.0),
    "exponentials": (np.exp, 2.0),
    "rational functions": (lambda u: 1 / (1 + u * u), 4.0),
}
"""Smooth functions h, and the size of the weights w in x_j = h(w_j s + b_j)."""


def _smooth(
    name: str, seed: int, n_samples: int = 100, n_features: int = 20, latent: int = 2
) -> Table:
    """Return smooth functions of few latent variables; a larger table begins with a smaller one."""
    function, size = SMOOTH[name]
    rng = np.random.default_rng(seed)
    W = size * rng.standard_normal((latent, n_features))
    offsets = size / 2 * rng.standard_normal(n_features)
    return Table(function(rng.uniform(-0.5, 0.5, (n_samples, latent)) @ W + offsets))


def _hopkins(name: str, seed: int) -> Table:
    return Table(*load_hopkins(name))


def _mocap(seed: int, step: int = 2) -> Table:
    return Table(load_mocap(step=step).X)


TABLES: dict[str, Callable[..., Table]] = {
    **{name: partial(_surfaces, name) for name in SURFACES},
    **{name: partial(_smooth, name) for name in SMOOTH},
    "twisted cubic": lambda seed, n_samples=100: Table(twisted_cubic(n_samples, random_state=seed)),
    "1R2RC": partial(_hopkins, "1R2RC"),
    "1R2TCR": partial(_hopkins, "1R2TCR"),
    "mocap": _mocap,
    "shape of mocap": lambda seed: Table(np.zeros((3392, 62))),  # for figures of patterns
}


def load_table(name: str, seed: int, **options: Any) -> Table:
    """Return a complete table, n x m, which depends on the seed only."""
    try:
        return TABLES[name](seed, **options)
    except FileNotFoundError as error:
        raise DataNotFoundError(str(error)) from error


PATTERNS: dict[str, Callable[[Array, float, int], BoolArray]] = {
    "none": lambda X, rate, seed: np.ones(X.shape, bool),
    "random": lambda X, rate, seed: uniform_missing(
        X.shape, rate, keep_one=True, random_state=seed
    ),
    "gaps": lambda X, rate, seed: missing_gaps(X.shape, rate, random_state=seed),
    "per sample": lambda X, rate, seed: missing_per_sample(
        X.shape, round(rate * X.shape[1]), random_state=seed
    ),
}


def draw_observed(X: Array, pattern: str, rate: float, seed: int) -> BoolArray:
    """Return a mask, n x m, True where an entry of the table is observed."""
    return PATTERNS[pattern](X, rate, seed + 1000)  # another seed than that of the table
