"""The growth of a dictionary on approval: it ends early if its first steps lead nowhere.

With more points, a step of a large table takes up to ten times as long, and most dictionaries that
grow are given up in the end. Held-out entries show that within a few steps
(docs/notes/large_tables.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hirank._typing import Array
from hirank.optim.lbfgs import LBFGS, LBFGSState
from hirank.optim.path import WINDOW


@dataclass(frozen=True)
class GrowthConfig:
    """Constants of growth on approval."""

    max_first: float = 1.02  # error after the first ten steps, over that of the smaller dictionary
    min_share: float = 0.25  # of the improvement required, that later steps must have brought


@dataclass(frozen=True, kw_only=True)
class Growing(LBFGS):
    """L-BFGS with a larger dictionary, from where a smaller one ended.

    Every ten steps the held-out entries are looked at. They take no part in the steps.
    """

    loss: Callable[[Array], float]  # of X at the held-out entries
    before: float  # the loss of the smaller dictionary
    required: float  # loss over that, from which the larger dictionary is taken
    config: GrowthConfig

    def terminate(self, state: LBFGSState, objectives: Sequence[float]) -> bool:
        return super().terminate(state, objectives) or self._is_hopeless(state, len(objectives) - 1)

    def _is_hopeless(self, state: LBFGSState, steps: int) -> bool:
        if steps % WINDOW:
            return False
        limit = 1 - self.config.min_share * (1 - self.required)
        if steps == WINDOW:
            limit = self.config.max_first
        return self.loss(state.X()) > limit * self.before
