"""Rows of several devices that arrive by turns: error on arrival with groups, and in other ways.

`groups` is one OnlineImputer that knows the devices, `apart` one OnlineImputer for each, `unknown`
one that does not know them. Errors are root mean squares over missing entries of the second two
thirds, in standard deviations of the features of all devices. Devices of real streams are their
stretches, one after the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from streams import real

from hirank import OnlineImputer

Panel = list[np.ndarray]


def stretches(name: str, devices: int, rows: int) -> Panel:
    X = real(name)
    return [X[i * rows : (i + 1) * rows] for i in range(devices)]


def walks(devices: int, rows: int, seed: int, *, offset: float = 0.0, alike: bool = True) -> Panel:
    """Return damped walks of three variables, seen through eight features."""
    rng = np.random.default_rng(seed)
    loadings, panel = rng.normal(size=(3, 8)), []
    for _ in range(devices):
        own = loadings if alike else rng.normal(size=(3, 8))
        z = np.zeros((rows, 3))
        for t in range(1, rows):
            z[t] = 0.97 * z[t - 1] + 0.3 * rng.normal(size=3)
        X = z @ own + 0.05 * rng.normal(size=(rows, 8))
        panel.append(X + offset * rng.normal(size=8))
    return panel


PANELS: dict[str, Callable[[int], Panel]] = {
    "motion capture, 8 x 150": lambda seed: stretches("mocap", 8, 150),
    "motion capture, 40 x 30": lambda seed: stretches("mocap", 40, 30),
    "air quality, 8 x 100": lambda seed: stretches("air quality", 8, 100),
    "walks, 8 x 150": lambda seed: walks(8, 150, seed),
    "walks, 40 x 30": lambda seed: walks(40, 30, seed),
    "walks at levels of their own, 4 x 400": lambda seed: walks(4, 400, seed, offset=5.0),
    "walks of their own kind, 4 x 500": lambda seed: walks(4, 500, seed, alike=False),
}


def by_turns(panel: Panel, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return labels in random order, and the rows of these devices in their own order."""
    labels = np.repeat(np.arange(len(panel)), [len(X) for X in panel])
    rng.shuffle(labels)
    rows = np.empty((len(labels), panel[0].shape[1]))
    for i, X in enumerate(panel):
        rows[labels == i] = X
    return labels, rows


def with_groups(labels: np.ndarray, X: np.ndarray, seed: int) -> np.ndarray:
    model = OnlineImputer(groups=0, random_state=seed)
    return model.partial_fit_transform(np.column_stack([labels, X]))[:, 1:]


def apart(labels: np.ndarray, X: np.ndarray, seed: int) -> np.ndarray:
    filled = np.empty_like(X)
    for label in np.unique(labels):
        model = OnlineImputer(random_state=seed)
        filled[labels == label] = model.partial_fit_transform(X[labels == label])
    return filled


def unknown(labels: np.ndarray, X: np.ndarray, seed: int) -> np.ndarray:
    return OnlineImputer(random_state=seed).partial_fit_transform(X)


METHODS = {"groups": with_groups, "apart": apart, "unknown": unknown}


def measure(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table of medians over seeds, and milliseconds per row."""
    yield ("panel", *METHODS, *(f"{name}, ms a row" for name in METHODS))
    for name in options.panels:
        errors: dict[str, list[float]] = {method: [] for method in METHODS}
        seconds = dict.fromkeys(METHODS, 0.0)
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            labels, truth = by_turns(PANELS[name](seed), rng)
            missing = rng.random(truth.shape) < options.missing
            spread = np.where(truth.std(axis=0) > 0, truth.std(axis=0), np.inf)
            late = missing & (np.arange(len(truth)) >= len(truth) // 3)[:, None]
            for method, impute in METHODS.items():
                began = time.process_time()
                filled = impute(labels, np.where(missing, np.nan, truth), seed)
                seconds[method] += (time.process_time() - began) / len(truth)
                scaled = ((filled - truth) / spread)[late]
                errors[method].append(float(np.sqrt(np.nanmean(scaled**2))))
        medians = (f"{np.median(found):.3f}" for found in errors.values())
        each = (f"{1000 * one / options.seeds:.1f}" for one in seconds.values())
        yield (name, *medians, *each)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=PANELS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--missing", type=float, default=0.3)
    for line in measure(parser.parse_args()):
        print("| " + " | ".join(line) + " |", flush=True)
