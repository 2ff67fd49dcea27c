"""One run of OnlineImputer over a stream: the first 200 samples start it, then batches of 50."""

from typing import Any

import numpy as np

from hirank import OnlineImputer
from hirank.online.updates import Update

FIRST, BATCH = 200, 50


def on_arrival(
    truth: np.ndarray, observed: np.ndarray, **settings: Any
) -> tuple[np.ndarray, OnlineImputer, int]:
    """Return the samples as imputed on arrival, the model at the end, and the number of refits.

    The first 200 samples are returned as they are; restarts count as refits.
    """
    incomplete = np.where(observed, truth, np.nan)
    model = OnlineImputer(**settings).partial_fit(incomplete[:FIRST])
    filled, refits = [incomplete[:FIRST]], 0
    for low in range(FIRST, len(truth), BATCH):
        filled.append(model.partial_fit_transform(incomplete[low : low + BATCH]))
        refits += model.last_update_ in (Update.REFITTED, Update.RESTARTED)
    return np.concatenate(filled), model, refits
