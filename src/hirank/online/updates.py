"""What the rows of a stream lead to: how its model is updated and why, slice by slice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from hirank.core.slices import Slices
from hirank.online.config import WindowConfig
from hirank.online.rescale import has_new_feature, scale_change

if TYPE_CHECKING:
    from hirank.online.window import StreamState

T = TypeVar("T")


class Update(Enum):
    """What the last batch led to."""

    NONE = "none"  # nothing could be learned from it, or nothing is before the next refit
    STARTED = "started"  # the first fit
    REFINED = "refined"  # a few steps of the dictionary
    REFITTED = "refitted"  # the path again, from the model at hand
    RESTARTED = "restarted"  # the path again, from the rows alone


class Cause(Enum):
    """Why a model was refitted or restarted."""

    WINDOW = "the window has grown"
    ERRORS = "errors have increased"
    POOR = "errors are as large as those of column means"
    SCALE = "features have left their scale"
    FEATURE = "a new feature varies"


@dataclass(frozen=True)
class Learning:
    """An update that goes on: each row computes another slice of it.

    What is saved and copied is how many slices there were. They are computed again where the
    running computation is not at hand, or stands elsewhere because a call was interrupted.
    """

    update: Update
    cause: Cause | None = None
    slices: int = 0  # that were computed
    rows: int = 0  # pending ones of a first fit, which wait until it is complete

    running: ClassVar[Slices[Any] | None] = None  # not a field: of each record its own

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.slices < 0 or self.rows < 0:
            raise ValueError("slices and rows must not be negative")

    def __reduce__(self) -> tuple[type[Learning], tuple[Update, Cause | None, int, int]]:
        return type(self), (self.update, self.cause, self.slices, self.rows)

    def advance(self, compute: Callable[[], T], budget: float) -> tuple[Learning, Slices[T] | None]:
        """Return the state after another slice, and the computation if that was the last."""
        running = self.computation(compute, budget)
        while running.taken <= self.slices and not running.done:
            running.advance()
        after = replace(self, slices=self.slices + 1)
        object.__setattr__(after, "running", running)
        return after, running if running.done and running.taken <= after.slices else None

    def computation(self, compute: Callable[[], T], budget: float) -> Slices[T]:
        """Return the computation, which may be ahead of the slices that rows waited for."""
        running = self.running
        if running is None or not running.usable:
            running = Slices(compute, budget)
            object.__setattr__(self, "running", running)
        return running


def next_update(state: StreamState, config: WindowConfig) -> tuple[Update, Cause | None]:
    """Return what the state of the window calls for."""
    model, n = state.model, len(state.buffer)
    assert model is not None
    if state.suspect >= min(config.n_restart, config.n_warmup):
        return Update.RESTARTED, Cause.POOR
    if state.rested >= config.min_rest and has_new_feature(state.buffer, model):
        return Update.RESTARTED, Cause.FEATURE
    young = state.fitted_rows < config.n_warmup
    growth = config.young_growth if young else config.growth
    full = n == config.window and growth * state.fitted_rows > config.window > state.fitted_rows
    if n >= growth * state.fitted_rows or full:
        return Update.REFITTED, Cause.WINDOW
    # Predictions as poor as means: the next batch decides whether to restart. Until then, wait.
    if state.rested >= state.rest and not state.suspect:
        if config.refit_on_drift and state.drift_scores.jumped:
            return Update.REFITTED, Cause.ERRORS
        change = scale_change(state.buffer, model, config)
        if change > config.broken_scale:
            return Update.RESTARTED, Cause.SCALE
        if change > 1:
            return Update.REFITTED, Cause.SCALE
    return Update.REFINED, None
