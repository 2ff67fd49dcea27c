"""How rows change with time: second-order linear dynamics with a full covariance.

From one row to the next, in deviations from the mean and with steps d_t = x_t - x_{t-1},

    d_t = f d_{t-1} + B (x_{t-1}, d_{t-1}) + e_t,    e_t ~ N(0, Q),

with one f for each feature. With f = 0 and B = 0 it is a random walk, with f = 1 an integrated
random walk, between them a damped trend; B lets the levels and steps of all features act on each
other. Over a longer step f d_{t-1} is repeated and fades, and e adds up.

Arrays are m x n, so that a feature's series is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, Shape
from hirank.models.mixture import check_covariance
from hirank.models.timeline import Steps, shift

MAX_DAMPING = 0.999
"""Autocorrelation of the steps of an integrated random walk, for which the formulas are finite."""


@dataclass(frozen=True)
class Dynamics:
    """How rows change with time, and how they are spread at any time.

    Attributes
    ----------
    damping : m
        f, the part of a step that is repeated in the next one.
    coupling : m x p
        B; p is 2 m, or 0 if features do not act on each other.
    noise : m x m
        Q.
    spread : m x m
        Covariance of rows.
    level : float
        Weight of the distance of rows to the mean, relative to that of independent rows.
    """

    damping: Annotated[Array, Shape("m")]
    coupling: Annotated[Array, Shape("m p")]
    noise: Annotated[Array, Shape("m m")]
    spread: Annotated[Array, Shape("m m")]
    level: float

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        m, p = self.coupling.shape
        if p not in (0, 2 * m):
            raise ValueError(f"coupling must have 0 or {2 * m} columns; got {p}")
        if self.damping.min(initial=0) < 0 or self.damping.max(initial=0) > MAX_DAMPING:
            raise ValueError(f"damping must be between 0 and {MAX_DAMPING}")
        if not self.level > 0:
            raise ValueError("level must be positive")
        check_covariance(self.noise)
        check_covariance(self.spread)


class Operator:
    """The linear map from rows, m x n, to e, what the rows before leave unexplained."""

    def __init__(self, damping: Array, coupling: Array, steps: Steps) -> None:
        m, n = len(damping), len(steps.length)
        of_levels, of_steps = np.split(coupling, 2, axis=1) if coupling.size else (None, None)
        self.of_levels, self.of_steps = of_levels, of_steps
        self.damping = damping[:, None]
        self.second_order = bool(damping.any()) or of_steps is not None
        self.linked = steps.linked.astype(np.float64)
        self.reach = steps.twice * np.minimum(steps.length, 1)  # of levels
        self.repeat: Array | float = 1.0  # how often the step before is repeated
        # The first step of a group is as large as steps are, by their autocorrelation.
        first = steps.linked & ~steps.twice
        self.scale: Array = self.linked * np.where(first, np.sqrt(1 - self.damping**2), 1)
        self.pace, self.count = steps.twice / steps.before, int(steps.linked.sum())
        if not steps.even:
            f = np.broadcast_to(self.damping, (m, n))
            self.repeat = (1 - f**steps.length) / (1 - f)
            self.scale = self.scale / np.sqrt(_growth(f, steps.length))

    def residuals(self, X: Array) -> Array:
        """Return e of X, m x n."""
        e = (X - shift(X)) * self.linked
        if self.second_order:
            before = shift(e) * self.pace
            explained = self.damping * before
            if self.of_steps is not None:
                explained += self.of_steps @ before
            explained *= self.repeat
            if self.of_levels is not None:
                explained += self.of_levels @ (shift(X) * self.reach)
            e -= explained
        e *= self.scale
        return e

    def transposed(self, e: Array) -> Array:
        """Return the transpose of `residuals` applied to e, m x n."""
        e = e * self.scale
        rows = np.zeros_like(e)
        if self.second_order:
            repeated = e * self.repeat
            before = self.damping * repeated
            if self.of_steps is not None:
                before += self.of_steps.T @ repeated
            if self.of_levels is not None:
                rows -= _shift_back((self.of_levels.T @ e) * self.reach)
            e -= _shift_back(before * self.pace)
        e *= self.linked
        rows += e
        rows -= _shift_back(e)
        return rows

    def bands(self) -> tuple[Array, Array, Array]:
        """Return how e of a feature depends on its own rows t, t - 1 and t - 2, m x n each."""
        repeated, levels = self.damping, np.zeros((len(self.damping), 1))
        if self.of_steps is not None and self.of_levels is not None:
            repeated = repeated + self.of_steps.diagonal()[:, None]
            levels = self.of_levels.diagonal()[:, None] * self.reach
        last = repeated * self.repeat * self.pace * self.scale
        now = np.broadcast_to(self.linked * self.scale, last.shape)
        return now, -(now + last + levels * self.scale), last


def _shift_back(X: Array) -> Array:
    """Return the columns of X, m x n, one earlier: the transpose of `shift`."""
    out = np.empty_like(X)
    out[:, :-1], out[:, -1:] = X[:, 1:], 0
    return out


def _growth(f: Array, length: Array) -> Array:
    """Return the variance that a step adds, over that of a usual one, m x n.

    It is the sum over k = 1, ..., length of ((1 - f^k) / (1 - f))^2, exact for whole steps.
    """
    once, twice = 1 - f**length, 1 - f ** (2 * length)
    total = length - 2 * f * once / (1 - f) + f**2 * twice / (1 - f**2)
    return np.maximum(total / (1 - f) ** 2, np.minimum(length, 1) ** 2 * length)
