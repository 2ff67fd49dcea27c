"""Which samples and features have too few known entries, whatever the method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from hirank._typing import BoolArray, IntArray


@dataclass(frozen=True)
class Counts:
    """What can be said from the pattern of holes alone, for n samples and the v features in use."""

    thin_samples: BoolArray  # n
    thin_features: BoolArray  # v
    group: IntArray  # v; features in different groups are never known together
    reachable: float | None  # part of the missing entries; None if nothing is missing


def count(observed: BoolArray, sample_needs: int, feature_needs: int) -> Counts:
    """Find samples and features with fewer entries than they need, and what is left of n x v.

    A sample with d latent variables is d unknowns; each known entry is one equation, so d of them
    are used up to place it and one more is the least that tells a right place from a wrong one.

    A feature is a combination of as many functions of the latent variables as the table has rank
    (Lemma 1: the monomials); each sample in which it is known is one equation for their weights.

    A missing entry is out of reach if its sample or its feature is short of entries, or if none of
    the features known in that sample has anything to do with it: no chain of samples connects them.
    """
    n, v = observed.shape
    in_sample, in_feature = observed.sum(axis=1), observed.sum(axis=0)
    thin_samples = in_sample < min(sample_needs, v)
    thin_features = in_feature < min(feature_needs, n)
    together = observed.T.astype(np.float64) @ observed
    n_groups, group = connected_components(together > 0, directed=False)
    members = np.eye(n_groups)[group]  # v x groups
    related = (observed @ members) @ members.T > 0
    lost = ~related | thin_samples[:, None] | thin_features
    missing = ~observed
    reachable = float(1 - lost[missing].mean()) if missing.any() else None
    return Counts(thin_samples, thin_features, group, reachable)
