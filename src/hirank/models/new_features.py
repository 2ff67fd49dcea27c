"""New features: columns that were not there at fit time, from the codes of a fitted model."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, BoolArray

RIDGES = np.logspace(-12, 2, 29)
"""Ridges to choose from."""


def complete_features(
    R: Array, observed: BoolArray, Z: Array, *, ridge: float | None = None
) -> Array:
    """Fill the missing entries of new features R, n x t, from the codes Z, n x r, of the samples.

    Each feature is a linear function of the codes, fitted on the samples that have it:
    w = argmin |Z w - R_j|^2 + ridge |w|^2, as in the paper. With ridge=None it has an intercept as
    well, and leave-one-out error chooses the ridge of each feature.
    """
    # Imported here: it takes as long as imputing 10 000 rows, which do not need it.
    from sklearn.linear_model import Ridge, RidgeCV

    filled = R.copy()
    for j, seen in enumerate(observed.T):
        if seen.all():
            continue
        chosen = RidgeCV(RIDGES).fit(Z[seen], R[seen, j]).alpha_ if ridge is None else ridge
        # Fitted anew: RidgeCV's own weights lack digits for small ridges before scikit-learn 1.7.
        model = Ridge(chosen, fit_intercept=ridge is None)
        filled[~seen, j] = model.fit(Z[seen], R[seen, j]).predict(Z[~seen])
    return filled
