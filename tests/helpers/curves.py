"""Tables for the tests of the command line."""

import numpy as np


def curve(n=60, seed=0):
    """Return points on a curve in four dimensions, n x 4, and the same with missing values."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    truth = np.column_stack([t, np.exp(t), t**3, 1 / (2 + t)])  # each column determines the others
    missing = truth.copy()
    missing[rng.random(truth.shape) < 0.15] = np.nan
    missing[np.isnan(missing).all(axis=1), 0] = 0.0
    return truth, missing


def to_csv(table, names="abcd", ids=True):
    """Return a CSV with an id and a word in each row, as text."""
    lines = [",".join((["id"] if ids else []) + list(names) + (["kind"] if ids else []))]
    for i, row in enumerate(table):
        cells = ["" if np.isnan(x) else f"{x:.6f}" for x in row]
        lines.append(",".join(([f"s{i}"] if ids else []) + cells + (["x y"] if ids else [])))
    return "\n".join(lines) + "\n"
