"""The four filters of all features; those of many features work in blocks, at linear cost.

The lagged filter has twice as many features as the others: of many, the loose one takes its place.

What features of different blocks share is left to the model of the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.online.clock import Pace
from hirank.online.filters import KINDS, FilterConfig, GaussianFilter
from hirank.online.moments import RunningMoments


class BankStep(NamedTuple):
    """What the filters expect of a row, and the filters after it."""

    imputed: Array  # K x m; conditional means, of observed entries given the others
    variance: Array  # m; that of the level filter
    after: FilterBank | None  # None if nothing was to be learned


@dataclass(frozen=True)
class FilterBank:
    """Filters of each kind for each block of features: those of the first block, and so on."""

    filters: tuple[GaussianFilter, ...]

    @classmethod
    def start(cls, m: int, config: FilterConfig) -> FilterBank:
        """Return filters that have seen no rows."""
        count = 1 if m <= config.largest_block else -(-m // config.usual_block)
        sizes = [len(part) for part in np.array_split(np.arange(m), count)]
        kinds = KINDS if m <= config.largest_lagged else ("static", "loose", "level", "trend")
        return cls(
            tuple(
                GaussianFilter.start(kind, 2 * size if kind == "lagged" else size, config)
                for size in sizes
                for kind in kinds
            )
        )

    def blocks(self) -> Iterator[tuple[slice, tuple[GaussianFilter, ...]]]:
        """Yield the features and the filters of each block."""
        start, K = 0, len(KINDS)
        for i in range(0, len(self.filters), K):
            stop = start + len(self.filters[i].x)
            yield slice(start, stop), self.filters[i : i + K]
            start = stop

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(len(one.x) for one in self.filters[:: len(KINDS)])

    def add_features(self, count: int, config: FilterConfig) -> FilterBank:
        """Return the filters with so many features more, in the last block if it is not full."""
        last = self.filters[-len(KINDS) :]
        if len(last[0].x) + count > config.largest_block:
            return FilterBank(self.filters + FilterBank.start(count, config).filters)
        grown = tuple(one.add_features(count, config) for one in last)
        return FilterBank(self.filters[: -len(KINDS)] + grown)

    def rescale(self, factor: Array, first: bool, config: FilterConfig) -> FilterBank:
        """Return the filters in other units; see `GaussianFilter.rescale`."""
        return FilterBank(
            tuple(
                one.rescale(_for(one, factor[part], factor[part]), first, config)
                for part, block in self.blocks()
                for one in block
            )
        )

    def last(self, kind: str) -> tuple[Array, Array]:
        """Return the last row and the one before, m each, as the filters of a kind know them."""
        some = self.filters[KINDS.index(kind) :: len(KINDS)]
        return np.concatenate([one.x for one in some]), np.concatenate([one.before for one in some])

    def step(
        self,
        y: Array,
        last: Array,
        moments: RunningMoments,
        pace: Pace,
        config: FilterConfig,
        *,
        learn: bool,
    ) -> BankStep:
        """Return what the filters expect of a row y, m; with `learn`, also the filters after it.

        `last`, m, is the row before, as completed.
        """
        imputed, variance = np.empty((len(KINDS), len(y))), np.empty(len(y))
        after: list[GaussianFilter] = []
        for part, block in self.blocks():
            own = moments if part.stop - part.start == len(y) else moments.at(part)
            steps = [
                one.step(
                    _for(one, y[part], last[part]),
                    own.twice() if one.kind == "lagged" else own,
                    pace,
                    config,
                    learn=learn,
                )
                for one in block
            ]
            level = steps[KINDS.index("level")]
            imputed[:, part] = [step.imputed[: part.stop - part.start] for step in steps]
            variance[part] = level.variance
            # What it has learned of few rows may be far off.
            reach = config.max_lagged * np.sqrt(
                level.variance + (config.min_lagged * own.deviation) ** 2
            )
            second = imputed[KINDS.index("lagged"), part]
            np.clip(second, level.imputed - reach, level.imputed + reach, out=second)
            after += [step.after for step in steps if step.after is not None]
        return BankStep(imputed, variance, FilterBank(tuple(after)) if learn else None)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        kinds = ["lagged" if one.kind == "loose" else one.kind for one in self.filters]
        if not kinds or kinds != list(KINDS) * (len(kinds) // len(KINDS)):
            raise ValueError(f"there must be the filters {', '.join(KINDS)} for each block")
        for part, block in self.blocks():
            m = part.stop - part.start
            if any(len(one.x) != (2 * m if one.kind == "lagged" else m) for one in block):
                raise ValueError("the filters of a block must describe the same features")


def _for(one: GaussianFilter, row: Array, last: Array) -> Array:
    """Return a row as a filter has it: with the row before if that is lagged."""
    return np.concatenate([row, last]) if one.kind == "lagged" else row
