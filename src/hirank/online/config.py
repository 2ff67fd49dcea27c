"""What a user chose for a stream, in terms of the solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hirank.kernels import Kernel
from hirank.optim.path import SolverConfig, Stage


@dataclass(frozen=True)
class Plan:
    """Nothing here changes while a stream runs."""

    kernel: Kernel
    stages: tuple[Stage, ...]  # the whole path; one stage in paper mode
    components: Callable[[int], int]  # points in the dictionary for so many rows, at most as many
    options: SolverConfig  # alpha, steps and tolerance
    scale: bool
    window: int  # rows that are remembered
    batch_size: int  # rows that are learned together
    n_start: int  # rows that it takes to start
    passes: int  # over a table that is there as a whole
    falling: tuple[float, float] | None  # ridge of the first and the last pass, in paper mode
    scoring: bool  # hide a few entries of each row and predict them
    react: bool  # learn anew when that goes wrong
