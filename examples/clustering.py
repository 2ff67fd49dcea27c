"""Cluster rows that lie on several subspaces, with missing values.

Sparse subspace clustering (SSC) expresses each row by few others. Missing values are imputed
first, and a table that is imputed badly has lost its subspaces. k-means is no alternative: all
clusters have the same center.
"""

import sys
from warnings import simplefilter

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge

from hirank import Imputer
from hirank.cluster import SSC
from hirank.datasets import uniform_missing
from hirank.metrics import clustering_error

# Ridge() instead of the default BayesianRidge(), which is worse (docs/applications.md).
simplefilter("ignore", ConvergenceWarning)  # of 30 rounds
K, M = 5, 30  # subspaces and columns; there are N rows on each subspace
N, RATES = (30, [0.5]) if "--quick" in sys.argv else (40, [0.3, 0.5, 0.6])
METHODS = {
    "column mean": SimpleImputer(),
    "k nearest neighbors": KNNImputer(),
    "iterative ridge": IterativeImputer(Ridge(), max_iter=30, tol=1e-2, random_state=0),
    "hirank": Imputer(random_state=0),
}
rng = np.random.default_rng(0)
truth = (rng.normal(size=(K, N, 3)) @ rng.normal(size=(K, 3, M))).reshape(K * N, M)
labels = np.repeat(np.arange(K), N)
k_means = KMeans(K, n_init=10, random_state=0).fit_predict(truth)

print(f"Share of {K * N} rows in the wrong one of {K} clusters:")
print(f"  {'missing':32s}" + "".join(f"{rate:7.0%}" for rate in RATES))
print(f"  {'k-means, nothing missing':32s}{clustering_error(labels, k_means):7.3f}")
errors, graphs = {}, {}
for name, method in METHODS.items():
    for rate in RATES:
        observed = uniform_missing(truth.shape, rate, keep_one=True, random_state=0)
        model = SSC(K, affine=False, completer=method, random_state=0)
        model.fit(np.where(observed, truth, np.nan))
        errors[name, rate] = clustering_error(labels, model.labels_)
        graphs[name, rate] = model.affinity_matrix_
    print(f"  {f'{name}, then SSC':32s}" + "".join(f"{errors[name, r]:7.3f}" for r in RATES))

figure = Figure(figsize=(11.5, 3.3), layout="constrained")
lines, *images = figure.subplots(1, 5, width_ratios=[1.5, 1, 1, 1, 1])
for name, ax in zip(METHODS, images, strict=True):
    lines.plot(RATES, [errors[name, rate] for rate in RATES], "o-", label=name)
    graph = graphs[name, 0.5]
    ax.imshow(graph / graph.max(), cmap="gray_r", vmax=0.2, interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel=f"{errors[name, 0.5]:.1%} of rows wrong")
    ax.set_title(name, weight="bold" if name == "hirank" else "normal")
lines.set(
    ylabel="share of rows in the wrong cluster",
    xlabel="missing rate",
    xticks=RATES,
    ylim=(-0.02, 0.9),
)
lines.legend(fontsize="small", loc="upper left")
figure.suptitle("Right: which rows express each other when half of the values are missing")
figure.savefig("clustering.png", dpi=100)
