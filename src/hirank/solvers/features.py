"""New features: columns that were not there at fit time, from the codes of a fitted model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array


def complete_features(
    R: Array, observed: NDArray[np.bool_], Z: Array, *, ridge: float = 0.01
) -> Array:
    """Fill the missing entries of new features R, n x t, from the codes Z, n x r.

    Each feature is a linear function of the codes, fitted on the samples that have it:
    w = argmin |Z w - R_j|^2 + ridge |w|^2.
    """
    filled = R.copy()
    for j, seen in enumerate(observed.T):
        gram = Z[seen].T @ Z[seen]
        gram[np.diag_indices_from(gram)] += ridge
        weights = np.linalg.solve(gram, Z[seen].T @ R[seen, j])
        filled[~seen, j] = Z[~seen] @ weights
    return filled
