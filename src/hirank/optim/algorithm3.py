"""The paper's Algorithm 3: new samples are imputed with D fixed, each on its own.

Codes and missing entries of a sample are updated in turn, by the step of Algorithm 1. Samples are
computed side by side, but each has its own step length and its own end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Box
from hirank.core.objective import Basis, codes_and_residuals
from hirank.optim.loop import minimize
from hirank.optim.newton import MOMENTUM, RELAXATION, step_samples
from hirank.optim.path import WINDOW
from hirank.optim.trace import Monitor

MAX_STEPS = 2000
"""Largest number of steps of a sample, so that a changed model file does not take minutes."""
MAX_VALUE = 1e100
"""Of a sample in the objective that the loop sees: one that overflows must not end the others."""


@dataclass(frozen=True)
class Algorithm3Config:
    """How the samples of Algorithm 3 move, and when each of them ends; 0 switches a rule off."""

    momentum: float = MOMENTUM  # eta of the paper
    relaxation: float = RELAXATION  # tau of the paper
    max_iter: int = 30
    tol: float = 0.0  # its part of the objective fell by no more than this fraction in WINDOW steps
    tol_change: float = 0.0  # neither its codes nor its entries change by as much

    def check(self) -> None:
        """Raise ValueError if no sample could be imputed in this way."""
        if not 0 <= self.momentum < 1 or not self.relaxation > 0:
            raise ValueError("momentum must be from 0 to below 1, and relaxation positive")
        if not 0 < self.max_iter <= MAX_STEPS or self.tol < 0 or self.tol_change < 0:
            raise ValueError(f"max_iter must be from 1 to {MAX_STEPS}, and no tol negative")


@dataclass(frozen=True)
class Algorithm3State:
    """Where samples stand; X is n x m or a stack of such blocks, and rows of all fields its rows.

    After divergence `result` is the best point of a sample, as after that of Algorithm 1.
    """

    X: Array
    Z: Array  # codes of the points before the last step, n x r
    last_X: Array  # the last step
    values: tuple[Array, ...]  # parts of the objective before the last steps, n each, newest last
    first: Array  # the same at the start, n
    lowest: Array  # the lowest so far, n
    best: Array  # where that was, n x m
    active: BoolArray  # samples that have not ended yet, n

    @property
    def objective(self) -> float:
        """The sum of the lowest values, finite also if some samples have none that is."""
        return float(np.minimum(self.lowest, MAX_VALUE).sum())

    def result(self) -> Array:
        """Return the imputed samples, n x m."""
        diverged = ~(self.values[-1] <= self.first)
        return np.where(diverged[..., None], self.best, self.X)


@dataclass(frozen=True)
class Algorithm3:
    """Algorithm 3 of the paper for the samples of one table.

    Parameters
    ----------
    observed : bool array, n x m
        Observed entries never change.
    basis : Basis
        The dictionary, its kernel and ridge.
    config : Algorithm3Config
    box : Box, optional
        Limits of the entries: each step is projected onto them.
    """

    observed: BoolArray
    basis: Basis
    config: Algorithm3Config
    box: Box | None = None
    monotone: ClassVar[bool] = False  # samples end one by one; `result` takes care of divergence

    def init(self, X: Array) -> Algorithm3State:
        X = X if self.box is None else self.box.clip(X)
        unknown = np.full(X.shape[:-1], np.inf)
        Z = np.zeros((*X.shape[:-1], len(self.basis.D)), X.dtype)
        active = np.ones(X.shape[:-1], bool)
        return Algorithm3State(X, Z, np.zeros_like(X), (), unknown, unknown, X, active)

    def step(self, state: Algorithm3State) -> Algorithm3State:
        c, X = self.config, state.X
        with np.errstate(all="ignore"):  # samples end at numbers that are not finite
            Z, S, value = codes_and_residuals(X, self.basis)
            moved, step = step_samples(
                X,
                Z * S,
                self.basis,
                state.last_X,
                self.observed,
                self.box,
                c.momentum,
                c.relaxation,
            )
            change = np.maximum(_largest(Z - state.Z), _largest(moved - X))
        value = np.where(state.active, value, state.values[-1]) if state.values else value
        better = value < state.lowest
        values = (*state.values[-WINDOW:], value)
        active = state.active & np.isfinite(value) & np.isfinite(change) & (change >= c.tol_change)
        goes_on = state.active[..., None] & np.isfinite(change)[..., None]
        if c.tol and len(values) > WINDOW:
            active = active & (values[0] - value > c.tol * np.abs(value))
        return Algorithm3State(
            np.where(goes_on, moved, X),
            np.where(goes_on, Z, state.Z),
            step,
            values,
            state.first if state.values else value,
            np.where(better, value, state.lowest),
            np.where(better[..., None], X, state.best),
            active,
        )

    def terminate(self, state: Algorithm3State, objectives: Sequence[float]) -> bool:
        return not state.active.any()


def run_algorithm3(
    X: Array,
    observed: BoolArray,
    basis: Basis,
    config: Algorithm3Config,
    box: Box | None = None,
) -> Algorithm3State:
    """Return the state at the end of Algorithm 3; missing entries start from the values of X.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import RBF
    >>> from hirank.optim.path import Setting
    >>> basis = Setting(RBF(4.0), 1e-3).basis(np.outer(np.arange(6.0), [1, 1]))
    >>> X, observed = np.array([[4.0, 0.0]]), np.array([[True, False]])
    >>> run_algorithm3(X, observed, basis, Algorithm3Config(tol_change=1e-5)).result().round(1)
    array([[4., 4.]])
    """
    solver = Algorithm3(observed, basis, config, box)
    return minimize(solver, X, max_iter=config.max_iter, monitor=Monitor()).state


def _largest(change: Array) -> Array:
    return np.abs(change).max(axis=-1)
