"""Cells: each is one run of a method on a table with missing entries."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

SOURCES = ("paper", "hirank", "peer")
"""Origins of a method: the paper (with what it compares with), hirank, or another library."""


@dataclass(frozen=True)
class Method:
    """A method of an experiment: an estimator and its settings."""

    name: str  # in figures and tables
    estimator: str  # a key of `reproduction.methods.ESTIMATORS`
    source: str = "paper"  # one of SOURCES
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One run, with everything that its numbers depend on."""

    task: str  # a module of `reproduction.tasks`
    data: str  # a key of `reproduction.data.TABLES`
    pattern: str  # a key of `reproduction.data.PATTERNS`
    rate: float  # share of the entries that is missing
    seed: int
    method: Method
    options: dict[str, Any] = field(default_factory=dict)  # of the task

    @cached_property
    def key(self) -> str:
        """Return a fingerprint, which does not depend on the order of settings."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


class Measurement(NamedTuple):
    """One number that a run measured.

    `at` is the position along a curve (iteration, pass, samples seen), `item` the sample or feature
    that the number belongs to, where there are several.
    """

    measure: str
    value: float
    at: float = 0.0
    item: int = 0


@dataclass(frozen=True)
class CellResult:
    """The measurements of a cell, or why it failed."""

    key: str
    measurements: tuple[Measurement, ...]
    seconds: float
    cpu_seconds: float
    failure: str = ""
    code: str = ""  # fingerprint of the code that it was measured with
