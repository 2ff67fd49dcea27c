"""Impute gaps in time series, from other series and from neighbors in time."""

import numpy as np

from hirank import Imputer
from hirank.datasets import missing_gaps
from hirank.metrics import standardized_rmse

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 20, 300))  # times need not be evenly spaced
steps = rng.normal(size=(300, 2)).cumsum(axis=0)  # two causes that change slowly
truth = np.column_stack([steps, steps.sum(axis=1), np.tanh(steps / 5)]) + 0.05 * rng.normal(
    size=(300, 5)
)
observed = missing_gaps(truth.shape, 0.2, gaps=4, random_state=0)
X = np.column_stack([t, np.where(observed, truth, np.nan)])

lines = np.column_stack(
    [np.interp(t, t[o], x[o]) for x, o in zip(truth.T, observed.T, strict=True)]
)
print(f"linear interpolation  {standardized_rmse(lines, truth, observed):.3f}")
for name, time in {"without the times": None, "with the times": 0}.items():
    filled = Imputer(time=time, n_init=1, random_state=0).fit_transform(X)[:, 1:]
    print(f"{name:22s}{standardized_rmse(filled, truth, observed):.3f}")

filled = Imputer(time=0, max_gap=10, n_init=1, max_time=5, random_state=0).fit_transform(X)
print(f"entries in gaps of more than 10 rows, which stay missing: {np.isnan(filled).sum()}")
