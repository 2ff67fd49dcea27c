"""Two peers that follow a linear subspace: GROUSE and an online low-rank factorization."""

from __future__ import annotations

import numpy as np


class Standardized:
    """Centers and scales features with running statistics that forget after `units` samples.

    units = inf keeps those of the first samples, as good as any where nothing changes.
    """

    def __init__(self, units: float = np.inf):
        self.units_memory = units

    def learn_units(self, first: np.ndarray) -> np.ndarray:
        known = ~np.isnan(first)
        self.sums = np.stack([known.sum(0), np.nansum(first, 0), np.nansum(first**2, 0)])
        self._set_units()
        return self.units(first)

    def track_units(self, rows: np.ndarray) -> np.ndarray:
        """Statistics with new rows; returns old scale / new scale."""
        if np.isinf(self.units_memory):
            return np.ones_like(self.scale)
        known, old = ~np.isnan(rows), self.scale
        new = np.stack([known.sum(0), np.nansum(rows, 0), np.nansum(rows**2, 0)])
        self.sums = np.exp(-len(rows) / self.units_memory) * self.sums + new
        self._set_units()
        return old / self.scale

    def _set_units(self) -> None:
        n = np.maximum(self.sums[0], 1e-9)
        self.center = self.sums[1] / n
        variance = self.sums[2] / n - self.center**2
        largest = np.maximum(self.center**2, variance)
        self.scale = np.sqrt(np.maximum(variance, 1e-8 * largest))
        self.scale[self.scale == 0] = 1.0

    def units(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self.center) / self.scale

    def fill(self, rows: np.ndarray, guess: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(rows), guess * self.scale + self.center, rows)


class Grouse(Standardized):
    """Balzano, Nowak and Recht (2010): a geodesic step on the Grassmannian for every sample.

    `step` is a share of the greedy angle arctan(|residual| / |projection|), at which the subspace
    would contain the sample. Shares below 1 average over samples, as data off any subspace need.
    `cut` drops directions that the observed entries of a sample hardly see (0 = plain GROUSE).
    """

    def __init__(self, rank: int, step: float, cut: float, units: float, seed: int):
        super().__init__(units)
        self.rank, self.step, self.cut = rank, step, cut
        self.rng = np.random.default_rng(seed)

    def start(self, first: np.ndarray) -> None:
        first = self.learn_units(first)
        self.U = np.linalg.svd(np.nan_to_num(first), full_matrices=False)[2][: self.rank].T
        for _ in range(20):
            self._learn(self.rng.permutation(first))

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        scaled = self.units(rows)
        filled = self.fill(rows, np.stack([self.U @ self._weights(x) for x in scaled]))
        self.U = np.linalg.qr(self.U * self.track_units(rows)[:, None])[0]
        self._learn(self.units(rows))
        return filled

    def _weights(self, x: np.ndarray) -> np.ndarray:
        known = ~np.isnan(x)
        return np.linalg.lstsq(self.U[known], x[known], rcond=max(self.cut, 1e-8))[0]

    def _learn(self, rows: np.ndarray) -> None:
        for x in rows:
            w = self._weights(x)
            projection = self.U @ w
            residual = np.nan_to_num(x - projection)
            p, r = np.linalg.norm(projection), np.linalg.norm(residual)
            if p < 1e-12 or r < 1e-12:
                continue
            angle = self.step * np.arctan(r / p)
            turn = (np.cos(angle) - 1) * projection / p + np.sin(angle) * residual / r
            self.U += np.outer(turn, w / np.linalg.norm(w))
        self.U = np.linalg.qr(self.U)[0]  # thousands of rotations drift


class OnlineFactors(Standardized):
    """X ~ codes U': ridge codes, then recursive least squares for every row of U, with forgetting.

    As PETRELS (Chi, Eldar and Calderbank 2013), once per batch, and better conditioned: the sums
    hold E[w w'] with the codes' posterior covariance, and codes are kept at unit covariance, so
    that `noise` (the ridge, in units of feature variance) means the same throughout.
    """

    def __init__(self, rank: int, memory: float, noise: float, units: float):
        super().__init__(units)
        self.rank, self.memory, self.noise = rank, memory, noise

    def start(self, first: np.ndarray) -> None:
        first = self.learn_units(first)
        _, s, Vt = np.linalg.svd(np.nan_to_num(first), full_matrices=False)
        self.U = Vt[: self.rank].T * s[: self.rank] / np.sqrt(len(first))
        for _ in range(50):
            self._forget(0.0)
            self._learn(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        scaled = self.units(rows)
        filled = self.fill(rows, self._codes(scaled)[0] @ self.U.T)
        self._forget(np.exp(-len(rows) / self.memory))
        ratio = self.track_units(rows)[:, None]
        self.U, self.B = self.U * ratio, self.B * ratio
        self._learn(self.units(rows))
        return filled

    def _codes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes and their posterior covariances, n x rank and n x rank x rank."""
        known = ~np.isnan(rows)
        grams = np.einsum("ij,jk,jl->ikl", known, self.U, self.U, optimize=True)
        covariances = np.linalg.inv(grams / self.noise + np.eye(self.rank))
        right = np.nan_to_num(rows) @ self.U / self.noise
        return np.einsum("ikl,il->ik", covariances, right), covariances

    def _forget(self, share: float) -> None:
        if share == 0:
            m = len(self.U)
            self.S, self.B = np.zeros((m, self.rank, self.rank)), np.zeros((m, self.rank))
            self.C, self.n = np.zeros((self.rank, self.rank)), 0.0
        for sums in (self.S, self.B, self.C):
            sums *= share
        self.n *= share

    def _learn(self, rows: np.ndarray) -> None:
        known = (~np.isnan(rows)).astype(float)
        W, covariances = self._codes(rows)
        second = W[:, :, None] * W[:, None, :] + covariances
        self.S += (known.T @ second.reshape(len(rows), -1)).reshape(self.S.shape)
        self.B += np.nan_to_num(rows).T @ W
        self.C += second.sum(axis=0)
        self.n += len(rows)
        ridge = self.noise * np.eye(self.rank)
        self.U = np.linalg.solve(self.S + ridge, self.B[:, :, None])[:, :, 0]
        self._unit_codes()

    def _unit_codes(self) -> None:
        L = np.linalg.cholesky(self.C / self.n + 1e-9 * np.eye(self.rank))
        inverse = np.linalg.inv(L)
        self.U = self.U @ L
        self.S = inverse @ self.S @ inverse.T
        self.B = self.B @ inverse.T
        self.C = inverse @ self.C @ inverse.T
