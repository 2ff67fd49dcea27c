"""The streams: samples in order of arrival, truth and what is observed of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from accuracy.real import TABLES
from common import stream

from hirank.datasets import polynomial_stream, uniform_missing


def changing(change: tuple[int, int], seed: int) -> np.ndarray:
    """One curved surface that becomes another."""
    return polynomial_stream(change=change, random_state=seed).take(4000)


def real(table: str) -> np.ndarray:
    """A real table in stored order; features that are constant up to rounding are left out."""
    truth = TABLES[table]()
    return truth[:, truth.std(axis=0) > 1e-9 * np.abs(truth).max()]


STREAMS: dict[str, Callable[[int], np.ndarray]] = {
    "one surface": lambda seed: stream("one curved surface", 1200, seed),
    "three surfaces": lambda seed: stream("three curved surfaces", 1200, seed),
    "ten subspaces": lambda seed: stream("ten linear subspaces", 1200, seed),
    "abrupt change": lambda seed: changing((2000, 2000), seed),
    "gradual change": lambda seed: changing((1000, 3000), seed),
    "mocap": lambda seed: real("mocap"),
    "gas drift": lambda seed: real("gas drift"),
    "air quality": lambda seed: real("air quality"),
}
REAL = ("mocap", "gas drift", "air quality")


def load(name: str, missing: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    truth = STREAMS[name](seed)
    return truth, uniform_missing(truth.shape, missing, random_state=seed + 1000)
