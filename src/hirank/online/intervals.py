"""Intervals on arrival, calibrated by the errors at held-out entries as they come.

The size of an error is expected by whatever imputes the entry; how many such sizes an interval has
to reach is learned online (adaptive conformal inference): after an error outside, the quantile of
its level grows, after one inside it falls, such that in the long run the share outside is the
one asked for, whatever the stream does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtri

from hirank._typing import Array, Shape
from hirank.online.mixing import AGES, age_class

LEVELS = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995])
"""Levels whose quantiles are tracked; for others, see `half_width`."""

FIRST_FACTOR = 1.3
"""Quantiles over those of a Gaussian, before any error is known."""


@dataclass(frozen=True)
class IntervalConfig:
    """Constants of the calibration (docs/notes/arrival_intervals.md)."""

    rate: float = 0.05  # by which the logarithm of a quantile moves
    old_rate: float = 0.15  # the same for entries without a value in the row before, which are rare
    neighbor: float = 0.3  # part of that for the next class of ages, and again for each further one
    max_entries: float = 3.0  # of a row that count in full: they err together
    max_factor: float = 10.0  # of a quantile over that of a Gaussian


def gaussian_quantiles(levels: Array) -> Array:
    """Return how many standard deviations from the mean a Gaussian has these shares within."""
    return np.asarray(ndtri((1 + levels) / 2))


@dataclass(frozen=True)
class AdaptiveQuantiles:
    """Quantiles of absolute errors, in expected sizes, by class of age; as logarithms."""

    log: Annotated[Array, Shape("b L")]

    @classmethod
    def start(cls) -> AdaptiveQuantiles:
        """Return quantiles above those of a Gaussian: sizes are not well known at first."""
        return cls(np.tile(np.log(FIRST_FACTOR * gaussian_quantiles(LEVELS)), (len(AGES), 1)))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.log.shape != (len(AGES), len(LEVELS)):
            raise ValueError(
                f"there must be quantiles of {len(AGES)} ages and {len(LEVELS)} levels"
            )

    def add(self, scores: Array, ages: Array, config: IntervalConfig) -> AdaptiveQuantiles:
        """Return the quantiles after the errors of e entries, in expected sizes."""
        if not len(scores):
            return self
        b = np.arange(len(AGES))
        near = config.neighbor ** np.abs(b - age_class(ages)[:, None])  # e x b
        outside = scores[:, None, None] > np.exp(self.log)
        rate = np.where(b == 0, config.rate, config.old_rate)[:, None]
        rate = rate / max(1.0, len(scores) / config.max_entries)
        log = self.log + rate * np.einsum("eb,ebl->bl", near, outside - (1 - LEVELS))
        middle, reach = np.log(gaussian_quantiles(LEVELS)), np.log(config.max_factor)
        return AdaptiveQuantiles(np.clip(log, middle - reach, middle + reach))

    def half_width(self, sizes: Array, ages: Array, coverage: float) -> Array:
        """Return half the widths of intervals around entries with errors of expected sizes.

        Between two levels, the factor over the quantile of a Gaussian is interpolated.
        """
        at, level = age_class(ages), gaussian_quantiles(LEVELS)
        factor = self.log - np.log(level)
        z = float(gaussian_quantiles(np.array(coverage)))
        own = np.array([np.interp(z, level, row) for row in factor])
        return np.asarray(sizes * z * np.exp(own[at]))
