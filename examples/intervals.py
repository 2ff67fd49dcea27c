"""Intervals for single values, and multiple imputation for a statistic."""

import numpy as np
from sklearn.datasets import load_wine

from hirank import Imputer
from hirank.datasets import uniform_missing

truth = load_wine().data
observed = uniform_missing(truth.shape, 0.3, random_state=0)
X = np.where(observed, truth, np.nan)
model = Imputer(n_init=2, random_state=0).fit(X)

for coverage in (0.5, 0.9):
    lower, upper = model.interval(X, coverage=coverage)
    inside = ((lower <= truth) & (truth <= upper))[~observed]
    print(f"{coverage:.0%} intervals contain {inside.mean():.1%} of the removed values.")

# The correlation of alcohol (0) and proline (12). Each drawn table gives another value; how much
# they vary shows what the missing entries leave unknown (Rubin's rules combine both parts).
draws = [np.corrcoef(table[:, [0, 12]].T)[0, 1] for table in model.sample(X, 10, random_state=0)]
within = np.mean([(1 - r**2) ** 2 / len(X) for r in draws])
between = (1 + 1 / len(draws)) * np.var(draws, ddof=1)
print(f"correlation {np.mean(draws):.3f}, standard error {np.sqrt(within + between):.3f}")
print(f"of the complete table: {np.corrcoef(truth[:, [0, 12]].T)[0, 1]:.3f}")
