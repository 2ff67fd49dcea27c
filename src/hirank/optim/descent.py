"""L-BFGS on one vector: compiled where the problem has a compiled form, and in NumPy elsewhere.

Both take the same steps up to rounding. A step of a small problem is mostly Python if it is not
compiled: docs/notes/numerics.md has the times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import Box
from hirank.core.threads import Workers
from hirank.kernels import RBF, Kernel, Poly
from hirank.optim import quasi_newton as qn


class Descent(Protocol):
    """Where the vector of a problem stands. It never changes: a step returns another one."""

    @property
    def value(self) -> float: ...

    @property
    def x(self) -> Array: ...  # N

    @property
    def gradient(self) -> Array: ...  # N

    def step(self) -> Descent:
        """Return the state after one evaluation."""
        ...

    def renew(self) -> Descent:
        """Begin again from the same point, with its curvature."""
        ...


class Problem(Protocol):
    """An objective of one vector, which consists of the missing entries of X and perhaps more."""

    @property
    def work(self) -> float: ...  # the multiplications of an evaluation

    def X(self, vector: Array) -> Array: ...

    def D(self, vector: Array) -> Array: ...  # the dictionary, r x m

    def box(self) -> Box | None: ...  # the limits of the vector, 1 x N

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]: ...

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition: ...

    def compiled(  # None: in NumPy
        self, vector: Array, memory: int, workers: Workers
    ) -> Descent | None: ...


def begin(problem: Problem, vector: Array, memory: int, workers: Workers) -> Descent:
    """Return the state at a vector, N, within the limits of the problem."""
    compiled = problem.compiled(vector, memory, workers)
    # Where the objective is not finite, the NumPy code has the message.
    if compiled is not None and np.isfinite(compiled.value):
        return compiled
    return NumPyDescent.begin(problem, vector, memory, workers)


@dataclass(frozen=True)
class NumPyDescent:
    """The reference."""

    problem: Problem
    rows: qn.Rows  # one row: the vector of the problem
    memory: int
    workers: Workers

    @classmethod
    def begin(cls, problem: Problem, vector: Array, memory: int, workers: Workers) -> NumPyDescent:
        value, gradient = problem.evaluate(vector, workers)
        guide = problem.precondition(vector, workers)
        rows = qn.begin(
            vector[None], np.array([value]), gradient[None], memory, guide, problem.box()
        )
        return cls(problem, rows, memory, workers)

    @property
    def value(self) -> float:
        return float(self.rows.value[0])

    @property
    def x(self) -> Array:
        x: Array = self.rows.x[0]
        return x

    @property
    def gradient(self) -> Array:
        gradient: Array = self.rows.gradient[0]
        return gradient

    def step(self) -> NumPyDescent:
        point = qn.trial(self.rows)
        value, gradient = self.problem.evaluate(point[0], self.workers)
        rows = qn.update(self.rows, point, np.array([value]), gradient[None])
        return replace(self, rows=rows)

    def renew(self) -> NumPyDescent:
        rows = self.rows
        guide = self.problem.precondition(rows.x[0], self.workers)
        rows = qn.begin(rows.x, rows.value, rows.gradient, self.memory, guide, self.problem.box())
        return replace(self, rows=rows)


def compiled_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """Return a kernel as arguments of compiled functions; None if it is not built in."""
    if type(kernel) is RBF and kernel.sigma is not None:
        return {"rbf": True, "inverse_square": kernel.sigma**-2, "degree": 1, "offset": 0.0}
    if type(kernel) is Poly:
        degree, offset = int(kernel.degree), float(kernel.offset)
        return {"rbf": False, "inverse_square": 1.0, "degree": degree, "offset": offset}
    return None


def compiled_limits(box: Box | None) -> dict[str, Array]:
    """Return the limits of a vector as arguments of compiled functions: empty without any."""
    if box is None:
        return {"lower": np.zeros(0), "upper": np.zeros(0)}
    return {"lower": box.lower[0].astype(float), "upper": box.upper[0].astype(float)}
