"""The path: stages that lead from local and regularized to global and exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, NamedTuple, Protocol, TypeVar

import numpy as np

from hirank._typing import Array, SavedAs
from hirank.core.objective import Basis
from hirank.exceptions import StopReason
from hirank.kernels import RBF, BuiltinKernel, Kernel
from hirank.optim.loop import Solver, has_stalled, minimize
from hirank.optim.trace import Monitor

BANDWIDTHS = (1.0, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Bandwidth of each stage, in mean pairwise distances."""
FIRST_BETA = 1e-2
LAST_BETA = 1e-10
"""Ridge of the first and the last stage, in mean diagonals of k(D, D)."""
BALANCE = 0.1
"""Best of 0, 0.1, 1 and 10 for the polynomial kernel: see docs/notes/poly.md."""
WINDOW = 10  # steps over which a stage is judged; single steps of L-BFGS may gain next to nothing


class Stage(NamedTuple):
    """One stage of a path, in units of the data."""

    bandwidth: float  # multiple of the mean pairwise distance
    beta: float  # multiple of the mean diagonal of k(D, D)
    balance: float = 0.0  # multiple of the alpha that keeps D at the size of the data

    def check(self) -> None:
        """Raise ValueError if the stage cannot be fitted."""
        if not (self.bandwidth > 0 and self.beta > 0 and self.balance >= 0):
            raise ValueError("bandwidth and beta must be positive, and balance not negative")


@dataclass(frozen=True)
class Setting:
    """A stage in units of the kernel: what a dictionary needs to be evaluated in this stage."""

    kernel: Annotated[Kernel, SavedAs(BuiltinKernel)]
    beta: float
    alpha: float = 0.0

    def basis(self, D: Array) -> Basis:
        """Return the basis that the dictionary D, r x m, is in this stage."""
        return Basis(self.kernel, D, self.beta, self.alpha)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if isinstance(self.kernel, RBF) and self.kernel.sigma is None:
            raise ValueError("the kernel must have a length scale")
        if not self.beta > 0 or not self.alpha >= 0:
            raise ValueError("beta must be positive, and alpha not negative")


@dataclass(frozen=True)
class SolverConfig:
    """Parameters of the optimization along a path."""

    alpha: float = 0.0  # weight of the size of the dictionary
    max_iter: int = 100  # steps in each stage, at most
    tol: float = 0.0  # a stage ends when the objective fell by less than this part in WINDOW steps


class PathPoint(NamedTuple):
    """A point from which a stage starts, or at which it ended."""

    setting: Setting
    X: Array  # n x m
    D: Array  # r x m


class PathState(Protocol):
    """A state of a solver that moves missing entries and dictionary."""

    @property
    def objective(self) -> float: ...

    def X(self) -> Array: ...

    def D(self) -> Array: ...


P = TypeVar("P", bound=PathState)
Between = Callable[[int, PathPoint], tuple[Array, Array] | None]
"""Called with the number and end of each stage: X and D that the next starts from, None to end."""


@dataclass(frozen=True)
class PathSolution:
    """What an optimization along a path found."""

    X: Array  # n x m
    D: Array  # r x m
    settings: tuple[Setting, ...]  # of the stages that were reached, in order
    objective: float
    reason: StopReason  # why the last of them ended
    fold: Array | None = None  # n x m, as imputed without the held-out entries that have selected
    # the last stage; None if there were none

    @classmethod
    def empty(cls, X: Array, n_components: int) -> PathSolution:
        """Return the solution for rows without any feature that varies, n x 0."""
        D = np.zeros((n_components, X.shape[1]))
        return cls(X, D, (), 0.0, StopReason.NOTHING_TO_FIT)


def minimize_path(
    solver: Solver[P],
    kernel: Kernel,
    stages: Sequence[Stage],
    start: tuple[Array, Array],
    config: SolverConfig,
    monitor: Monitor,
    between: Between | None = None,
) -> PathSolution:
    """Minimize stage by stage; each stage starts where the one before ended.

    The path ends early if a stage diverges, the monitor stops the fit, or `between` returns None.
    """
    X, D = start
    settings: list[Setting] = []
    for number, stage in enumerate(stages):
        setting = resolve_stage(stage, kernel, X, D, config.alpha)
        settings.append(setting)
        point = PathPoint(setting, X, D)
        solution = minimize(solver, point, max_iter=config.max_iter, monitor=monitor)
        if not np.isfinite(solution.state.objective):  # then no step has led to a better one
            raise FloatingPointError(
                "The objective is not finite at the starting point. Use scale=True or a smaller "
                "degree."
            )
        X, D = solution.state.X(), solution.state.D()
        if solution.reason not in (StopReason.CONVERGED, StopReason.MAX_ITER):
            break
        onward = (X, D) if between is None else between(number, PathPoint(setting, X, D))
        if onward is None:
            break
        X, D = onward
    return PathSolution(X, D, tuple(settings), solution.state.objective, solution.reason)


def resolve_stage(stage: Stage, kernel: Kernel, X: Array, D: Array, alpha: float = 0.0) -> Setting:
    """Measure the units of a stage on the current X, n x m, and D, r x m."""
    kernel = kernel.resolve(X, stage.bandwidth)
    if not kernel.fixed_size:
        # Larger points make for smaller codes, which the ridge rewards without end. In balance,
        # alpha tr G is about beta |Z|^2 for codes of norm 1.
        alpha += stage.balance * stage.beta * len(X) / len(D)
    return Setting(kernel, stage.beta * _mean_diagonal(kernel, D), alpha)


def rescale_ridges(
    settings: Sequence[Setting], stages: Sequence[Stage], D: Array
) -> tuple[Setting, ...]:
    """Return the settings with the ridges of their stages in units of another dictionary.

    A fit may change the size of k(d, d) by orders of magnitude (not with the RBF kernel). New rows
    that go through its stages with the final dictionary need the same relative ridges.
    """
    return tuple(
        replace(setting, beta=stage.beta * _mean_diagonal(setting.kernel, D))
        for setting, stage in zip(settings, stages, strict=False)
    )


def _mean_diagonal(kernel: Kernel, D: Array) -> float:
    with np.errstate(over="ignore"):
        mean = float(kernel.diag(D).mean(dtype=np.float64))
    if not np.isfinite(mean):
        raise ValueError(
            f"The values of {kernel} overflow {D.dtype} on this data. Use scale=True, float64 "
            "input, or a smaller degree."
        )
    return mean


def has_converged(objectives: Sequence[float], tol: float) -> bool:
    """Return whether the objective of a stage fell by less than `tol`; never if `tol` is 0."""
    return tol > 0 and has_stalled(objectives, tol, WINDOW)


@lru_cache
def default_path(
    bandwidths: tuple[float, ...] = BANDWIDTHS,
    last_beta: float = LAST_BETA,
    first_beta: float = FIRST_BETA,
) -> tuple[Stage, ...]:
    """Return a stage per bandwidth; beta falls to `last_beta` by a constant factor."""
    betas = np.geomspace(max(first_beta, last_beta), last_beta, len(bandwidths))
    return tuple(Stage(float(s), float(b), BALANCE) for s, b in zip(bandwidths, betas, strict=True))


def path_to(path: Sequence[float], end: float) -> tuple[float, ...]:
    """Return the part of a falling path that leads to a value, and the value."""
    return (*(value for value in path if value > end), end)
