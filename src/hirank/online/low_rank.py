"""Low-rank kernel matrices of a window, where they recover held-out entries far better.

On rows that lie exactly on few surfaces or subspaces a dictionary leaves an error that only many
more rows would lower; the images of the rows under a polynomial kernel span few dimensions there,
and the penalty of their rank recovers them nearly exactly (docs/notes/online.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.kernels import Poly
from hirank.models.dictionary import Dictionary
from hirank.models.fit_dictionary import DictionaryProblem
from hirank.models.fit_schatten import SchattenFitter, SchattenPath, default_n_landmarks
from hirank.online.config import LowRankConfig
from hirank.optim.early_stopping import is_as_good
from hirank.optim.path import SolverConfig, Stage
from hirank.optim.trace import Monitor


@dataclass(frozen=True)
class Landmarks(Dictionary):
    """Rows that span the kernel matrix of a window, in place of a dictionary that was fitted."""


class HeldOutError(NamedTuple):
    """Errors of predictions of held-out entries, in scaled units."""

    mean: float  # absolute
    square: float  # root mean

    @classmethod
    def measure(cls, predicted: Array, truth: Array) -> HeldOutError:
        """Return the errors of the entries of two vectors."""
        errors = predicted - truth
        return cls(float(np.mean(np.abs(errors))), float(np.sqrt(np.mean(np.square(errors)))))

    def is_ahead(self, rival: HeldOutError, max_ratio: float) -> bool:
        """Return whether the mean error is far lower, and the squared one is not higher.

        A low power of the penalty predicts medians rather than means, so on noisy rows the mean
        absolute error alone would prefer it although its large errors are larger.
        """
        return self.mean < max_ratio * rival.mean and self.square < rival.square


class LowRankFit(NamedTuple):
    """A low-rank kernel matrix that was fitted to a window."""

    X: Array  # n x v
    model: Dictionary  # of all stages
    stages: tuple[Stage, ...]  # those of the model's settings
    fold: Array | None = None  # n x v, as imputed without the held-out entries


@dataclass(frozen=True)
class LowRankProblem:
    """A scaled window to which a low-rank kernel matrix is fitted."""

    X: Array  # n x v
    observed: BoolArray  # n x v
    held_out: BoolArray  # n x v
    config: LowRankConfig
    solver: SolverConfig
    workers: Workers

    @classmethod
    def like(
        cls,
        problem: DictionaryProblem,
        held_out: BoolArray,
        config: LowRankConfig,
        workers: Workers,
    ) -> LowRankProblem:
        """Return the problem for the window of a dictionary, with the same held-out entries."""
        return cls(problem.X, problem.observed, held_out, config, problem.config, workers)

    def size(self) -> float:
        """Return the mean squared length of rows, of which no held-out entry is a part."""
        training = self.observed & ~self.held_out
        squares = np.square(self.X).sum(axis=0, where=training)
        return float((squares / np.maximum(training.sum(axis=0), 1)).sum()) or 1.0

    @property
    def path(self) -> SchattenPath:
        """The path; the offset of its kernel has the size of the rows (docs/notes/schatten.md)."""
        size = self.size()
        return SchattenPath(
            Poly(2, size),
            power=self.config.power,
            # All of them: few stages are fitted, and the first with few landmarks would lose more
            # than they gain (docs/notes/online.md).
            n_landmarks=default_n_landmarks(len(self.X)),
            max_iter=min(self.solver.max_iter, self.config.max_iter),
            tol=self.config.tol * self.solver.tol,
        )

    def fit(self, start: Array, rival: HeldOutError | None = None) -> LowRankFit | None:
        """Fit the path from an imputed window, n x v, that does not depend on held-out entries.

        Where the path ends is decided by the held-out entries. Return None if they are not
        recovered far better than by a rival.
        """
        path, start_error = self.path, self._error(start)
        fitter = SchattenFitter(self.observed & ~self.held_out, Monitor(), self.workers)
        first = self._first_stage(path, start_error)
        best, reached, number = start, start_error, first
        X, means = start, list[float]()
        for stage in range(first, len(path.stages)):
            end = fitter.fit_stage(path, stage, X)
            error = self._error(end.X)
            means.append(error.mean)
            if is_as_good(means):
                best, reached, number = end.X, error, stage
            if len(means) > 1 and means[-1] > self.config.min_gain * means[-2]:
                break
            X = fitter.restart(stage, end)
        if rival is not None and not reached.is_ahead(rival, self.config.max_ratio):
            return None
        return self.finish(best, number, number)._replace(fold=best)

    def finish(self, start: Array, first: int, last: int) -> LowRankFit:
        """Fit some stages to all observed entries."""
        path, fitter = self.path, SchattenFitter(self.observed, Monitor(), self.workers)
        end = fitter.fit_stage(path, first, np.where(self.observed, self.X, start))
        for number in range(first + 1, last + 1):
            end = fitter.fit_stage(path, number, fitter.restart(number - 1, end))
        return LowRankFit(end.X, path.model(end, last), path.model_stages(last))

    def _error(self, X: Array) -> HeldOutError:
        return HeldOutError.measure(X[self.held_out], self.X[self.held_out])

    def _first_stage(self, path: SchattenPath, error: HeldOutError) -> int:
        """Return the stage to begin with: one with more smoothing would undo a good start."""
        smoothings = np.array([stage.beta for stage in path.stages])
        share = error.square**2 * self.X.shape[1] / self.size()  # of the mean squared entry
        return min(int((smoothings >= share).sum()), len(smoothings) - 1)
