"""One run of OnlineKFMC over a stream: the first 200 samples start it, then batches of 50."""

from typing import Any

import numpy as np

from hirank import OnlineKFMC

FIRST, BATCH = 200, 50


def on_arrival(
    truth: np.ndarray, observed: np.ndarray, **settings: Any
) -> tuple[np.ndarray, OnlineKFMC]:
    """Samples as completed on arrival (the first 200 as they are), and the model at the end."""
    holes = np.where(observed, truth, np.nan)
    model = OnlineKFMC(**settings).partial_fit(holes[:FIRST])
    filled = [holes[:FIRST]]
    filled += [
        model.partial_fit_transform(holes[low : low + BATCH])
        for low in range(FIRST, len(truth), BATCH)
    ]
    return np.concatenate(filled), model
