"""What the constructor arguments of an estimator mean: checked, and in terms of the solvers."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hirank._typing import Array, BoolArray
from hirank.core.scaling import SCALES
from hirank.kernels import RBF, Kernel, Poly
from hirank.optim.path import BANDWIDTHS, LAST_BETA, Stage, default_path

NEWTON_BETA = 1e-3
"""The paper's ridge for the RBF kernel."""
AUTO_LIMIT = 400
"""Most components that the automatic rule takes."""


def check_parameters(model: Any) -> None:
    """Raise if an argument of KFMC is wrong, and say what to give instead."""
    check_common(model, kernels=("auto", "rbf", "poly"), bandwidths=("auto", "path"))
    check_number("tol", model.tol, least=0)
    check_choice("solver", model.solver, ("lbfgs", "newton"))
    check_count("max_iter", model.max_iter)
    check_flag("mix", model.mix)
    if model.n_starts != "auto":
        check_count("n_starts (if not 'auto')", model.n_starts)
    if model.max_time is not None:
        check_number("max_time", model.max_time, above=0)
    if model.max_gap is not None:
        check_count("max_gap", model.max_gap)
        if model.order is None:
            raise ValueError("max_gap needs ordered rows: give order='time' or a time column.")
    if model.solver == "newton" and (model.n_starts not in ("auto", 1) or model.max_time):
        raise ValueError("n_starts and max_time need solver='lbfgs'.")
    if model.solver == "newton" and model.order is not None:
        raise ValueError("order needs solver='lbfgs': the paper's algorithm knows no time.")


def check_common(
    model: Any,
    kernels: tuple[str, ...] = ("rbf", "poly"),
    bandwidths: tuple[str, ...] = ("path",),
) -> None:
    """Raise if an argument that all estimators have is wrong."""
    if model.n_components != "auto":
        check_count("n_components (if not 'auto')", model.n_components)
    if not isinstance(model.kernel, Kernel):
        check_choice("kernel (if not a Kernel object)", model.kernel, kernels)
    if model.bandwidth not in bandwidths:
        check_number(
            f"bandwidth (if not {' or '.join(map(repr, bandwidths))})", model.bandwidth, above=0
        )
    if model.beta is not None:
        check_number("beta", model.beta, above=0)
    check_number("alpha", model.alpha, least=0)
    kernel_of(model)  # checks degree and offset


def check_scale(value: Any) -> None:
    """Raise if `value` is no way to scale."""
    if not isinstance(value, bool | np.bool_):
        check_choice("scale (if not True or False)", value, SCALES)


def kernel_of(model: Any) -> Kernel:
    """The kernel, its bandwidth yet to be settled."""
    if isinstance(model.kernel, Kernel):
        return model.kernel
    poly = Poly(model.degree, model.offset)  # checked even if it is not used
    return poly if model.kernel == "poly" else RBF()


def stages_of(model: Any) -> tuple[Stage, ...]:
    """The path that the solver walks."""
    path = isinstance(model.bandwidth, str)
    if model.solver == "newton":
        beta = NEWTON_BETA if model.beta is None else model.beta
        return (Stage(1.0 if path else float(model.bandwidth), beta),)
    bandwidths = BANDWIDTHS if path else (float(model.bandwidth),) * len(BANDWIDTHS)
    return default_path(bandwidths, LAST_BETA if model.beta is None else model.beta)


def components_of(model: Any, n: int) -> int:
    """Points in the dictionary for n samples."""
    if model.n_components == "auto":
        return max(1, min(n, AUTO_LIMIT, round(3.8 * n**0.6)))
    r = int(model.n_components)
    if r > n:
        raise ValueError(
            f"n_components={r} is more than the samples that can be used (n_samples={n}). "
            f"Use at most {n}, or n_components='auto'."
        )
    return r


def check_missing_values(value: Any) -> None:
    """Raise if `value` can't stand for a missing entry."""
    if not isinstance(value, Real):
        raise ValueError(
            f"missing_values must be a number or NaN; got {value!r}. "
            "None and nulls of data frames count as NaN."
        )


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise if `value` is none of the choices."""
    choices = sorted(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None
) -> None:
    """Raise if `value` is not a finite number in range."""
    fine = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if fine and (above is None or value > above) and (least is None or value >= least):
        return
    limit = f" above {above:g}" if above is not None else f" of at least {least:g}"
    raise ValueError(f"{name} must be a number{limit}; got {value!r}.")


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Raise if `value` is not a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise if `value` is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def generator(random_state: Any) -> np.random.Generator:
    """A generator seeded as scikit-learn's conventions for `random_state` have it."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def is_missing(X: Array, missing_values: float) -> BoolArray:
    """Which entries of X are NaN or equal to `missing_values`."""
    missing = np.isnan(X)
    if not np.isnan(missing_values):
        missing |= X.dtype.type(missing_values) == X
    return missing
