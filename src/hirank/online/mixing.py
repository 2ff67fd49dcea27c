"""Weights of several predictions of an entry, by feature and by the age of its last value.

The weights have the smallest mean squared error of all that sum to 1, w ~ A^-1 1, for the moments A
of the errors at entries whose values are known; negative ones are dropped. A is a running mean of
the entry's own feature and age, with those of all features counted as a few entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from hirank import _compiled
from hirank._typing import Array, IntArray, Shape

AGES = np.array([1, 2, 3, 5, 9, 17, 33])
"""Rows since the last value of a feature from which each class of ages begins."""
MAX_ERROR = 1e9
"""Units to which errors are clipped: the products of larger ones would overflow."""


@dataclass(frozen=True)
class MixConfig:
    """Constants of a mix (docs/notes/ordered_streams.md)."""

    memory: float = 100.0  # entries of a feature and age over which errors are averaged
    pooled_memory: float = 20.0  # the same of all features together, in units of `memory`
    pooled_entries: float = 10.0  # that the errors of all features count for
    few_entries: float = 50.0  # of an age, in all features: below, neighboring ages count as well
    neighbor: float = (
        0.1  # what an entry of the next age counts for, and again for each further one
    )
    ridge: float = 0.05  # part of the smallest mean squared error that is added
    robust: float = 2.0  # smallest error of an entry, in units, from which it counts less and less
    max_ratio: float = 20.0  # of an error over the smallest one of the entry


@dataclass(frozen=True)
class PredictionMix:
    """Running moments of the errors of K predictions: m features, b ages."""

    moments: Annotated[Array, Shape("m b K K")]  # in units of the data
    entries: Annotated[Array, Shape("m b")]
    pooled: Annotated[Array, Shape("b K K")]  # in units of the entries
    pooled_entries: Annotated[Array, Shape("b")]
    prior: Annotated[Array, Shape("K")]  # mean squared errors before there are any

    @classmethod
    def start(cls, m: int, prior: Array) -> PredictionMix:
        """Return a mix that has seen no errors, with smaller prior errors of what is preferred."""
        b, K = len(AGES), len(prior)
        moments, pooled = np.zeros((m, b, K, K)), np.zeros((b, K, K))
        return cls(moments, np.zeros((m, b)), pooled, np.zeros(b), np.asarray(prior, float))

    def add_features(self, count: int) -> PredictionMix:
        """Return the mix with so many features more, of which no error is known."""
        b, K = self.pooled.shape[:2]
        moments = np.concatenate([self.moments, np.zeros((count, b, K, K))])
        return replace(
            self, moments=moments, entries=np.vstack([self.entries, np.zeros((count, b))])
        )

    def discount(self, share: float) -> PredictionMix:
        """Return the mix with errors so far counting as a share of what they counted."""
        return replace(
            self,
            moments=share * self.moments,
            entries=share * self.entries,
            pooled=share * self.pooled,
            pooled_entries=share * self.pooled_entries,
        )

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.entries.shape[1] != len(AGES):
            raise ValueError(f"there must be {len(AGES)} classes of ages")
        if min(self.entries.min(), self.pooled_entries.min()) < 0 or not (self.prior > 0).all():
            raise ValueError("numbers of entries must not be negative, and priors positive")

    @property
    def scored(self) -> float:
        """The number of entries behind the pooled moments, older ones counted less."""
        return float(self.pooled_entries.sum())

    def weights(
        self, features: IntArray, ages: Array, unit: Array, config: MixConfig
    ) -> tuple[Array, Array]:
        """Return the weights, e x K, of e entries: their features, ages and units.

        Also return the mean squares of their errors, e x K x K, in those units.
        """
        core, at = _compiled.core(), age_class(ages)
        if core is not None:
            found: tuple[Array, Array] = core.mix_weights(
                self.moments,
                self.entries,
                self.pooled,
                self.pooled_entries,
                self.prior,
                np.ascontiguousarray(features, np.int64),
                np.ascontiguousarray(at, np.int64),
                np.ascontiguousarray(unit),
                config.pooled_entries,
                config.few_entries,
                config.neighbor,
                config.ridge,
            )
            return found
        b = np.arange(len(AGES))
        near = config.neighbor ** np.abs(b[:, None] - b)
        share = near * (self.pooled_entries / (self.pooled_entries + config.few_entries))
        means = self.pooled / np.maximum(self.pooled_entries, 1e-9)[:, None, None]
        pooled = np.einsum("bc,ckl->bkl", share, means) + 1e-9 * np.diag(self.prior)
        pooled /= (share.sum(axis=1) + 1e-9)[:, None, None]
        own = np.einsum("eb,ebkl->ekl", near[at], self.moments[features])
        own /= unit[:, None, None] ** 2
        count = (near[at] * self.entries[features]).sum(axis=1)
        A = own + config.pooled_entries * pooled[at]
        A /= (count + config.pooled_entries)[:, None, None]
        least = np.diagonal(A, axis1=1, axis2=2).min(axis=1)
        ridge = (config.ridge * least + 1e-12)[:, None, None] * np.eye(len(self.prior))
        return _minimal_weights(A + ridge), A

    def score(
        self, errors: Array, features: IntArray, ages: Array, unit: Array, config: MixConfig
    ) -> PredictionMix:
        """Return the mix after the errors, K x e, of e entries of different features."""
        if not len(features):
            return self
        e = np.clip(errors / unit, -MAX_ERROR, MAX_ERROR).T
        smallest = np.abs(e).min(axis=1, keepdims=True)
        limit = config.max_ratio * np.maximum(smallest, 1)
        e = np.clip(e, -limit, limit)
        products = e[:, :, None] * e[:, None, :]
        products /= 1 + smallest[:, :, None] ** 2 / config.robust**2
        at, keep = age_class(ages), 1 - 1 / config.memory
        keep_pooled = 1 - 1 / (config.pooled_memory * config.memory)
        moments, entries = self.moments.copy(), self.entries.copy()
        moments[features, at] = keep * moments[features, at] + products * unit[:, None, None] ** 2
        entries[features, at] = keep * entries[features, at] + 1
        pooled, pooled_entries = keep_pooled * self.pooled, keep_pooled * self.pooled_entries
        np.add.at(pooled, at, products)
        np.add.at(pooled_entries, at, 1)
        return replace(
            self, moments=moments, entries=entries, pooled=pooled, pooled_entries=pooled_entries
        )


def age_class(ages: Array) -> IntArray:
    """Return the class of ages in rows; ages below 1 are of the first class."""
    return np.maximum(np.searchsorted(AGES, ages, side="right") - 1, 0)


def quadratic(weights: Array, squares: Array) -> Array:
    """Return w'A w of each entry, for weights, e x K, and the mean squares of their errors."""
    return np.asarray(np.einsum("ek,ekl,el->e", weights, squares, weights))


def _minimal_weights(A: Array) -> Array:
    """Return the weights, e x K, that minimize w'A w, e x K x K; they sum to 1, none negative."""
    e, K = A.shape[:2]
    dropped = np.zeros((e, K), bool)
    for _ in range(K):
        either = dropped[:, :, None] | dropped[:, None, :]
        B = np.where(either, 0, A) + dropped[:, :, None] * np.eye(K)
        w = np.linalg.solve(B, (~dropped)[:, :, None].astype(float))[:, :, 0]
        w /= w.sum(axis=1, keepdims=True)
        if not (w < 0).any():
            break
        dropped |= w < 0
    w = np.maximum(w, 0)
    return w / w.sum(axis=1, keepdims=True)
