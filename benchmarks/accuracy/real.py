"""Real tables: RMSE of standardized features over entries removed at random, 20 and 50 %."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import MAX_TIME, QUICK, report

from hirank import Imputer
from hirank.core.init import soft_impute
from hirank.datasets import uniform_missing
from reproduction.readers import load_mocap
from reproduction.readers.files import data_folder

DATA = data_folder()


def air_quality() -> np.ndarray:
    """Hours in which every sensor worked."""
    table = np.genfromtxt(DATA / "air_quality.csv", delimiter=",", skip_header=1)
    table = table[:, np.isfinite(table).any(axis=0)]
    return table[np.isfinite(table).all(axis=1) & (table != -200).all(axis=1)]


def mocap() -> np.ndarray:
    """CMU 56_06, every second frame, features that vary."""
    table = load_mocap(DATA / "cmu_mocap_56_06.mat").X
    return table[:, table.std(axis=0) > 0]


TABLES: dict[str, Callable[[], np.ndarray]] = {
    "air quality": air_quality,
    "chlorine": lambda: np.loadtxt(DATA / "chlorine.txt", delimiter=None),
    "oil flow": lambda: np.loadtxt(DATA / "oil_flow.txt"),
    "gas drift": lambda: np.loadtxt(DATA / "gas_drift10.txt"),
    "white wine": lambda: np.genfromtxt(DATA / "wine_white.csv", delimiter=";", skip_header=1),
    "digits": lambda: load_digits().data[:, load_digits().data.std(axis=0) > 0],
    "mocap": mocap,
}


def linear(incomplete: np.ndarray) -> np.ndarray:
    observed = ~np.isnan(incomplete)
    return soft_impute(np.where(observed, incomplete, 0), observed)


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": SimpleImputer().fit_transform,
    "soft-impute": linear,
    "k-NN": KNNImputer().fit_transform,
    "iterative ridge": IterativeImputer(random_state=0, tol=1e-2).fit_transform,
    "hirank": lambda X: Imputer(max_time=MAX_TIME, random_state=0).fit_transform(X),
}


def rows(tables: list[str], methods: list[str]) -> Iterator[dict]:
    for name in tables:
        try:
            truth = TABLES[name]()
        except OSError:
            print(f"{name}: not found in {DATA}; set HIRANK_DATA to the folder that has it.")
            continue
        truth = truth[:100] if QUICK else truth
        truth = truth[:, truth.std(axis=0) > 0]
        truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
        for missing in (0.2, 0.5):
            observed = uniform_missing(truth.shape, missing, random_state=0)
            incomplete = np.where(observed, truth, np.nan)
            row = {"data": name, "missing": missing}
            for method in methods:
                began = time.perf_counter()
                filled = METHODS[method](incomplete)
                seconds = time.perf_counter() - began
                row[method] = float(np.sqrt(np.mean((filled - truth)[~observed] ** 2)))
                row[f"{method} s"] = seconds
            yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    known, rest = parser.parse_known_args()
    report(rows(known.tables, known.methods), rest)
