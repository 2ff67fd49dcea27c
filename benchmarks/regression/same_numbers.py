"""Compare what two versions of hirank compute on fixed seeds, array by array.

    git worktree add ../before REVISION
    PYTHONPATH=../before/src python benchmarks/regression/same_numbers.py before.npz
    python benchmarks/regression/same_numbers.py after.npz
    python benchmarks/regression/same_numbers.py --compare before.npz after.npz

Version 0.1 (revision cebc32c) has other names, which are translated. `--only PREFIX` computes a
part: default, one, poly, newton, fixed, features, window, alg2, baseline, ssc.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import hirank
from hirank import baselines
from hirank.cluster import SSC
from hirank.datasets import polynomial_manifolds, uniform_missing

IS_0_1 = not hasattr(hirank, "Imputer")
OLD_NAMES = {"n_init": "n_starts", "n_warmup": "n_start", "drift_detection": "self_score"}
OLD_VALUES = {"refit": "react", "monitor": "watch"}


def make_table(n: int, m: int, k: int, missing: float, seed: int, noise: float = 0.0) -> np.ndarray:
    X = polynomial_manifolds(n, m, latent=2, degree=2, manifolds=k, random_state=seed)
    if noise:
        X = X + noise * np.random.default_rng(seed).normal(size=X.shape) * X.std(0)
    return np.where(uniform_missing(X.shape, missing, random_state=seed + 1), X, np.nan)


def translate(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in the names of 0.1."""
    if settings.pop("time", None):
        settings["order"] = "time"
    return {OLD_NAMES.get(k, k): OLD_VALUES.get(str(v), v) for k, v in settings.items()}


def make_imputer(**settings: Any) -> Any:
    return hirank.KFMC(**translate(settings)) if IS_0_1 else hirank.Imputer(**settings)


def make_kfmc(*size: int, **settings: Any) -> Any:
    if IS_0_1:
        settings = {"kernel": "rbf", "bandwidth": "path", "mix": False, **settings}
    return hirank.KFMC(*size, **settings)


def make_window(*size: int, **settings: Any) -> Any:
    if IS_0_1:
        return hirank.OnlineKFMC(*size, **translate(settings))
    return hirank.OnlineImputer(*size, **settings)


def make_algorithm2(*size: int, **settings: Any) -> Any:
    if IS_0_1:
        return hirank.OnlineKFMC(*size, mode="paper", **translate(settings))
    return hirank.OnlineKFMC(*size, **settings)


def fit_table(model: Any, X: np.ndarray) -> dict[str, Any]:
    found = {
        "fit": model.fit_transform(X),
        "transform": model.transform(X),
        "n_iter": model.n_iter_,
    }
    if hasattr(model, "dictionary_"):
        found["objective"] = model.objective_
    try:
        found["lower"], found["upper"] = model.interval(X)
        found["sample"] = model.sample(X, n_draws=2, random_state=0)
        found["error"] = model.summary()["error"]
    except (AttributeError, ValueError):  # one dictionary, or too few entries to hold out
        pass
    return found


def run_stream(make: Callable[[], Any], X: np.ndarray) -> dict[str, Any]:
    model = make()
    arrived = [model.partial_fit_transform(X[i : i + 15]) for i in range(0, len(X), 15)]
    return {
        "arrival": np.vstack(arrived),
        "transform": model.transform(X[:40]),
        "recent": model.recent_error_,
        "dictionary": model.dictionary_,
        "fit_transform": make().fit_transform(X),
    }


