"""Impute rows as they arrive, on a surface that changes abruptly, and follow the error."""

import numpy as np

from hirank import OnlineImputer
from hirank.datasets import polynomial_stream, uniform_missing
from hirank.metrics import standardized_rmse

truth = polynomial_stream(8, latent=2, change=(600, 600), random_state=0).take(1000)
observed = uniform_missing(truth.shape, 0.3, random_state=0)
rows = np.where(observed, truth, np.nan)

model = OnlineImputer(window=300, random_state=0)
model.partial_fit(rows[:200])
print("rows         true error   recent_error_   last update")
for begin in range(200, 1000, 100):
    part = slice(begin, begin + 100)
    filled = model.partial_fit_transform(rows[part])  # imputed first, then learned from
    error = standardized_rmse(filled, truth[part], observed[part])
    label = f"{begin} to {begin + 100}"
    print(f"{label:13s}{error:10.3f}{model.recent_error_:16.3f}   {model.last_update_.value}")
