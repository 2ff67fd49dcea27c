"""Settings of a stream: what the user has set, and the constants behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hirank._typing import Array
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import default_n_components
from hirank.online.intervals import IntervalConfig
from hirank.online.mixing import MixConfig
from hirank.online.ordered import OrderedConfig
from hirank.optim.algorithm3 import Algorithm3Config
from hirank.optim.path import SolverConfig, Stage


def n_points(n_components: int | str, n: int) -> int:
    """Return the number of points of a dictionary for n rows."""
    return default_n_components(n) if n_components == "auto" else min(n, int(n_components))


@dataclass(frozen=True)
class LowRankConfig:
    """Constants of low-rank kernel matrices of a window (docs/notes/online.md and schatten.md)."""

    power: float = 0.2  # p of the penalty
    tol: float = 0.1  # times that of dictionaries
    max_rows: int = 1500  # of a window: in more rows, dictionaries do more in the same time
    max_ratio: float = 0.7  # error over that of a dictionary from which it is replaced
    min_gain: float = 0.85  # error over that of the stage before from which a path ends: on exact
    # rows each stage halves it
    max_iter: int = 30  # steps in each stage, unless the solver takes fewer
    refit_stage: int = 2  # from which the path is fitted again if no error of the start is known
    max_entry: float = 1e30  # absolute, in scaled units; larger ones might overflow the kernel

    def allows(self, X: Array) -> bool:
        """Return whether a window, n x v, may be fitted."""
        return len(X) <= self.max_rows and bool(np.abs(X).max(initial=0.0) <= self.max_entry)


@dataclass(frozen=True)
class ArrivalConfig:
    """How filters take part."""

    ordered: OrderedConfig = field(default_factory=OrderedConfig)
    mix: MixConfig = field(default_factory=lambda: MixConfig(max_ratio=1e6, pooled_entries=50.0))
    intervals: IntervalConfig = field(default_factory=IntervalConfig)
    guarded: bool = True  # without filters where the mix is no better than the model alone
    max_level: float = 0.3  # autocorrelation up to which rows are in no order, it seems
    memory: float = 1000.0  # held-out entries over which this is judged


@dataclass(frozen=True)
class WindowConfig:
    """Settings of a stream with a window; each constant was measured (docs/notes/online.md)."""

    kernel: Kernel
    stages: tuple[Stage, ...]  # the whole path
    n_components: Callable[[int], int]  # points of the dictionary for so many rows
    solver: SolverConfig
    scale: bool
    window: int  # rows that are kept
    batch_size: int  # rows that are learned from together
    n_warmup: int  # rows before the first fit
    monitor: bool  # hold out a few entries of each row and predict them
    refit_on_drift: bool  # fit again when these predictions become worse
    low_rank: LowRankConfig | None = None  # None: dictionaries only
    old_errors: float = 0.1  # what errors of the model before a refit count for in the mix
    arrival: ArrivalConfig | None = None  # how filters take part; None: rows are not in order
    growth: float = 2.0  # the path is fitted again when the window has grown by this factor,
    young_growth: float = 1.5  # by this one if it has fewer rows than a stream starts with
    rounds: int = 10  # evaluations per stage for rows on arrival; a table takes more
    min_rest: int = 2  # batches between two refits after a drift; doubled each time that the next
    # drift follows at once, up to half a window: a stream that keeps changing would cost too much
    n_restart: int = 100  # rows since a change from which the model is restarted
    refit_share: int = 3  # a refit takes this many times fewer steps than the first fit
    max_shift: float = 1.0  # standard deviations that a mean may move before features are rescaled
    max_stretch: float = 2.0  # factor that a standard deviation may change before that
    broken_scale: float = 5.0  # times that change: no step brings the points back, so restart
    min_held_out: int = 50  # held-out entries needed to compare stages on
    slice_work: float = 4e8  # multiplications of a fit that a row waits for


@dataclass(frozen=True)
class Algorithm2Config:
    """Settings of a stream with Algorithm 2 of the paper."""

    kernel: Kernel
    bandwidth: float
    beta: float
    n_components: Callable[[int], int]
    alpha: float
    steps: Algorithm3Config  # of the missing entries of each sample; D has the same momentum
    scale: bool
    batch_size: int
    n_warmup: int
    monitor: bool
    record_cost: bool = False
    n_passes: int = 1  # over a table that is given as a whole
    falling: tuple[float, float] | None = None  # ridge of the first and the last pass
