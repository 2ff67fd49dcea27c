"""Cluster rows that lie on several subspaces, with missing values.

Sparse subspace clustering (SSC) expresses each row by few others. Missing values are imputed
first, and a table that is imputed badly has lost its subspaces. k-means is no alternative: all
clusters have the same center.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from others import IMPUTERS
from sklearn.cluster import KMeans

from hirank import Imputer
from hirank.cluster import SSC
from hirank.datasets import uniform_missing
from hirank.metrics import clustering_error

K, M = 5, 30  # subspaces and columns; there are N rows on each subspace
N, RATES = (30, [0.5]) if "--quick" in sys.argv else (40, [0.3, 0.5, 0.6])
rng = np.random.default_rng(0)
truth = (rng.normal(size=(K, N, 3)) @ rng.normal(size=(K, 3, M))).reshape(K * N, M)
labels = np.repeat(np.arange(K), N)
k_means = KMeans(K, n_init=10, random_state=0).fit_predict(truth)

print(f"Share of {K * N} rows in the wrong one of {K} clusters, {RATES} of the values missing:")
print(f"  {'k-means, nothing missing':32s}{clustering_error(labels, k_means):7.3f}")
figure = Figure(figsize=(11.5, 3.3), layout="constrained")
lines, *images = figure.subplots(1, 5, width_ratios=[1.5, 1, 1, 1, 1])
methods = {**IMPUTERS, "hirank": Imputer(random_state=0)}
for ax, (name, imputer) in zip(images, methods.items(), strict=True):
    errors = []
    for rate in RATES:
        observed = uniform_missing(truth.shape, rate, keep_one=True, random_state=0)
        ssc = SSC(K, affine=False, completer=imputer, random_state=0)
        errors.append(clustering_error(labels, ssc.fit_predict(np.where(observed, truth, np.nan))))
        if rate == 0.5:
            ax.imshow(ssc.affinity_matrix_ / ssc.affinity_matrix_.max(), "gray_r", vmax=0.2)
            ax.set(xticks=[], yticks=[], title=name, xlabel=f"{errors[-1]:.1%} of rows wrong")
    lines.plot(RATES, errors, "o-", label=name)
    print(f"  {f'{name}, then SSC':32s}" + "".join(f"{error:7.3f}" for error in errors))
lines.set(xlabel="missing rate", ylabel="share of rows in the wrong cluster", ylim=(-0.02, 0.9))
lines.legend(fontsize="small", loc="upper left")
figure.suptitle("Right: which rows express each other when half of the values are missing")
figure.savefig("clustering.png", dpi=100)
