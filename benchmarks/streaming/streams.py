"""The streams: samples in order of arrival, truth and what is observed of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from accuracy.real import TABLES
from common import stream

MONOMIALS = [p for d in (1, 2, 3) for p in combinations_with_replacement(range(3), d)]


def surface(n: int, rng: np.random.Generator) -> np.ndarray:
    """Monomials of degree 1 to 3 of three latent variables, n x 19: x = P z as in the paper."""
    s = rng.random((n, 3))
    return np.stack([s[:, powers].prod(axis=1) for powers in MONOMIALS], axis=1)


def changing(share: np.ndarray, seed: int, m: int = 30) -> np.ndarray:
    """One curved surface that becomes another: share 0 = all the first, 1 = all the second.

    P turns by cos and sin, so that its entries stay N(0, 1) on the way.
    """
    rng = np.random.default_rng(seed)
    P, Q = rng.standard_normal((2, len(MONOMIALS), m))
    z, angle = surface(len(share), rng), share[:, None] * np.pi / 2
    return np.cos(angle) * (z @ P) + np.sin(angle) * (z @ Q)


def abrupt(seed: int) -> np.ndarray:
    return changing((np.arange(4000) >= 2000).astype(float), seed)


def gradual(seed: int) -> np.ndarray:
    return changing(np.clip((np.arange(4000) - 1000) / 2000, 0, 1), seed)


def real(table: str) -> np.ndarray:
    """A real table in stored order; constant features, up to rounding, have nothing to tell."""
    truth = TABLES[table]()
    return truth[:, truth.std(axis=0) > 1e-9 * np.abs(truth).max()]


STREAMS: dict[str, Callable[[int], np.ndarray]] = {
    "one surface": lambda seed: stream("one curved surface", 1200, seed),
    "three surfaces": lambda seed: stream("three curved surfaces", 1200, seed),
    "ten subspaces": lambda seed: stream("ten linear subspaces", 1200, seed),
    "abrupt change": abrupt,
    "gradual change": gradual,
    "mocap": lambda seed: real("mocap"),
    "gas drift": lambda seed: real("gas drift"),
    "air quality": lambda seed: real("air quality"),
}
REAL = ("mocap", "gas drift", "air quality")


def load(name: str, missing: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    truth = STREAMS[name](seed)
    return truth, np.random.default_rng(seed + 1000).random(truth.shape) >= missing
