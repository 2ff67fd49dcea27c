"""The path: stages that lead from local and regularized to global and exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.core.objective import Basis
from hirank.kernels import Kernel

BANDWIDTHS = (1.0, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Bandwidth of each stage, in mean pairwise distances."""
FIRST_BETA = 1e-2
LAST_BETA = 1e-10
"""Ridge of the first and the last stage, in mean diagonals of k(D, D)."""
BALANCE = 0.1
"""Best of 0, 0.1, 1 and 10 for the polynomial kernel: see docs/notes/poly.md."""


class Stage(NamedTuple):
    """One stage of a path, in units of the data."""

    bandwidth: float  # multiple of the mean pairwise distance
    beta: float  # multiple of the mean diagonal of k(D, D)
    balance: float = 0.0  # multiple of the alpha that keeps D at the size of the data


@dataclass(frozen=True)
class Setting:
    """A stage with its units settled: what is needed to look at any dictionary through it."""

    kernel: Kernel
    beta: float
    alpha: float = 0.0

    def basis(self, D: Array) -> Basis:
        return Basis(self.kernel, D, self.beta, self.alpha)


def settle(stage: Stage, kernel: Kernel, X: Array, D: Array, alpha: float = 0.0) -> Setting:
    """Measure the units of a stage on the current X, n x m, and D, r x m."""
    kernel = kernel.resolve(X, stage.bandwidth)
    if not kernel.fixed_size:
        # Larger points make for smaller codes, which the ridge rewards without end. In balance,
        # alpha tr G is about beta |Z|^2 for codes of norm 1.
        alpha += stage.balance * stage.beta * len(X) / len(D)
    return Setting(kernel, stage.beta * _mean_diagonal(kernel, D), alpha)


def resettle(settings: Sequence[Setting], stages: Sequence[Stage], D: Array) -> tuple[Setting, ...]:
    """The settings with the ridge of their stages in units of another dictionary.

    A fit may change the size of k(d, d) by orders of magnitude (not with the RBF kernel). Whoever
    walks its stages with the final dictionary wants the same relative ridges.
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


def default_path(
    bandwidths: Sequence[float] = BANDWIDTHS,
    last_beta: float = LAST_BETA,
    first_beta: float = FIRST_BETA,
) -> tuple[Stage, ...]:
    """One stage per bandwidth; beta falls from `first_beta` to `last_beta` by a constant factor."""
    betas = np.geomspace(max(first_beta, last_beta), last_beta, len(bandwidths))
    return tuple(Stage(float(s), float(b), BALANCE) for s, b in zip(bandwidths, betas, strict=True))


def path_to(path: Sequence[float], end: float) -> tuple[float, ...]:
    """The part of a falling path that leads to a value, and the value."""
    return (*(value for value in path if value > end), end)
