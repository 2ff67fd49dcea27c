"""Classify rows by imputing their labels, which are further columns of the table.

The labels are appended as one column per class, and are missing where they are not known. Rows
without a label then contribute as well, and measurements may be missing too.
"""

import sys
from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure
from others import IMPUTERS
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from hirank import Imputer
from hirank.datasets import uniform_missing

RATES, DRAWS = ([0.6], [0]) if "--quick" in sys.argv else ([0, 0.2, 0.4, 0.6], [0, 1, 2])
CLASSIFIERS = {"logistic": LogisticRegression(), "k-NN": KNeighborsClassifier()}
data, classes = load_wine(return_X_y=True)


def classify(X, labeled):
    """Yield the name of each method, and its score of each class for each row."""
    scaled = StandardScaler().fit_transform(X)  # hirank scales by itself
    for name, imputer in IMPUTERS.items():
        filled = imputer.fit_transform(scaled)
        for kind, classifier in CLASSIFIERS.items():
            fitted = classifier.fit(filled[labeled], classes[labeled])
            yield f"{name}, {kind}", fitted.predict_proba(filled)
    labels = np.full((len(X), 3), np.nan)
    labels[labeled] = np.eye(3)[classes[labeled]]
    yield "hirank", Imputer(random_state=0).fit_transform(np.hstack([X, labels]))[:, -3:]


errors = defaultdict(list)  # for each method, of each draw of each rate
for rate in RATES:
    for draw in DRAWS:
        observed = uniform_missing(data.shape, rate, keep_one=True, random_state=draw)
        rows = np.arange(len(data))
        labeled, test = train_test_split(rows, train_size=30, stratify=classes, random_state=draw)
        for name, scores in classify(np.where(observed, data, np.nan), labeled):
            errors[name].append(np.mean(scores[test].argmax(axis=1) != classes[test]))

print("178 wines, 30 of them with their class. Share of the others that are classified wrongly,")
print(f"{RATES} of the measurements missing:")
figure = Figure(figsize=(7, 4), layout="constrained")
ax = figure.subplots()
for number, (name, wrong) in enumerate(errors.items()):
    means = np.reshape(wrong, (len(RATES), len(DRAWS))).mean(axis=1)
    print(f"  {name:30s}" + "".join(f"{mean:7.3f}" for mean in means))
    ax.plot(RATES, means, "o--" if "k-NN" in name else "o-", color=f"C{number // 2}", label=name)
ax.set(xlabel="rate of missing measurements", ylabel="wines classified wrongly", xticks=RATES)
ax.legend()
figure.savefig("classification.png", dpi=100)
