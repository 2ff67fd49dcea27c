"""The empirical cost of the paper, which shows without any truth how well a stream is learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array

MAX_LINES = 1000
"""Maximum number of lines of the history; when it is full, every second one is dropped."""

COURSE = np.dtype([("samples", np.int64), ("cost", np.float64)])


@dataclass(frozen=True)
class EmpiricalCost:
    """g_t(D), the mean cost of the t samples so far. Nothing here grows without bound.

    The cost of a sample is that of the moment at which it was learned from: it is not computed
    again when D has changed. n of the paper's alpha / 2n tr k(D, D) is t, since a stream has no n.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.online.cost import EmpiricalCost
    >>> cost = EmpiricalCost(every=1).add(np.array([[3.0, 0.0], [1.0, 0.0]]))
    >>> cost.mean
    2.0
    >>> cost.history.tolist()
    [(1, 3.0), (2, 2.0)]
    """

    total: float = 0.0  # costs of the samples
    size: float = 0.0  # alpha / 2 tr k(D, D), with the last D
    count: int = 0  # t
    samples: int = 0  # also those of earlier passes, and those that were rejected
    every: int = 0  # samples between two lines of the history; 0: there is none
    history: Annotated[NDArray[np.void], COURSE] = field(
        default_factory=lambda: np.zeros(0, COURSE)
    )

    @property
    def mean(self) -> float:
        """g_t(D); NaN before the first sample."""
        return (self.total + self.size) / self.count if self.count else np.nan

    def recorded(self, record: bool) -> EmpiricalCost:
        """Return the cost with a history from now on, or without one."""
        if bool(self.every) == record:
            return self
        return replace(self, every=int(record), history=self.history[:0])

    def restart(self) -> EmpiricalCost:
        """Return the cost at the start of a pass, which computes all costs again."""
        return replace(self, total=0.0, size=0.0, count=0)

    def add(self, costs: Array) -> EmpiricalCost:
        """Return the cost after further samples.

        `costs` are those of `hirank.optim.algorithm2.paper_pass`, n x 2; NaN is left out.
        """
        learned, samples = np.isfinite(costs).all(axis=1), self.samples + len(costs)
        if not learned.any():
            return replace(self, samples=samples)
        part, sizes = costs[learned].T
        # One by one, from the total so far: the same to the bit however rows are split into calls.
        totals = np.cumsum(np.concatenate([[self.total], part]))[1:]
        counts = self.count + np.arange(1, len(part) + 1)
        lines = np.zeros(len(part), COURSE)
        lines["samples"] = self.samples + 1 + np.flatnonzero(learned)
        lines["cost"] = (totals + sizes) / counts
        total, size, count = float(totals[-1]), float(sizes[-1]), int(counts[-1])
        added = replace(self, total=total, size=size, count=count, samples=samples)
        return added._record(lines) if self.every else added

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not np.isfinite(self.history["cost"]).all() or (self.history["samples"] < 1).any():
            raise ValueError("costs must be finite, and samples positive")

    def _record(self, lines: NDArray[np.void]) -> EmpiricalCost:
        """Return the cost with lines whose numbers are multiples of `every`, at most MAX_LINES."""
        history, every = np.concatenate([self.history, lines]), self.every
        history = history[history["samples"] % every == 0]
        while len(history) > MAX_LINES:
            every *= 2
            history = history[history["samples"] % every == 0]
        return replace(self, every=every, history=history)
