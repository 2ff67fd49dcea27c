"""Advice of hirank.theory.advise on tables of known structure and on real ones.

`expected` is what the structure of the table suits ("-" if it is not known): curved models, linear
ones, or none. `error` and `linear` are those that the advice states, at held-out entries; with
--truth, `true error` is that at the missing entries (root mean square, column mean = 1).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, MAX_TIME, QUICK, report, synthetic
from real import DATA, TABLES

from hirank import Imputer
from hirank.datasets import polynomial_manifolds
from hirank.theory import advise

LIMIT = {"max_time": MAX_TIME} if QUICK else {}
Table = tuple[np.ndarray, np.ndarray]


def at_random(truth: np.ndarray, missing: float, seed: int) -> Table:
    return truth, np.random.default_rng(seed + 1000).random(truth.shape) >= missing


def low_rank(noise: float, missing: float, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 30))
    return at_random(truth + noise * rng.standard_normal(truth.shape), missing, seed)


def pure_noise(seed: int) -> Table:
    return at_random(np.random.default_rng(seed).standard_normal((300, 20)), 0.3, seed)


def noisy_surface(noise: float, seed: int) -> Table:
    truth = polynomial_manifolds(400, 20, latent=2, degree=3, random_state=seed)
    truth /= truth.std(axis=0)
    truth += noise * np.random.default_rng(seed).standard_normal(truth.shape)
    return at_random(truth, 0.3, seed)


def sparse_rows(seed: int) -> Table:
    """Three curved surfaces; of every thirtieth sample only one entry is known."""
    truth, observed = synthetic("three curved surfaces", 0.3, seed)
    observed[::30] = False
    observed[::30, 0] = True
    return truth, observed


def twisted_cubic(removed: int, seed: int) -> Table:
    """Of the three entries of each sample, one or two are removed."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, 300)
    order = np.argsort(rng.random((300, 3)), axis=1)
    return np.column_stack([t, t**2, t**3]), order >= removed


def air_quality_as_it_is() -> Table:
    """9357 hours; sensors fail, some for long."""
    table = np.genfromtxt(DATA / "air_quality.csv", delimiter=",", skip_header=1)
    return table, np.isfinite(table) & (table != -200)


def cases() -> Iterator[tuple[str, str, Callable[[int], Table]]]:
    for missing in (0.3, 0.5):
        for case in CASES:
            yield f"{case} {missing:.0%}", "curved", lambda s, c=case, m=missing: synthetic(c, m, s)
    yield "rank 5, 30%", "linear", lambda s: low_rank(0.0, 0.3, s)
    yield "rank 5, 50%", "linear", lambda s: low_rank(0.0, 0.5, s)
    yield "rank 5, noise, 50%", "linear", lambda s: low_rank(0.5, 0.5, s)
    yield "surface, noise 0.1", "curved", lambda s: noisy_surface(0.1, s)
    yield "surface, noise 0.3", "-", lambda s: noisy_surface(0.3, s)
    yield "noise only", "none", pure_noise
    yield "ten samples of 1 entry", "curved", sparse_rows
    yield "cubic, 1 of 3 removed", "curved", lambda s: twisted_cubic(1, s)
    yield "cubic, 2 of 3 removed", "none", lambda s: twisted_cubic(2, s)
    yield "air quality as it is", "-", lambda _: air_quality_as_it_is()
    for name in ("air quality", "oil flow", "white wine", "chlorine", "gas drift"):
        for missing in (0.2, 0.5):
            yield (
                f"{name} {missing:.0%}",
                "-",
                lambda s, n=name, m=missing: at_random(TABLES[n](), m, s),
            )


def true_error(truth: np.ndarray, observed: np.ndarray) -> float:
    """Return the error at the missing entries, of at most 1000 rows, so that this ends."""
    rows = np.random.default_rng(0).permutation(len(truth))[:1000]
    rows = rows[observed[rows].any(axis=1)]
    truth, seen = truth[rows], observed[rows]
    if not np.isfinite(truth[~seen]).all():
        return np.nan  # the truth is not known
    known = np.where(seen, truth, np.nan)
    X = (truth - np.nanmean(known, axis=0)) / np.nanstd(known, axis=0)
    filled = Imputer(max_time=MAX_TIME, random_state=0).fit_transform(np.where(seen, X, np.nan))
    return float(np.linalg.norm((filled - X)[~seen]) / np.linalg.norm(X[~seen]))


def rows(seeds: int, with_truth: bool) -> Iterator[dict]:
    for name, expected, make in cases():
        for seed in range(seeds):
            try:
                truth, observed = make(seed)
            except OSError:
                print(f"{name}: not found in {DATA}; set HIRANK_DATA to the folder that has it.")
                break
            began = time.process_time()
            advice = advise(np.where(observed, truth, np.nan), **LIMIT, random_state=seed)
            row = {
                "case": name,
                "seed": seed,
                "expected": expected,
                "error": advice.error,
                "linear": advice.linear_error,
                "latent": advice.latent_dimension,
                "rank": advice.linear_rank,
                "features": advice.feature_rank,
                "sparse rows": len(advice.sparse_rows),
                "cpu s": time.process_time() - began,
            }
            if with_truth:
                row["true error"] = true_error(truth, observed)
            yield row


def dimensions(seeds: int) -> Iterator[dict]:
    """Estimated latent dimensions, smallest to largest over seeds, at 30 % missing."""
    for latent in (1,) if QUICK else (1, 2, 3, 5):
        for degree, manifolds, samples in ((3, 1, 100), (2, 1, 300), (2, 3, 100), (1, 10, 60)):
            for noise in (0.0, 0.1):
                found = []
                for seed in range(seeds):
                    shape = {"latent": latent, "degree": degree, "manifolds": manifolds}
                    truth = polynomial_manifolds(samples, 30, **shape, random_state=seed)
                    truth /= truth.std(axis=0)
                    truth += noise * np.random.default_rng(seed).standard_normal(truth.shape)
                    truth, observed = at_random(truth, 0.3, seed)
                    advice = advise(np.where(observed, truth, np.nan), **LIMIT, random_state=seed)
                    found.append(advice.latent_dimension or 0)
                yield {
                    "latent": latent,
                    "degree": degree,
                    "manifolds": manifolds,
                    "samples": samples * manifolds,
                    "noise": noise,
                    "median": float(np.median(found)),
                    "all": " ".join(map(str, sorted(found))),
                }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--truth", action="store_true", help="also fit in full and compare")
    parser.add_argument("--dimension", action="store_true", help="estimates of it instead")
    known, rest = parser.parse_known_args()
    table = dimensions(known.seeds) if known.dimension else rows(known.seeds, known.truth)
    report(table, rest)
