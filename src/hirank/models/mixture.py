"""Mixtures of Gaussians: one is a linear model of rows, several are locally linear.

A mixture is the counterpart of a dictionary where a table is noisy: it gives the conditional mean
of a missing entry given the observed ones, and its standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import logsumexp

from hirank._compiled import core
from hirank._typing import Array, BoolArray, IntArray, Shape

CHUNK = 400_000
"""Numbers in the matrices of rows that are processed together: they should fit into a cache."""
WIDTHS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)
"""Rows with about as many missing entries are processed together; the matrices of a group have one
of these widths, or the largest number of missing entries in the table."""
MAX_COMPONENTS = 100
"""Of a model file; fits have up to 64."""
BLOCK_COST = 1e8
"""Multiplications in one call of the compiled core, which an interrupt has to wait for."""


@dataclass(frozen=True)
class Group:
    """Rows with about as many missing entries, and where those are."""

    rows: IntArray  # g
    at: IntArray  # g x q; indices of missing entries, padded with v
    pad: BoolArray  # g x q

    @cached_property
    def pairs(self) -> BoolArray:
        """Which entries of the g x q x q matrices are not padding."""
        real = ~self.pad
        return real[:, :, None] & real[:, None, :]


def groups(observed: BoolArray, chunk: int = CHUNK) -> list[Group]:
    """Group the rows of a table, n x v, by how many of their entries are missing."""
    v = observed.shape[1]
    count = (~observed).sum(axis=1)
    order = np.argsort(observed, axis=1, kind="stable")  # missing entries first
    found = []
    widths = [*(w for w in WIDTHS if w < v), v]
    width_of = np.searchsorted(widths, count)
    for number, q in enumerate(widths):
        members = np.flatnonzero(width_of == number)
        step = max(1, chunk // max(1, q * q, v))
        for rows in (members[i : i + step] for i in range(0, len(members), step)):
            pad = np.arange(q) >= count[rows, None]
            found.append(Group(rows, np.where(pad, v, order[rows, :q]), pad))
    return found


class Given(NamedTuple):
    """The conditional distribution of a group of g rows given one component."""

    log_density: Array  # g; of the observed entries
    fill: Array  # g x v; X with the conditional means
    C: Array  # g x q x q; covariance of the missing entries, identity where padded


@dataclass(frozen=True)
class Gaussian:
    """One component."""

    mean: Array  # v
    precision: Array  # v x v; inverse of the covariance
    log_det: float  # of the covariance

    def given(self, X: Array, observed: BoolArray, group: Group) -> Given:
        """Return the distribution of a group of rows of X, n x v, given their observed entries."""
        P = self.precision
        x, seen = X[group.rows], observed[group.rows]
        g, v = x.shape
        d = np.where(seen, x - self.mean, 0)
        # Row by row: what one product of all rows rounds to depends on how many there are.
        pull = (d[:, None] @ P)[:, 0]
        at = np.minimum(group.at, v - 1)
        A = np.where(group.pairs, P[at[:, :, None], at[:, None, :]], np.eye(at.shape[1]))
        C = np.linalg.inv(A)
        b = np.where(group.pad, 0, np.take_along_axis(pull, at, axis=1))
        move = -(C @ b[:, :, None])[..., 0]
        fill = np.column_stack([np.where(seen, x, self.mean), np.zeros(g)])
        np.put_along_axis(fill, group.at, move + np.append(self.mean, 0)[group.at], axis=1)
        square = (d * pull).sum(axis=1) + (move * b).sum(axis=1)
        known = seen.sum(axis=1)
        log_density = (
            -(self.log_det + np.linalg.slogdet(A)[1] + square + known * np.log(2 * np.pi)) / 2
        )
        return Given(log_density, fill[:, :v], C)


class MixtureArrays(NamedTuple):
    """What rows are imputed with, in double precision and C order."""

    log_weights: Array  # K
    means: Array  # K x v
    covariances: Array  # K x v x v
    precisions: Array  # K x v x v; inverse covariances
    log_dets: Array  # K; of the covariances


@dataclass(frozen=True)
class Mixture:
    """Gaussians and their weights, which impute rows with conditional means: a `RowModel`."""

    weights: Annotated[Array, Shape("K")]
    means: Annotated[Array, Shape("K v")]
    covariances: Annotated[Array, Shape("K v v")]

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.means.shape[1]

    @property
    def work(self) -> float:
        """The multiplications of a row."""
        return len(self) * float(self.width) ** 3

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self) > MAX_COMPONENTS:
            raise ValueError(f"there must be at most {MAX_COMPONENTS} components; got {len(self)}")
        if not len(self) or (self.weights < 0).any() or abs(self.weights.sum() - 1) > 1e-6:
            raise ValueError("weights must be nonnegative and sum to 1")
        for covariance in self.covariances:
            check_covariance(covariance)

    @cached_property
    def arrays(self) -> MixtureArrays:
        """The arrays that rows are imputed with, computed at first use."""
        S = np.ascontiguousarray(self.covariances, np.float64)
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights, dtype=np.float64)
        return MixtureArrays(
            log_weights,
            np.ascontiguousarray(self.means, np.float64),
            S,
            np.ascontiguousarray(np.linalg.inv(S)),
            np.linalg.slogdet(S)[1],
        )

    @cached_property
    def components(self) -> list[Gaussian]:
        _, means, _, precisions, log_dets = self.arrays
        parts = zip(means, precisions, log_dets.tolist(), strict=True)
        return [Gaussian(*part) for part in parts]

    def given(
        self, X: Array, observed: BoolArray, group: Group
    ) -> tuple[Array, Array, list[Given]]:
        """Return log likelihoods, g, shares, g x K, and conditionals of a group of rows of X."""
        each = [component.given(X, observed, group) for component in self.components]
        joint = np.stack([one.log_density for one in each], axis=1) + self.arrays.log_weights
        log_likelihood = logsumexp(joint, axis=1)
        return log_likelihood, np.exp(joint - log_likelihood[:, None]), each

    def shares(self, X: Array, observed: BoolArray) -> Array:
        """Return the posterior probabilities of the components given the observed entries, n x K.

        Row by row: what one product of all rows rounds to depends on how many there are.
        """
        module = core()
        if module is not None:
            X = np.ascontiguousarray(X, np.float64)
            found: Array = module.mixture_shares(X, np.ascontiguousarray(observed), *self.arrays)
            return found
        shares = np.empty((len(X), len(self)))
        for group in groups(observed):
            shares[group.rows] = self.given(X, observed, group)[1]
        return shares

    def complete(self, X: Array, observed: BoolArray) -> Array:
        if core() is None:
            return self._conditional(X, observed)[0]
        return self._compiled_conditional(X, observed, deviations=False)[0]

    def conditional(self, X: Array, observed: BoolArray) -> tuple[Array, Array]:
        """Return conditional means and standard deviations, n x v each; X and 0 if observed."""
        if core() is None:
            return self._conditional(X, observed)
        return self._compiled_conditional(X, observed, deviations=True)

    def _compiled_conditional(
        self, X: Array, observed: BoolArray, *, deviations: bool
    ) -> tuple[Array, Array]:
        module = core()
        assert module is not None
        X = np.ascontiguousarray(X, np.float64)
        observed = np.ascontiguousarray(observed)
        size = max(1, int(BLOCK_COST / max(self.work, 1.0)))
        parts = [
            module.mixture_conditional(
                X[i : i + size], observed[i : i + size], *self.arrays, deviations
            )
            for i in range(0, max(len(X), 1), size)
        ]
        if len(parts) == 1:
            return parts[0]
        means, spreads = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(spreads)

    def _conditional(self, X: Array, observed: BoolArray) -> tuple[Array, Array]:
        n, v = X.shape
        means, variances = np.array(X, np.float64), np.zeros((n, v + 1))
        for group in groups(observed):
            _, share, each = self.given(X, observed, group)
            mean = sum(w[:, None] * one.fill for w, one in zip(share.T, each, strict=True))
            inside = np.zeros(group.at.shape)
            for w, one in zip(share.T, each, strict=True):
                away = np.take_along_axis(
                    np.column_stack([one.fill - mean, np.zeros(len(w))]), group.at, axis=1
                )
                inside += w[:, None] * (np.diagonal(one.C, axis1=1, axis2=2) + away**2)
            means[group.rows] = mean
            spread = np.zeros((len(group.rows), v + 1))
            np.put_along_axis(spread, group.at, inside, axis=1)
            variances[group.rows] = spread
        return np.where(observed, X, means), np.sqrt(variances[:, :v])

    def draw(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> Array:
        """Draw the missing entries of each row jointly from their conditional distribution."""
        v = X.shape[1]
        drawn = np.array(X, np.float64)
        chance = rng.random(len(X))
        noise = rng.standard_normal((len(X), v))
        for group in groups(observed):
            _, share, each = self.given(X, observed, group)
            which = (np.cumsum(share, axis=1) < chance[group.rows, None]).sum(axis=1)
            which = np.minimum(which, len(self) - 1)
            for k, one in enumerate(each):
                mine = which == k
                rows, at = group.rows[mine], group.at[mine]
                L = np.linalg.cholesky(one.C[mine])
                move = (L @ noise[rows, : at.shape[1], None])[..., 0]
                full = np.column_stack([one.fill[mine], np.zeros(len(rows))])
                np.put_along_axis(full, at, np.take_along_axis(full, at, axis=1) + move, axis=1)
                drawn[rows] = full[:, :v]
        return np.where(observed, X, drawn)


def check_covariance(S: Array) -> None:
    """Raise ValueError unless S, v x v, is a covariance, up to rounding."""
    if not len(S):
        return
    size = np.abs(S).max()
    if not 1e-280 < size < 1e200 or not np.allclose(S, S.T, rtol=1e-6, atol=1e-6 * size):
        raise ValueError("a covariance must be symmetric, and neither too small nor too large")
    try:
        np.linalg.cholesky(S + 1e-9 * size * np.eye(len(S)))
    except np.linalg.LinAlgError:
        raise ValueError("a covariance must be positive definite") from None
