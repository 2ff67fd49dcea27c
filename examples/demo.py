"""Impute handwritten digits with missing pixels, with hirank and with four other methods."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from threadpoolctl import threadpool_limits

from hirank import Imputer
from hirank.baselines import SoftImpute
from hirank.datasets import uniform_missing
from hirank.metrics import missing_relative_error

MISSING = 0.4
METHODS = {
    "column mean": SimpleImputer(),
    "soft-impute (linear)": SoftImpute(random_state=0),
    "k nearest neighbors": KNNImputer(),
    "iterative ridge": IterativeImputer(random_state=0, tol=1e-2),
    "hirank": Imputer(random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1797, help="number of images, at most 1797")
    parser.add_argument("--picture", type=Path, default=Path("demo.png"), help="file to write")
    options = parser.parse_args()
    truth = load_digits().data[: options.images]
    observed = uniform_missing(truth.shape, MISSING, random_state=0)
    X = np.where(observed, truth, np.nan)
    n, m = truth.shape
    print(f"Handwritten digits, {n} images of {m} pixels, {MISSING:.0%} of the pixels removed.\n")
    print(f"{'method':22s}{'error':>8s}{'seconds':>10s}")
    filled, errors = {}, {}
    for name, method in METHODS.items():
        began = time.perf_counter()
        # The others are fastest with one BLAS thread: on two, their many small products wait for
        # each other, up to a hundred times longer on a busy machine. hirank limits its own threads.
        with nullcontext() if name == "hirank" else threadpool_limits(1):
            filled[name] = method.fit_transform(X)
        seconds = time.perf_counter() - began
        errors[name] = missing_relative_error(filled[name], truth, observed)
        print(f"{name:22s}{errors[name]:8.3f}{seconds:10.1f}", flush=True)
    print("\nerror: relative error over the removed pixels")
    try:
        draw({"original": truth, "missing pixels": X, **filled}, errors, options.picture)
        print(f"picture: {options.picture.resolve()}")
    except ModuleNotFoundError:
        print('The picture requires matplotlib: pip install "hirank[plot]"')


def draw(tables: dict[str, np.ndarray], errors: dict[str, float], picture: Path) -> None:
    """Draw one image of each digit, as each table has it."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    gray = colormaps["gray_r"].with_extremes(bad="#f2c14e")
    labels = load_digits().target
    images = [int(np.flatnonzero(labels == digit)[2]) for digit in range(10)]
    figure = Figure(figsize=(10.5, 0.92 * len(tables)), layout="constrained")
    axes = figure.subplots(len(tables), len(images))
    for row, (name, table) in zip(axes, tables.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(table[image].reshape(8, 8), cmap=gray, vmin=0, vmax=16)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        label = f"{name}\nerror {errors[name]:.3f}" if name in errors else name
        weight = "bold" if name == "hirank" else "normal"
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8, weight=weight)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
