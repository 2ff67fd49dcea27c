"""Impute gaps in time series, from other series and from neighbors in time."""

import numpy as np

from hirank import Imputer
from hirank.datasets import missing_gaps
from hirank.metrics import standardized_rmse

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 20, 200))  # times need not be evenly spaced
steps = np.sqrt(np.diff(t, prepend=0))[:, None]
shared = (steps * rng.normal(size=(200, 2))).cumsum(axis=0)  # two latent series
own = (steps * rng.normal(size=(200, 5))).cumsum(axis=0)  # what is particular to each series
truth = shared @ rng.normal(size=(2, 5)) + own
observed = missing_gaps(truth.shape, 0.2, gaps=4, random_state=0)
X = np.column_stack([t, np.where(observed, truth, np.nan)])

columns = zip(truth.T, observed.T, strict=True)
lines = np.column_stack([np.interp(t, t[seen], x[seen]) for x, seen in columns])
print("Error at the missing entries, in standard deviations:")
print(f"  linear interpolation  {standardized_rmse(lines, truth, observed):.3f}")
for name, time in {"without the times": None, "with the times": 0}.items():
    filled = Imputer(time=time, n_init=1, random_state=0).fit_transform(X)[:, 1:]
    print(f"  {name:22s}{standardized_rmse(filled, truth, observed):.3f}")

filled = Imputer(time=0, max_gap=8, max_time=1, random_state=0).fit_transform(X)
print(f"Entries in gaps of more than 8 rows, which stay missing: {np.isnan(filled).sum()}")
