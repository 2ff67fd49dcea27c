"""What a study is made of: cells, each one run of a method on a table with holes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

SOURCES = ("paper", "hirank", "peer")
"""Whose a method is: the paper's and those it compares with, ours, or other people's."""


@dataclass(frozen=True)
class Method:
    """A method as an experiment names it: an estimator and its settings."""

    name: str  # as plots and tables show it
    estimator: str  # a key of `reproduction.methods.ESTIMATORS`
    source: str = "paper"  # one of SOURCES
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One run. Everything that its numbers depend on is in it."""

    task: str  # a module of `reproduction.tasks`
    data: str  # a key of `reproduction.data.TABLES`
    pattern: str  # a key of `reproduction.data.PATTERNS`
    rate: float  # share of the entries that is missing
    seed: int
    method: Method
    options: dict[str, Any] = field(default_factory=dict)  # of the task

    @cached_property
    def key(self) -> str:
        """The same for the same run, whatever order settings are given in."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


class Measurement(NamedTuple):
    """One number that a run found.

    `at` is where along a curve it was taken (iteration, pass, samples seen), `item` which sample
    or feature it belongs to, where there are several.
    """

    measure: str
    value: float
    at: float = 0.0
    item: int = 0


@dataclass(frozen=True)
class Outcome:
    """What came of a cell: numbers, or why there are none."""

    key: str
    measurements: tuple[Measurement, ...]
    seconds: float
    cpu_seconds: float
    failure: str = ""
