"""Stop sentences of the baselines that do not run under `hirank.optim.loop.minimize` yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.exceptions import StopReason
from hirank.optim.trace import Monitor, describe_stop

NOTHING = describe_stop(StopReason.NOTHING_TO_FIT, steps=0)


@dataclass(frozen=True)
class Completed:
    """A completed table, and how the fit went."""

    X: Array  # n x m
    objective: float
    n_iter: int
    stop_reason: str
    trace: NDArray[np.void]
    details: dict[str, Any]


class Recorder(Monitor):
    """A monitor that makes sentences."""

    def finish_with(self, X: Array, stop_reason: str, **details: Any) -> Completed:
        run = self.finish(StopReason.CONVERGED)
        return Completed(X, run.objective, run.n_iter, stop_reason, run.trace, details)

    def ended(self) -> str:
        assert self.reason is not None
        return describe_stop(self.reason, steps=self.steps, max_time=self.max_time)

    def converged(self, tol: float, what: str) -> str:
        return describe_stop(StopReason.CONVERGED, steps=self.steps, tol=tol, quantity=what)

    def exhausted(self, max_iter: int) -> str:
        return describe_stop(StopReason.MAX_ITER, steps=self.steps, max_iter=max_iter)
