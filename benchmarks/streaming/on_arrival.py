"""One run of OnlineImputer over a stream: the first 200 samples start it, then batches of 50."""

from typing import Any

import numpy as np

from hirank import OnlineImputer

FIRST, BATCH = 200, 50


def complete_stream(
    truth: np.ndarray, observed: np.ndarray, **settings: Any
) -> tuple[np.ndarray, OnlineImputer, int]:
    """Return samples as imputed on arrival (the first 200 as they are), the model, its refits."""
    X = np.where(observed, truth, np.nan)
    model = OnlineImputer(**settings).partial_fit(X[:FIRST])
    filled, n_refits = [X[:FIRST]], 0
    for low in range(FIRST, len(truth), BATCH):
        filled.append(model.partial_fit_transform(X[low : low + BATCH]))
        n_refits += model.last_update_.value in ("refitted", "restarted")
    return np.concatenate(filled), model, n_refits
