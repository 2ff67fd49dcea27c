"""Ways to scale features, on clean, heavy-tailed, skewed and broken tables.

Imputed values are scored in standard deviations of the true values: root mean square (RMSE) and
median absolute error (MAE). Gross outliers are put on observed entries only, so that scores are
those of all other entries. Maps that were not adopted are only here; `Scaling.measure` has the
others.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import PowerTransformer

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report
from real import DATA, air_quality

from hirank import KFMC
from hirank.baselines import LRF
from hirank.core.scaling import Scaling
from hirank.datasets import polynomial_manifolds, uniform_missing

Map = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
"""To scaled units and back, n x m."""
ROWS = 250


def surface(seed: int) -> np.ndarray:
    """A curved surface, 20 features of mean 0 and standard deviation 1."""
    X = polynomial_manifolds(ROWS, 20, latent=2, degree=3, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def doubled(seed: int) -> np.ndarray:
    """A constant, an almost constant feature, and duplicates of half of the features."""
    X, rng = surface(seed), np.random.default_rng(seed)
    copies = X[:, :10] * 3 + 1e-3 * rng.standard_normal((ROWS, 10))
    rare = np.where(rng.random(ROWS) < 0.02, 5.0, 1.0)
    return np.column_stack([X, copies, np.full(ROWS, 7.0), rare])


def every(X: np.ndarray, rows: int = ROWS) -> np.ndarray:
    """Evenly spaced rows, features that vary."""
    X = X[np.linspace(0, len(X) - 1, min(rows, len(X))).astype(int)]
    return X[:, X.std(axis=0) > 0]


TABLES: dict[str, Callable[[int], np.ndarray]] = {
    "surface": surface,
    "outliers": surface,
    "lognormal": lambda seed: np.exp(2 * surface(seed)),
    "counts": lambda seed: np.random.default_rng(seed).poisson(np.exp(1 + surface(seed))) * 1.0,
    "doubled": doubled,
    "magnitudes": lambda seed: surface(seed) * np.geomspace(1e-6, 1e9, 20),
    "air quality": lambda seed: every(air_quality()),
    "gas drift": lambda seed: every(np.loadtxt(DATA / "gas_drift10.txt")),
    "white wine": lambda seed: every(
        np.genfromtxt(DATA / "wine_white.csv", delimiter=";", skip_header=1)[::4], 400
    ),
    "breast cancer": lambda seed: every(load_breast_cancer().data),
    "wine": lambda seed: every(load_wine().data),
    "diabetes": lambda seed: every(load_diabetes().data),
}


def spoiled(name: str, X: np.ndarray, seed: int) -> np.ndarray:
    """What is given of a table: with gross errors in 1 % of the entries if it is meant to."""
    if name != "outliers":
        return X
    rng = np.random.default_rng(seed + 7)
    wrong = rng.random(X.shape) < 0.01
    return np.where(wrong, 1e6 * rng.standard_normal(X.shape), X)


def affine(incomplete: np.ndarray, center: np.ndarray, spread: np.ndarray) -> Map:
    spread = np.where(
        spread > 0,
        spread,
        np.where(np.nanstd(incomplete, axis=0) > 0, np.nanstd(incomplete, axis=0), 1),
    )
    return (lambda X: (X - center) / spread), (lambda Z: Z * spread + center)


def iqr(incomplete: np.ndarray) -> Map:
    low, mid, high = np.nanpercentile(incomplete, [25, 50, 75], axis=0)
    return affine(incomplete, mid, (high - low) / 1.349)


def winsorized(incomplete: np.ndarray) -> Map:
    """Mean and standard deviation of values clipped at 3 robust ones; the values stay."""
    forward, backward = iqr(incomplete)
    cut = backward(np.clip(forward(incomplete), -3, 3))
    return affine(incomplete, np.nanmean(cut, axis=0), np.nanstd(cut, axis=0))


def tails(knee: float, stretch: float, incomplete: np.ndarray) -> Map:
    """Linear up to a knee, logarithmic beyond it."""
    forward, backward = winsorized(incomplete)

    def compress(X: np.ndarray) -> np.ndarray:
        Z = forward(X)
        over = np.maximum(np.abs(Z) - knee, 0)
        return np.clip(Z, -knee, knee) + np.sign(Z) * stretch * np.log1p(over / stretch)

    def straight(Z: np.ndarray) -> np.ndarray:
        over = np.maximum(np.abs(Z) - knee, 0)
        with np.errstate(over="ignore"):
            return backward(
                np.clip(Z, -knee, knee) + np.sign(Z) * stretch * np.expm1(over / stretch)
            )

    return compress, straight


def asinh(incomplete: np.ndarray) -> Map:
    forward, backward = winsorized(incomplete)
    return (lambda X: np.arcsinh(forward(X))), (lambda Z: backward(np.sinh(Z)))


def normal(incomplete: np.ndarray) -> Map:
    """Quantiles to those of a normal distribution, by a monotone interpolation; linear tails."""
    maps = []
    for column in incomplete.T:
        known = column[~np.isnan(column)]
        value, count = np.unique(known, return_counts=True)
        z = ndtri((np.cumsum(count) - count / 2) / len(known))
        if len(value) > 60:  # smooth
            pick = np.unique(np.linspace(0, len(value) - 1, 60).astype(int))
            value, z = value[pick], z[pick]
        if len(value) < 2:
            value, z = np.array([value[0], value[0] + 1]), np.array([0.0, 1.0])
        a, b = (z[-1] - z[0]) / (value[-1] - value[0]), 1.0
        reach = 10 * (value[-1] - value[0])
        value = np.concatenate([[value[0] - reach], value, [value[-1] + reach]])
        z = np.concatenate([[z[0] - reach * a * b], z, [z[-1] + reach * a * b]])
        maps.append((PchipInterpolator(value, z), PchipInterpolator(z, value), value, z))

    def forward(X: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [f(np.clip(x, v[0], v[-1])) for x, (f, _, v, _) in zip(X.T, maps, strict=True)]
        )

    def backward(Z: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [g(np.clip(z, t[0], t[-1])) for z, (_, g, _, t) in zip(Z.T, maps, strict=True)]
        )

    return forward, backward


def yeo_johnson(incomplete: np.ndarray) -> Map:
    scale, back = iqr(incomplete)
    power = PowerTransformer().fit(scale(incomplete))
    return (lambda X: power.transform(scale(X))), (lambda Z: back(power.inverse_transform(Z)))


def built_in(scale: str, incomplete: np.ndarray) -> Map:
    """Scale as the estimators do; outliers count as missing."""
    observed = ~np.isnan(incomplete)
    scaling = Scaling.measure(np.where(observed, incomplete, 0), observed, scale=scale)
    v = scaling.varying

    def forward(X: np.ndarray) -> np.ndarray:
        Z = np.zeros_like(X)
        Z[:, v] = np.where(scaling.inliers(X), scaling.forward(X), np.nan)
        return Z

    return forward, lambda Z: scaling.backward(Z[:, v])


SCALES: dict[str, Callable[[np.ndarray], Map]] = {
    "standard": lambda incomplete: affine(
        incomplete, np.nanmean(incomplete, axis=0), np.nanstd(incomplete, axis=0)
    ),
    "IQR": iqr,
    "winsorized": winsorized,
    "tails 3": partial(tails, 3.0, 1.0),
    "tails 3/.5": partial(tails, 3.0, 0.5),
    "tails 1": partial(tails, 1.0, 1.0),
    "asinh": asinh,
    "normal": normal,
    "yeo-johnson": yeo_johnson,
    "auto": partial(built_in, "auto"),
    "robust": partial(built_in, "robust"),
}
METHODS: dict[str, Callable[[int], object]] = {
    "LRF": lambda seed: LRF(scale=False, random_state=seed, max_iter=60),
    "KFMC": lambda seed: KFMC(80, scale=False, random_state=seed, max_iter=60),
}


def rows(
    tables: list[str], scales: list[str], methods: list[str], missing: list[float], seeds: int
) -> Iterator[dict]:
    for method in methods:
        for name in tables:
            for part in missing:
                row: dict = {"method": method, "data": name, "missing": part}
                scores: dict[str, list] = {scale: [] for scale in scales}
                for seed in range(seeds):
                    truth = TABLES[name](seed)
                    unit = np.where(truth.std(axis=0) > 0, truth.std(axis=0), 1)
                    observed = uniform_missing(truth.shape, part, random_state=seed)
                    incomplete = np.where(observed, spoiled(name, truth, seed), np.nan)
                    for scale in scales:
                        filled = complete(
                            METHODS[method](seed), SCALES[scale](incomplete), incomplete
                        )
                        error = np.abs((filled - truth) / unit)[~observed]
                        scores[scale].append([np.sqrt(np.mean(error**2)), np.median(error)])
                for scale in scales:
                    score = np.median(scores[scale], axis=0)
                    row[scale] = f"{score[0]:.3g}/{score[1]:.3g}"
                yield row


def complete(model: object, scale: Map, incomplete: np.ndarray) -> np.ndarray:
    forward, backward = scale
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return backward(model.fit_transform(forward(incomplete)))
        except (ValueError, FloatingPointError):
            return np.full(incomplete.shape, np.nan)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--scales", nargs="+", default=list(SCALES), choices=list(SCALES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--missing", nargs="+", type=float, default=[0.2, 0.5])
    parser.add_argument("--seeds", type=int, default=2)
    known, rest = parser.parse_known_args()
    report(rows(known.tables, known.scales, known.methods, known.missing, known.seeds), rest)
