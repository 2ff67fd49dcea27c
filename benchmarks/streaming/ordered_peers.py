"""Methods for rows in order, beside those of `peers.py`: start(first rows), then arrive(rows).

Units are the standard deviations of the first rows. Constants are usual ones, the same for all
streams, and not tuned by the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from peers import Copula, Hirank, LastValue, Method, RunningMean

from hirank import OnlineImputer
from hirank.baselines import GROUSE, OnlineLRF


class RowByRow:
    """A method that sees one row at a time, in units of the first rows."""

    def start(self, first: np.ndarray) -> None:
        self.center = np.nan_to_num(np.nanmean(first, axis=0))
        spread = np.nan_to_num(np.nanstd(first, axis=0))
        self.scale = np.where(spread > 1e-9 * np.abs(self.center) + 1e-12, spread, 1.0)
        self.last = self.before = np.zeros(first.shape[1])
        self.prepare(first.shape[1])
        self.arrive(first)

    def prepare(self, m: int) -> None:
        """Begin with m features."""

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        scaled = (rows - self.center) / self.scale
        filled = np.array([self._one(y) for y in scaled])
        return np.where(np.isnan(rows), filled * self.scale + self.center, rows)

    def _one(self, y: np.ndarray) -> np.ndarray:
        filled = np.where(np.isnan(y), self.impute(y), y)
        self.learn(y, filled)
        self.before, self.last = self.last, filled
        return filled

    def impute(self, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def learn(self, y: np.ndarray, filled: np.ndarray) -> None:
        """Learn from a row."""


class ExponentialMean(RowByRow):
    """Mean of the values of each feature, each older one counting .8 of the next."""

    def prepare(self, m: int) -> None:
        self.mean = np.zeros(m)

    def impute(self, y: np.ndarray) -> np.ndarray:
        return self.mean

    def learn(self, y: np.ndarray, filled: np.ndarray) -> None:
        self.mean = self.mean + 0.2 * np.where(np.isnan(y), 0, y - self.mean)


class DampedExtrapolation(RowByRow):
    """The last step goes on, half as long each time."""

    def impute(self, y: np.ndarray) -> np.ndarray:
        return self.last + 0.5 * (self.last - self.before)


class Muscles(RowByRow):
    """Recursive least squares on the other features now and the last values of all (Yi 2000).

    A forgetting factor of .995; missing regressors are the last values.
    """

    def prepare(self, m: int) -> None:
        self.P = np.repeat(np.eye(2 * m)[None], m, axis=0)
        self.b = np.zeros((m, 2 * m))
        self.b[:, m:] = np.eye(m)  # the last value, to begin with

    def _regressors(self, y: np.ndarray) -> np.ndarray:
        now = np.where(np.isnan(y), self.last, y)
        others = np.repeat(now[None], len(y), axis=0)
        np.fill_diagonal(others, 0)
        return np.hstack([others, np.repeat(self.last[None], len(y), axis=0)])

    def impute(self, y: np.ndarray) -> np.ndarray:
        return np.clip((self._regressors(y) * self.b).sum(axis=1), -100, 100)

    def learn(self, y: np.ndarray, filled: np.ndarray) -> None:
        z, keep, seen = self._regressors(y), 0.995, ~np.isnan(y)
        Pz = np.einsum("jkl,jl->jk", self.P[seen], z[seen])
        gain = Pz / (keep + (z[seen] * Pz).sum(axis=1))[:, None]
        error = y[seen] - (z[seen] * self.b[seen]).sum(axis=1)
        self.b[seen] += gain * error[:, None]
        P = (self.P[seen] - gain[:, :, None] * Pz[:, None]) / keep
        trace = np.trace(P, axis1=1, axis2=2)[:, None, None]
        self.P[seen] = P / np.maximum(trace / (1e4 * P.shape[1]), 1)  # it grows without bound


class VectorAutoregression(RowByRow):
    """VAR(1) by ridge regression on the last 500 completed rows, again every 25 rows.

    Missing entries are conditional means given the observed ones, by the residuals.
    """

    def prepare(self, m: int) -> None:
        self.rows, self.A, self.C = [], np.eye(m), np.eye(m)

    def impute(self, y: np.ndarray) -> np.ndarray:
        expected, at = self.A @ self.last, np.flatnonzero(~np.isnan(y))
        if len(at):
            S = self.C[np.ix_(at, at)]
            expected = expected + self.C[:, at] @ np.linalg.solve(S, (y - expected)[at])
        return np.clip(expected, -100, 100)

    def learn(self, y: np.ndarray, filled: np.ndarray) -> None:
        self.rows = [*self.rows[-500:], filled]
        if len(self.rows) < 50 or len(self.rows) % 25:
            return
        X, Y = np.array(self.rows[:-1]), np.array(self.rows[1:])
        n, m = X.shape
        gram = X.T @ X + 1e-2 * n * np.eye(m)  # towards the last value
        self.A = np.eye(m) + np.linalg.solve(gram, X.T @ (Y - X)).T
        residuals = Y - X @ self.A.T
        C = residuals.T @ residuals / n
        self.C = C * n / (n + m) + np.diag(C.diagonal() * m / (n + m) + 1e-6)


class StatImputer:
    """river's StatImputer: the last value seen of each feature ("previous")."""

    def start(self, first: np.ndarray) -> None:
        from river.preprocessing import StatImputer as Imputer
        from river.stats import Mean

        self.model = Imputer(*((j, Mean()) for j in range(first.shape[1])))
        self.arrive(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        filled = []
        for row in rows:
            x = {j: None if np.isnan(v) else float(v) for j, v in enumerate(row)}
            done = self.model.transform_one(x)
            filled.append([done[j] for j in range(len(row))])
            self.model.learn_one(x)
        return np.array(filled, float)


class Prototype:
    """The class OrderedStream of a module `ordered_stream.py` in a folder, filters alone."""

    def __init__(self, folder: Path):
        sys.path.insert(0, str(folder))
        from ordered_stream import OrderedStream

        self.make = OrderedStream

    def start(self, first: np.ndarray) -> None:
        self.model = self.make(first.shape[1])
        self.arrive(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.model.step(row) for row in rows])


