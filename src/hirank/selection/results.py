"""What a search may try, and what it hands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.models.mixture import Mixture
from hirank.models.row_models import Dictionary
from hirank.models.stacking import Blend
from hirank.optim.path import SolverConfig
from hirank.selection.candidates import Tried
from hirank.selection.dictionary_path import Recipe


@dataclass(frozen=True)
class Plan:
    """What the search may try."""

    recipes: Sequence[Recipe]  # of the smallest size; the first is the usual one
    most_components: int  # to which dictionaries may grow
    mix: bool  # whether other models than dictionaries take part
    n_starts: int | None  # models of a kind to average; None: as many as is worth it
    options: SolverConfig
    bounds: Bounds | None = None


@dataclass(frozen=True)
class HeldOut:
    """What the chosen blend filled in for hidden entries, h of them, and what they really were."""

    rows: IntArray
    columns: IntArray
    truth: Array
    fill: Array
    fills: Array  # h x c; of the candidates with weight
    linear: Array  # of the best linear candidate; NaN without one
    spread: Array  # standard deviations that the mixture gives them; 0 without one

    def first(self, h: int) -> HeldOut:
        """Only the first entries."""
        return HeldOut(**{f.name: getattr(self, f.name)[:h] for f in fields(self)})


@dataclass(frozen=True)
class Chosen:
    """The models that a table is completed by, and how they came to be chosen."""

    X: Array  # n x v, completed
    blend: Blend
    dictionary: Dictionary
    mixture: Mixture | None
    objective: float  # of the dictionary
    results: list[tuple[Tried, float]]  # all candidates with their weights
    held_out: HeldOut | None
    first_fold: tuple[BoolArray, Array] = field(repr=False)
    """The entries hidden in the first fold, and the table as completed without them, n x v."""
    gain: float = 1.0
    """Times the errors at hidden entries: what to expect of models fitted to everything."""
