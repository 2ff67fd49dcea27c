"""Classify rows by imputing their labels, which are further columns of the table.

The labels are appended as one column per class, and are missing where they are not known. Rows
without a label then contribute as well, and measurements may be missing too.
"""

import sys
from warnings import simplefilter

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from hirank import Imputer
from hirank.datasets import uniform_missing

# Others get standardized columns, and Ridge(): they are worse without (docs/applications.md).
simplefilter("ignore", ConvergenceWarning)  # of 30 rounds
QUICK = "--quick" in sys.argv
RATES, DRAWS = ([0.6], [0]) if QUICK else ([0, 0.2, 0.4, 0.6], [0, 1, 2])
IMPUTERS = {
    "column mean": SimpleImputer(),
    "k nearest neighbors": KNNImputer(),
    "iterative ridge": IterativeImputer(Ridge(), max_iter=30, tol=1e-2, random_state=0),
}
CLASSIFIERS = {"logistic": LogisticRegression(), "k-NN": KNeighborsClassifier()}
data, classes = load_wine(return_X_y=True)


def score_classes(X, labels, labeled):
    """Yield the name of each method, and its score of each class for each row."""
    scaled = StandardScaler().fit_transform(X)  # hirank scales by itself
    for name, imputer in IMPUTERS.items():
        filled = imputer.fit_transform(scaled)
        for kind, classifier in CLASSIFIERS.items():
            fitted = classifier.fit(filled[labeled], classes[labeled])
            yield f"{name}, {kind}", fitted.predict_proba(filled)
    yield "hirank", Imputer(random_state=0).fit_transform(np.hstack([X, labels]))[:, -3:]


errors = {}  # for each method, rates x draws
for i, rate in enumerate(RATES):
    for j, draw in enumerate(DRAWS):
        observed = uniform_missing(data.shape, rate, keep_one=True, random_state=draw)
        rows = np.arange(len(data))
        labeled, test = train_test_split(rows, train_size=30, stratify=classes, random_state=draw)
        labels = np.full((len(data), 3), np.nan)
        labels[labeled] = np.eye(3)[classes[labeled]]
        for name, scores in score_classes(np.where(observed, data, np.nan), labels, labeled):
            wrong = np.mean(scores[test].argmax(axis=1) != classes[test])
            errors.setdefault(name, np.empty((len(RATES), len(DRAWS))))[i, j] = wrong

print("178 wines, 30 of them with their class. Share of the others that are classified wrongly:")
print(f"  {'missing measurements':30s}" + "".join(f"{rate:7.0%}" for rate in RATES))
for name, wrong in errors.items():
    print(f"  {name:30s}" + "".join(f"{mean:7.3f}" for mean in wrong.mean(axis=1)))

figure = Figure(figsize=(10, 4), layout="constrained")
lines, *images = figure.subplot_mosaic("ab;ac", width_ratios=[1.1, 1]).values()
for number, (name, wrong) in enumerate(errors.items()):
    line = "o--" if "k-NN" in name else "o-"
    lines.plot(RATES, wrong.mean(axis=1), line, color=f"C{number // 2}", label=name)
lines.set(xlabel="rate of missing measurements", ylabel="wines classified wrongly", xticks=RATES)
lines.legend(fontsize="small")
cmap = colormaps["viridis"].with_extremes(bad="lightgray")
tables = {"given: 30 labels": labels, f"imputed by hirank, {RATES[-1]:.0%} missing": scores}
for ax, (title, table) in zip(images, tables.items(), strict=True):
    image = ax.imshow(table.T, cmap=cmap, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set(title=title, yticks=range(3), ylabel="class", xlabel="wines, in order of class")
figure.colorbar(image, ax=images, label="gray: missing")
figure.savefig("classification.png", dpi=100)
