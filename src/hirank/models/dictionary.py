"""A fitted dictionary, which imputes rows, and the protocol of everything that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Protocol

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.core.bounds import Bounds
from hirank.core.columns import ScaledTable
from hirank.core.objective import coordinates
from hirank.core.threads import Workers
from hirank.models.out_of_sample import BLOCK, MAX_KEPT, ROUNDS, RowImputer
from hirank.optim.path import Setting
from hirank.optim.rows import ROWS_PER_BLOCK

MAX_POINTS = 2000
"""Largest dictionary. The default rules take up to 800 points; time grows with their cube."""
MAX_STAGES, MAX_ROUNDS = 15, 30
"""More than any fit has (10 and 14), so that a row does not take minutes with a changed file."""
STEP_OVERHEAD = 1e6
"""Multiplications that take as long as the Python code around a step."""
MAX_COORDINATE = 1e150
"""Of points in scaled units: the squares of larger ones overflow."""


class RowModel(Protocol):
    """What was fitted, as far as completing scaled rows needs it."""

    def complete(self, X: Array, observed: BoolArray) -> Array:
        """Impute rows, n x v, each on its own; every row has an observed and a missing entry."""
        ...


def complete_rows(model: RowModel, table: ScaledTable) -> Array:
    """Return the rows of a scaled table, n x v, imputed by a model; rows without values stay."""
    filled = table.X.copy()
    incomplete = ~table.observed.all(axis=1) & ~table.empty
    if incomplete.any():
        filled[incomplete] = model.complete(table.X[incomplete], table.observed[incomplete])
    return filled


@dataclass(frozen=True)
class Dictionary:
    """Imputes rows such that, seen through the kernel, they lie close to a dictionary's span."""

    D: Annotated[Array, Shape("r v")]
    settings: tuple[Setting, ...]  # of the stages of the fit
    rounds: int = ROUNDS  # evaluations per stage for new rows, at most
    bounds: Bounds | None = None  # of imputed values, v features in scaled units

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.D.shape[1]

    @property
    def work(self) -> float:
        """The multiplications of a block of rows: see `points_work`."""
        return len(self.settings) * points_work(self.D, self.rounds)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        imputer = self._kept if self._kept.nbytes <= MAX_KEPT else self._imputer()
        with Workers(1 if len(X) <= BLOCK else None) as workers:
            return imputer.complete(X, observed, workers)

    def coordinates(self, X: Array) -> Array:
        """Return completed rows in coordinates of the dictionary's span, n x v -> n x r."""
        return span_coordinates(X, self.D, self.settings)

    @cached_property
    def _kept(self) -> RowImputer:
        """What imputes rows; what it computes once stays with the model, if it is not too much."""
        return self._imputer()

    def _imputer(self) -> RowImputer:
        return RowImputer(self.D, self.settings, self.rounds, self.bounds)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is computed from them is not copied, nor pickled."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not 0 < self.rounds <= MAX_ROUNDS or len(self.settings) > MAX_STAGES:
            raise ValueError(
                f"there must be 1 to {MAX_ROUNDS} rounds and up to {MAX_STAGES} settings"
            )
        check_points(self.D, self.settings, self.bounds)


def span_coordinates(X: Array, D: Array, settings: Sequence[Setting]) -> Array:
    """Return completed rows, n x v, in coordinates of the span of D in the last stage, n x r."""
    if not settings:  # no feature varies
        return np.zeros((len(X), len(D)))
    return coordinates(X, settings[-1].basis(D))


def points_work(D: Array, rounds: int) -> float:
    """Return the multiplications for the inverse of k(D, D) and so many steps of a block of rows.

    A step takes as long as `STEP_OVERHEAD` of them if D, r x v, is small. Those in proportion to v
    are left out: such a model file is large itself.
    """
    r = float(len(D))
    return r * r * (r + rounds * ROWS_PER_BLOCK) + rounds * STEP_OVERHEAD


def check_points(D: Array, settings: Sequence[Setting], bounds: Bounds | None) -> None:
    """Raise ValueError if points, r x v, cannot be used with these settings and bounds."""
    r, v = D.shape
    if v and not (r and settings):
        raise ValueError("there must be points and settings")
    if r > MAX_POINTS:
        raise ValueError(f"there must be at most {MAX_POINTS} points; got {r}")
    if np.abs(D).max(initial=0.0) > MAX_COORDINATE:
        raise ValueError(f"points must be within {MAX_COORDINATE:g}")
    if bounds is not None and len(bounds.lower) != v:
        raise ValueError(f"bounds must describe {v} features")
