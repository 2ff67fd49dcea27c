"""One measurement by one method, in a process of its own; versus_0_1.py starts it.

    python versus_worker.py METHOD MEASURE FOLDER SEED SOURCE LIMIT

METHOD is "hirank", of whichever version is on PYTHONPATH, or an imputer of side_by_side/solvers.py.
FOLDER contains the table (table.npz) and gets the imputed values (filled.npy). Costs are printed as
JSON: processor time of the whole process, in the unit of the case, by line.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

REPEATS, ENOUGH = 5, 4.0  # the best of at most so many runs, unless they take so many seconds
ROWS = 200_000  # of `hirank apply`


def imputers(seed: int) -> tuple[Any, Any]:
    """Return the default estimator and the default stream of the version in use."""
    import hirank

    if hasattr(hirank, "Imputer"):
        return hirank.Imputer(random_state=seed), hirank.OnlineImputer(random_state=seed)
    return hirank.KFMC(random_state=seed), hirank.OnlineKFMC(random_state=seed)


def best(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float]:
    """Return the result, and the least processor time of several runs."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH:
        began = time.process_time()
        result = work()
        times.append(time.process_time() - began)
    return result, min(times)


def fit(method: str, folder: Path, seed: int, source: Path) -> dict[str, float]:
    X = np.load(folder / "table.npz")["X"]

    def work() -> np.ndarray:
        if method == "hirank":
            return imputers(seed)[0].fit_transform(X.copy())
        return solvers.SOLVERS[method].impute(X.copy(), seed)

    if method != "hirank":
        sys.path.insert(0, str(Path(__file__).parents[1] / "side_by_side"))
        import solvers
    filled, seconds = best(work)
    np.save(folder / "filled.npy", filled)
    return {"": seconds}


def transform(method: str, folder: Path, seed: int, source: Path) -> dict[str, float]:
    table = np.load(folder / "table.npz")
    X, n_train = table["X"], int(table["n_train"])
    model = imputers(seed)[0].fit(X[:n_train])
    filled, seconds = best(lambda: model.transform(X[n_train:]))
    np.save(folder / "filled.npy", filled)
    _, single = best(lambda: [model.transform(row[None]) for row in X[n_train : n_train + 30]])
    return {"per row": 1e6 * seconds / (len(X) - n_train), "one row": 1e6 * single / 30}


def online(method: str, folder: Path, seed: int, source: Path) -> dict[str, float]:
    X, model = np.load(folder / "table.npz")["X"], imputers(seed)[1]
    filled, times = np.empty_like(X), []
    for i, row in enumerate(X):
        began = time.process_time()
        filled[i] = model.partial_fit_transform(row[None])[0]
        times.append(time.process_time() - began)
    np.save(folder / "filled.npy", np.where(np.isfinite(filled), filled, np.nan))
    return {"median row": 1e3 * float(np.median(times)), "slowest row": 1e3 * max(times)}


def apply(method: str, folder: Path, seed: int, source: Path) -> dict[str, float]:
    """The tables are those of program/apply.py."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "program"))
    import pandas as pd
    from apply import write

    write(folder / "learn.csv", 2000, seed + 1)
    write(folder / "new.csv", ROWS, seed + 2)
    pd.read_csv(folder / "new.csv").to_parquet(folder / "new.parquet")
    model = folder / "m.hirank"
    program("fit", folder / "learn.csv", "-m", model)
    costs = {}
    for name, kind in {"CSV": "csv", "Parquet": "parquet"}.items():
        began = children()
        program("apply", folder / f"new.{kind}", "-m", model, "-o", folder / f"filled.{kind}")
        costs[name] = 1e6 * (children() - began) / ROWS
    return costs


def program(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "hirank", *map(str, arguments), "-q"], check=True)


def children() -> float:
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def algorithm2(method: str, folder: Path, seed: int, source: Path) -> dict[str, float]:
    """The ratio of an inner iteration to its products, by the version's own program."""
    speed = source / "benchmarks" / "speed"
    script = next(speed / name for name in os.listdir(speed) if name in OWN_PROGRAMS)
    table = folder / "ratios.csv"
    command = [sys.executable, str(script), "iterations", "--csv", str(table)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    ratios: dict[str, float] = {}
    for row in csv.DictReader(table.read_text().splitlines()):
        known = ratios.get(row["kernel"], np.inf)
        ratios[row["kernel"]] = min(known, float(row["ratio"]))
    return ratios


OWN_PROGRAMS = ("algorithm2.py", "paper_stream.py")  # the name in version 0.1
MEASURES = {each.__name__: each for each in (fit, transform, online, apply, algorithm2)}


def end_after(seconds: float) -> None:
    """End the process when it has used so much processor time.

    A limit set by `setrlimit` would make Linux count the time of a process in steps of 4 ms.
    """
    while time.process_time() < seconds:
        time.sleep(1)
    print(f"more than {seconds:g} s", file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    method, measure, folder, seed, source, limit = sys.argv[1:]
    threading.Thread(target=end_after, args=(float(limit),), daemon=True).start()
    warnings.simplefilter("ignore")
    cost = MEASURES[measure](method, Path(folder), int(seed), Path(source))
    print(json.dumps({"cost": cost, "peak_mb": getrusage(RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
