"""What the constructor arguments of an estimator mean: checked, and in terms of the solvers."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from hirank.kernels import RBF, Array, Kernel, Poly
from hirank.solvers.path import BANDWIDTHS, LAST_BETA, Stage, default_path

NEWTON_BETA = 1e-3
"""The paper's ridge for the RBF kernel."""
AUTO_LIMIT = 400
"""Most components that the automatic rule takes."""


def check_parameters(model: Any) -> None:
    """Raise if an argument of KFMC is wrong, and say what to give instead."""
    check_common(model)
    check_number("tol", model.tol, least=0)
    check_choice("solver", model.solver, ("lbfgs", "newton"))
    check_count("max_iter", model.max_iter)


def check_common(model: Any) -> None:
    """Raise if an argument that all estimators have is wrong."""
    if model.n_components != "auto":
        check_count("n_components (if not 'auto')", model.n_components)
    if not isinstance(model.kernel, Kernel):
        check_choice("kernel (if not a Kernel object)", model.kernel, ("rbf", "poly"))
    if model.bandwidth != "path":
        check_number("bandwidth (if not 'path')", model.bandwidth, above=0)
    if model.beta is not None:
        check_number("beta", model.beta, above=0)
    check_number("alpha", model.alpha, least=0)
    kernel_of(model)  # checks degree and offset


def kernel_of(model: Any) -> Kernel:
    """The kernel, its bandwidth yet to be settled."""
    if isinstance(model.kernel, Kernel):
        return model.kernel
    return RBF() if model.kernel == "rbf" else Poly(model.degree, model.offset)


def stages_of(model: Any) -> tuple[Stage, ...]:
    """The path that the solver walks."""
    path = model.bandwidth == "path"
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


def is_missing(X: Array, missing_values: float) -> NDArray[np.bool_]:
    """Which entries of X are NaN or equal to `missing_values`."""
    missing = np.isnan(X)
    if not np.isnan(missing_values):
        missing |= X.dtype.type(missing_values) == X
    return missing