def run_baseline(kind: type, table: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    names = kind._get_param_names()
    settings: dict[str, Any] = {"random_state": 0} if "random_state" in names else {}
    settings |= {name: 100 for name in ("n_start", "n_warmup") if name in names}
    X = table[:60] if kind.__name__ in ("GroupSparse", "SFMC") else table
    model = kind(**settings)
    found = {"fit": model.fit_transform(X), "transform": model.transform(X[:20])}
    found |= {"objective": model.objective_, "n_iter": model.n_iter_}
    if hasattr(kind, "partial_fit_transform"):
        model = kind(**settings).partial_fit(rows[:100])
        parts = [model.partial_fit_transform(rows[i : i + 50]) for i in range(100, 300, 50)]
        found["arrival"] = np.vstack(parts)
    return found


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    curved, noisy = make_table(60, 12, 2, 0.3, 0), make_table(80, 8, 1, 0.2, 3, noise=0.3)
    rows = make_table(300, 8, 1, 0.3, 5)
    rows[np.isnan(rows).all(1), 0] = 0.0
    waves = np.column_stack([np.sin(np.arange(200) / w) for w in (5.0, 8.0, 13.0, 21.0)])
    waves = waves + 0.05 * np.random.default_rng(1).normal(size=waves.shape)
    waves[~uniform_missing(waves.shape, 0.3, random_state=2)] = np.nan
    counts, quick = np.round(np.abs(noisy) * 3), {"random_state": 0, "max_iter": 40}
    bounded = {"bounds": (0, None), "integers": "auto", "random_state": 1, "max_iter": 40}
    stream = {"random_state": 0, "n_warmup": 60}
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "default.curved": lambda: fit_table(make_imputer(random_state=0), curved),
        "default.noisy": lambda: fit_table(make_imputer(**quick), noisy),
        "default.bounds": lambda: fit_table(make_imputer(**bounded), counts),
        "default.time": lambda: fit_table(make_imputer(time=True, max_gap=4, **quick), waves),
        "default.robust": lambda: fit_table(make_imputer(n_init=1, scale="robust", **quick), noisy),
        "default.tiny": lambda: fit_table(make_imputer(random_state=0), curved[:6, :6]),
        "one": lambda: fit_table(make_kfmc(40, random_state=0), curved),
        "one.bounds": lambda: fit_table(make_kfmc(30, bounds=(-1, 1), random_state=0), curved),
        "poly": lambda: fit_table(make_kfmc(40, kernel="poly", random_state=0), curved),
        "newton": lambda: fit_table(make_kfmc(40, solver="newton", random_state=0), curved),
        "fixed": lambda: fit_table(
            make_kfmc(40, bandwidth=2.0, scale=False, random_state=0), curved
        ),
        "features": lambda: {"new": complete_features(curved)},
        "window": lambda: run_stream(
            lambda: make_window(window=150, batch_size=20, **stream), rows
        ),
        "window.poly": lambda: run_stream(
            lambda: make_window(30, kernel="poly", window=100, drift_detection="off", **stream),
            rows,
        ),
        "alg2": lambda: run_stream(lambda: make_algorithm2(30, **stream), rows),
        "alg2.batch": lambda: run_stream(
            lambda: make_algorithm2(30, batch_size=5, kernel="poly", **stream), rows
        ),
        "ssc": lambda: {"labels": SSC(2, random_state=0).fit_predict(np.nan_to_num(curved))},
    }
    for name in baselines.__all__:
        kind = getattr(baselines, name)
        found[f"baseline.{name}"] = lambda kind=kind: run_baseline(kind, curved, rows)
    return found


def complete_features(X: np.ndarray) -> np.ndarray:
    model = make_kfmc(40, random_state=0)
    filled = model.fit_transform(X)
    missing = np.arange(len(X))[:, None] % 3 == 0
    return model.complete_features(filled, np.where(missing, np.nan, filled[:, :2] ** 2))


def compare(before: str, after: str) -> None:
    one, two = np.load(before), np.load(after)
    names = [name for name in one.files if name in two.files]
    different = [name for name in names if not np.array_equal(one[name], two[name], equal_nan=True)]
    for name in different:
        size = np.nanmax(np.abs(one[name]))
        print(f"{name}: {np.nanmax(np.abs(one[name] - two[name])) / size:.2g} (relative)")
    missing = sorted(set(one.files) ^ set(two.files))
    print(f"{len(names)} arrays, {len(different)} differ; in one file only: {missing or 'none'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--compare", nargs=2, metavar="NPZ")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*arguments.compare)
    else:
        warnings.simplefilter("ignore")
        arrays = {}
        for name, run in cases().items():
            if name.startswith(arguments.only):
                arrays |= {f"{name}.{part}": np.array(value) for part, value in run().items()}
                print(name, flush=True)
        np.savez(arguments.output, **arrays)
