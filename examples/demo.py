"""``python examples/demo.py``: handwritten digits with holes, filled by hirank and by others."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from threadpoolctl import threadpool_limits

from hirank._typing import Array
from hirank.core.init import soft_impute
from hirank.core.scaling import Scaling
from hirank.datasets import uniform_missing
from hirank.estimators import KFMC
from hirank.metrics import missing_relative_error

MISSING = 0.4
Matrix = Array


def linear(holes: Matrix) -> Matrix:
    """Soft-impute on standardized features."""
    observed = ~np.isnan(holes)
    known = np.where(observed, holes, 0)
    scaling = Scaling.measure(known, observed, scale="standard")
    filled = soft_impute(scaling.forward(known), observed[:, scaling.varying])
    return np.where(observed, holes, scaling.backward(filled))


METHODS: dict[str, Callable[[Matrix], Matrix]] = {
    "column mean": SimpleImputer().fit_transform,
    "soft-impute (linear)": linear,
    "k nearest neighbors": KNNImputer().fit_transform,
    "iterative ridge": IterativeImputer(random_state=0, tol=1e-2).fit_transform,
    "hirank": KFMC(random_state=0).fit_transform,
}


def main(argv: list[str] | None = None) -> None:
    """Print a table of errors and times, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1797, help="how many of the 1797 to use")
    parser.add_argument("--picture", type=Path, default=Path("demo.png"), help="file to write")
    options = parser.parse_args(argv)
    truth = load_digits().data[: options.images]
    observed = uniform_missing(truth.shape, MISSING, random_state=0)
    holes = np.where(observed, truth, np.nan)
    n, m = truth.shape
    out = sys.stdout.write
    out(f"Handwritten digits, {n} images of {m} pixels, {MISSING:.0%} of the pixels removed.\n\n")
    out(f"{'method':22s}{'error':>8s}{'seconds':>10s}\n")
    fills: dict[str, Matrix] = {}
    errors: dict[str, float] = {}
    for name, method in METHODS.items():
        began = time.perf_counter()
        # One BLAS thread serves the others best: their many small products wait for each other on
        # two, up to a hundred times longer when the machine is busy. hirank sees to its own.
        with nullcontext() if name == "hirank" else threadpool_limits(1):
            fills[name] = method(holes)
        seconds = time.perf_counter() - began
        errors[name] = missing_relative_error(fills[name], truth, observed)
        out(f"{name:22s}{errors[name]:8.3f}{seconds:10.1f}\n")
        sys.stdout.flush()
    out("\nerror: relative error over the removed pixels\n")
    if draw(truth, holes, fills, errors, options.picture):
        out(f"picture: {options.picture.resolve()}\n")
    else:
        out('no picture: it needs matplotlib, pip install "hirank[plot]"\n')


def draw(
    truth: Matrix,
    holes: Matrix,
    fills: dict[str, Matrix],
    errors: dict[str, float],
    picture: Path,
) -> bool:
    """Originals, holes and fills of one image of each digit; False without matplotlib."""
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError:
        return False
    gray = colormaps["gray_r"].with_extremes(bad="#f2c14e")
    rows = {"original": truth, "with holes": holes, **fills}
    labels = load_digits().target
    first = [int(np.flatnonzero(labels == digit)[2]) for digit in range(10)]
    figure = Figure(figsize=(10.5, 0.92 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(first))
    for line, (name, table) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, first, strict=True):
            axis.imshow(table[image].reshape(8, 8), cmap=gray, vmin=0, vmax=16)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        error = f"\nerror {errors[name]:.3f}" if name in errors else ""
        weight = "bold" if name == "hirank" else "normal"
        line[0].set_ylabel(
            name + error, rotation=0, ha="right", va="center", labelpad=8, weight=weight
        )
    figure.savefig(picture, dpi=110)
    return True


if __name__ == "__main__":
    main()