class PrototypeWithModel(Prototype):
    """The same with the fill of a model of the window, two entries of each row held out."""

    def __init__(self, folder: Path, seed: int):
        super().__init__(folder)
        self.window, self.rng = (
            OnlineImputer(time=None, random_state=seed),
            np.random.default_rng(0),
        )

    def start(self, first: np.ndarray) -> None:
        super().start(first)
        self.window.partial_fit(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        if not hasattr(self.window, "_record"):
            return super().arrive(rows)
        return np.array([self._one(row) for row in rows])

    def _one(self, row: np.ndarray) -> np.ndarray:
        hidden, at = np.zeros(len(row), bool), np.flatnonzero(~np.isnan(row))
        if len(at) > 2:
            hidden[[at[np.argmax(self.model.age[at])], self.rng.choice(at)]] = True
        fill = self.window.transform(np.where(hidden, np.nan, row)[None])[0]
        done = self.model.step(row, fill, hidden)
        self.window.partial_fit(row[None])
        return done


ORDERED: dict[str, Callable[[int], Method]] = {
    "hirank": lambda seed: Hirank(OnlineImputer(random_state=seed)),
    "time=None": lambda seed: Hirank(OnlineImputer(time=None, random_state=seed)),
    "last value": lambda seed: LastValue(),
    "running mean": lambda seed: RunningMean(),
    "exponential mean": lambda seed: ExponentialMean(),
    "damped extrapolation": lambda seed: DampedExtrapolation(),
    "MUSCLES": lambda seed: Muscles(),
    "VAR": lambda seed: VectorAutoregression(),
    "OnlineLRF": lambda seed: Hirank(OnlineLRF(10, 0.01, memory=75, random_state=seed)),
    "GROUSE": lambda seed: Hirank(GROUSE(5, 0.3, cut=0.3, memory=300, random_state=seed)),
    "river StatImputer": lambda seed: StatImputer(),
    "gcimpute": lambda seed: Copula(0.5, 200, seed),
}
