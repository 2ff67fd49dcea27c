"""The imputers: a table with NaN, in its own units, and a seed in; the filled table out.

All run with the defaults of their packages except where noted. Those whose result depends
on the units of the features get them standardized by what is observed, all in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

Impute = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Solver:
    impute: Impute
    package: str = "scikit-learn"  # whose version is noted
    module: str = "sklearn.impute"  # imported before the clock starts
    threads: int | None = 1  # None: as many as it likes


def standardized(impute: Impute) -> Impute:
    """With features of mean 0 and standard deviation 1 over their observed entries."""

    def wrapped(table: np.ndarray, seed: int) -> np.ndarray:
        mean, spread = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
        spread[spread <= 1e-12 * np.nanmax(np.abs(table), axis=0)] = (
            1  # one value, but for rounding
        )
        return impute((table - mean) / spread, seed) * spread + mean

    return wrapped


def hirank(table: np.ndarray, seed: int) -> np.ndarray:
    from hirank import Imputer

    return Imputer(random_state=seed).fit_transform(table)


def mean(table: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.impute import SimpleImputer

    return SimpleImputer().fit_transform(table)


def nearest(table: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.impute import KNNImputer

    return KNNImputer().fit_transform(table)


def ridge(table: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=seed).fit_transform(table)


def extra_trees(table: np.ndarray, seed: int) -> np.ndarray:
    """100 trees, ten rounds: the defaults of both."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    trees = ExtraTreesRegressor(n_jobs=1, random_state=seed)
    return IterativeImputer(trees, random_state=seed).fit_transform(table)


def soft_impute(table: np.ndarray, seed: int) -> np.ndarray:
    """hirank's own code of the method (Mazumder et al. 2010), which standardizes by itself."""
    from hirank.baselines import SoftImpute

    return SoftImpute(random_state=seed).fit_transform(table)


def cmfrec(table: np.ndarray, seed: int) -> np.ndarray:
    """Its documentation asks for tuning: 15 settings are compared on a tenth of the entries.

    Without row intercepts, as it recommends outside of recommender systems.
    """
    from cmfrec import CMF_imputer

    def impute(given: np.ndarray, k: int, weight: float) -> np.ndarray:
        model = CMF_imputer(
            k=k, lambda_=weight, user_bias=False, nthreads=1, verbose=False, random_state=seed
        )
        return model.fit_transform(given)

    held_out = hold_out(~np.isnan(table), np.random.default_rng(seed))
    seen = np.where(held_out, np.nan, table)
    ranks = sorted({min(k, min(table.shape) - 1) for k in (2, 5, 10, 20, 40)})
    settings = list(product(ranks, (0.1, 1.0, 10.0)))
    off = [np.mean((impute(seen, *setting) - table)[held_out] ** 2) for setting in settings]
    return impute(table, *settings[int(np.argmin(off))])


def hold_out(observed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a tenth of the observed entries, but never the last ones of a row or column."""
    held_out = observed & (rng.random(observed.shape) < 0.1)
    held_out &= (observed & ~held_out).any(axis=1, keepdims=True)
    return held_out & (observed & ~held_out).any(axis=0)


def gcimpute(table: np.ndarray, seed: int) -> np.ndarray:
    """The Gaussian copula, which sees ranks only; its low-rank form is meant for wider tables.

    Features with one observed value are filled with it, as its error message asks to leave them
    out. It selects the kinds of features itself, but it fails on those that it calls truncated
    (many equal values at an end, as in digits): they are declared ordinal.
    """
    from gcimpute.gaussian_copula import GaussianCopula

    if not hasattr(np, "round_"):  # gcimpute 0.0.4 was written for NumPy 1, which had both names
        np.round_ = np.round  # noqa: NPY003, NPY201
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    filled, varies = np.where(np.isnan(table), low, table), low < high
    given, model = table[:, varies], GaussianCopula(random_state=seed)
    kinds = np.asarray(model.get_vartype_indices(given))
    kinds[np.char.endswith(kinds, "truncated")] = "ordinal"
    places = {str(kind): np.flatnonzero(kinds == kind).tolist() for kind in np.unique(kinds)}
    filled[:, varies] = model.fit_transform(given, **places)
    return filled


def miceforest(table: np.ndarray, seed: int) -> np.ndarray:
    """Mean of five imputed tables, five rounds each, without mean matching.

    Selected with the truth of a few cells, seed 0: one table was 10 to 26 % worse (iris, 1R2RC),
    five with mean matching 1 and 11 % (iris only). Mean matching works with LightGBM 4.5, not with
    4.7.
    """
    import pandas as pd
    from miceforest import ImputationKernel

    frame = pd.DataFrame(table, columns=[f"f{i}" for i in range(table.shape[1])])
    kernel = ImputationKernel(frame, num_datasets=5, mean_match_candidates=0, random_state=seed)
    kernel.mice(5, num_threads=1)
    return np.mean([kernel.complete_data(number).to_numpy() for number in range(5)], axis=0)


SOLVERS: dict[str, Solver] = {
    "hirank": Solver(hirank, "hirank", "hirank", threads=None),
    "mean": Solver(mean),
    "k-NN": Solver(standardized(nearest)),
    "iterative ridge": Solver(standardized(ridge)),
    "soft-impute": Solver(soft_impute, "hirank", "hirank.baselines"),
    "cmfrec": Solver(standardized(cmfrec), "cmfrec", "cmfrec"),
    "gcimpute": Solver(gcimpute, "gcimpute", "gcimpute.gaussian_copula"),
    "miceforest": Solver(miceforest, "miceforest", "miceforest"),
    "iterative extra-trees": Solver(standardized(extra_trees), module="sklearn.ensemble"),
}
