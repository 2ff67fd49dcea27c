"""Streaming completion: error of samples as they arrive, milliseconds a sample, method by method.

The first 200 samples are for starting; then batches of 50 are completed with what is known before
and learned from. The clock covers both and stops while scoring.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from peers import METHODS, SLOW, Method
from streams import REAL, STREAMS, load
from table import merge, relative_error, scaled_error, second_half, show
from threadpoolctl import threadpool_limits

FIRST, BATCH = 200, 50


def run_stream(make: Callable[[int], Method], name: str, missing: float, seed: int) -> pd.DataFrame:
    """One method through one stream: a row per batch."""
    truth, observed = load(name, missing, seed)
    incomplete, spread = np.where(observed, truth, np.nan), truth.std(axis=0)
    began = time.perf_counter()
    method = make(seed)
    method.start(incomplete[:FIRST].copy())
    rows = [score(0, slice(0, FIRST), truth[:0], truth[:0], observed[:0], spread)]
    rows[0]["seconds"] = time.perf_counter() - began
    for batch, low in enumerate(range(FIRST, len(truth), BATCH), start=1):
        part = slice(low, min(low + BATCH, len(truth)))
        given = incomplete[part].copy()
        began = time.perf_counter()
        filled = method.arrive(given)
        seconds = time.perf_counter() - began
        rows.append(score(batch, part, filled, truth[part], observed[part], spread))
        rows[-1]["seconds"] = seconds
    return pd.DataFrame(rows)


def score(
    batch: int,
    part: slice,
    filled: np.ndarray,
    truth: np.ndarray,
    observed: np.ndarray,
    spread: np.ndarray,
) -> dict:
    missing = ~observed
    if not np.isfinite(filled).all():
        raise ValueError(f"not finite after {part.start} samples")
    return {
        "batch": batch,
        "samples_seen": part.stop,
        "samples": part.stop - part.start,
        "missing": int(missing.sum()),
        "squared_error": float(np.sum((filled - truth)[missing] ** 2)),
        "squared_truth": float(np.sum(truth[missing] ** 2)),
        "scaled_squared_error": float(np.sum(((filled - truth) / spread)[missing] ** 2)),
    }


def best_setting(method: str, name: str, missing: float, seeds: int) -> str:
    """The setting with the smallest second-half error on the first two seeds: it saw the truth."""
    settings = METHODS[method]
    if len(settings) == 1:
        return next(iter(settings))
    measure = scaled_error if name in REAL else relative_error
    errors = dict.fromkeys(settings, 0.0)
    for setting, make in settings.items():
        for seed in range(min(seeds, 2)):
            try:
                errors[setting] += measure(second_half(run_stream(make, name, missing, seed)))
            except (ValueError, FloatingPointError, np.linalg.LinAlgError):
                errors[setting] = np.inf
    return min(errors, key=errors.__getitem__)


def runs(method: str, name: str, missing: float, seeds: int) -> pd.DataFrame:
    """All seeds of a method on a stream; a failure is one row with its reason."""
    labels = {"stream": name, "missing_rate": missing, "method": method}
    setting, seed, parts = "", 0, []
    try:
        setting = best_setting(method, name, missing, seeds)
        for seed in range(seeds):
            found = run_stream(METHODS[method][setting], name, missing, seed)
            parts.append(found.assign(**labels, setting=setting, seed=seed, failure=""))
    except Exception as error:  # a peer's failure is a result
        reason = f"{type(error).__name__}: {error}"
        parts.append(pd.DataFrame([labels | {"setting": setting, "seed": seed, "failure": reason}]))
    return pd.concat(parts, ignore_index=True)


def select(text: str, known: dict, left_out: tuple[str, ...] = ()) -> list[str]:
    names = text.split(",") if text else [name for name in known if name not in left_out]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: not one of {', '.join(known)}.")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("streaming.csv"), help="runs are added")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--missing", type=float, default=0.5, help="share of entries removed")
    parser.add_argument("--streams", default="", help=f"of {', '.join(STREAMS)}")
    parser.add_argument("--methods", default="", help=f"of {', '.join(METHODS)}")
    args = parser.parse_args()
    methods = select(args.methods, METHODS, SLOW)
    table = None
    warnings.simplefilter("ignore", RuntimeWarning)  # diverging settings of the peers overflow
    for name in select(args.streams, STREAMS):
        try:
            load(name, args.missing, 0)
        except OSError as error:
            print(f"{name}: left out, its file was not found ({error}).")
            continue
        for method in methods:
            if method == "last value" and name not in REAL:
                continue  # samples in random order have no previous value worth carrying
            print(f"{name}: {method}", flush=True)
            with threadpool_limits(1):
                new = runs(method, name, args.missing, args.seeds)
            table = merge(args.csv, new)
    if table is not None:
        show(table)


if __name__ == "__main__":
    main()
