"""Rows in order of time: errors on arrival of OnlineImputer and other methods.

Errors are root mean squares over missing entries from row 200 on, in standard deviations of their
features; features that are constant from there are left out, and entries whose true value is not
known. Entries are missing at random or in gaps that follow each other (`missing_gaps`). Each run is
a line of a CSV file; runs that it has are not repeated.

    python benchmarks/streaming/ordered.py --csv ordered.csv --seeds 3 [--prototype FOLDER]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from arrivals import FIRST
from ordered_peers import ORDERED, Prototype, PrototypeWithModel
from peers import Method
from streams import real
from threadpoolctl import threadpool_limits

from hirank.datasets import missing_gaps, uniform_missing
from reproduction.readers import load_mocap
from reproduction.readers.files import data_folder

RUN = ["stream", "missing", "rows", "seed", "method"]


def air_quality() -> np.ndarray:
    """Hours as they follow each other, also those in which a sensor failed: NaN."""
    table = np.genfromtxt(data_folder() / "air_quality.csv", delimiter=",", skip_header=1)
    table = table[:, np.isfinite(table).any(axis=0)]
    return np.where(table == -200, np.nan, table)


def walk() -> np.ndarray:
    """CMU 02_01, every frame."""
    table = load_mocap(data_folder() / "cmu_mocap_02_01.amc", step=1).X
    return table[:, table.std(axis=0) > 1e-9 * np.abs(table).max()]


STREAMS: dict[str, Callable[[], np.ndarray]] = {
    "mocap 56_06": lambda: real("mocap"),
    "mocap 02_01": walk,
    "air quality": lambda: air_quality()[:1500],
    "chlorine": lambda: real("chlorine"),
    "gas drift": lambda: real("gas drift"),
}
PATTERNS = {
    "random 30 %": lambda shape, seed: uniform_missing(shape, 0.3, random_state=seed),
    "random 50 %": lambda shape, seed: uniform_missing(shape, 0.5, random_state=seed),
    "gaps 30 %": lambda shape, seed: gaps(shape, 0.3, seed),
    "gaps 50 %": lambda shape, seed: gaps(shape, 0.5, seed),
}


def gaps(shape: tuple[int, int], rate: float, seed: int) -> np.ndarray:
    """Return gaps as long as those of the paper's motion capture stream, 68 * rate rows."""
    return missing_gaps(shape, rate, gaps=max(1, round(shape[0] / 68)), random_state=seed)


def error(filled: np.ndarray, truth: np.ndarray, observed: np.ndarray) -> float:
    filled, truth, missing = filled[FIRST:], truth[FIRST:], ~observed[FIRST:]
    spread = np.nanstd(truth, axis=0)
    varying = spread > 1e-9 * np.nanmax(np.abs(truth), axis=0)
    scaled = (filled - truth)[:, varying] / spread[varying]
    judged = (missing & ~np.isnan(truth))[:, varying]
    return float(np.sqrt(np.mean(scaled[judged] ** 2)))


def run(method: Method, truth: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """Return the error and CPU milliseconds per row."""
    X, began = np.where(observed, truth, np.nan), time.process_time()
    method.start(X[:FIRST].copy())
    filled = np.concatenate([X[:FIRST], *(method.arrive(row[None]) for row in X[FIRST:])])
    return error(filled, truth, observed), 1000 * (time.process_time() - began) / len(X)


def measure(options: argparse.Namespace, methods: dict[str, Callable[[int], Method]]) -> None:
    """Add the runs that the CSV file lacks."""
    table = pd.read_csv(options.csv) if options.csv.exists() else pd.DataFrame(columns=RUN)
    known = set(table[RUN].itertuples(index=False, name=None))
    for seed in range(options.seeds):
        for name in options.streams:
            truth = STREAMS[name]()[: options.rows]
            for pattern in options.patterns:
                observed = PATTERNS[pattern](truth.shape, seed) & ~np.isnan(truth)
                for method, make in methods.items():
                    key = (name, pattern, len(truth), seed, method)
                    if key in known:
                        continue
                    line = dict(zip(RUN, key, strict=True)) | {"failure": ""}
                    try:
                        line["error"], line["ms"] = run(make(seed), truth, observed)
                    except Exception as problem:  # that of a peer is a result
                        line["failure"] = f"{type(problem).__name__}: {problem}"[:100]
                    table = pd.concat([table, pd.DataFrame([line])], ignore_index=True)
                    table.to_csv(options.csv, index=False, float_format="%.5g")


def show(table: pd.DataFrame) -> None:
    """Print medians over seeds, a line for each cell, and where hirank is not the best."""
    found = table[table["failure"].isna() | (table["failure"] == "")]
    cells = found.pivot_table(
        "error", ["stream", "missing", "rows"], "method", aggfunc="median", sort=False
    )
    print("| stream | missing | rows | " + " | ".join(cells.columns) + " |")
    print("|---" * (3 + len(cells.columns)) + "|")
    for key, line in cells.iterrows():
        numbers = (f"{x:.3f}" if x < 100 else f"{x:.0e}" for x in line)
        print("| " + " | ".join([*map(str, key), *numbers]) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("ordered.csv"), help="runs are added")
    parser.add_argument("--rows", type=int, help="from the beginning of each stream; default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--streams", type=lambda text: text.split(","), default=list(STREAMS))
    parser.add_argument("--patterns", type=lambda text: text.split(","), default=list(PATTERNS))
    parser.add_argument("--methods", type=lambda text: text.split(","))
    parser.add_argument("--prototype", type=Path, help="folder with ordered_stream.py")
    options = parser.parse_args()
    methods = dict(ORDERED)
    if options.prototype is not None:
        methods["prototype"] = lambda seed: Prototype(options.prototype)
        methods["prototype and model"] = lambda seed: PrototypeWithModel(options.prototype, seed)
    warnings.simplefilter("ignore")  # of peers that diverge
    chosen = options.methods or list(methods)
    with threadpool_limits(1):
        measure(options, {name: methods[name] for name in chosen})
    show(pd.read_csv(options.csv))
