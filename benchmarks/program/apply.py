"""`hirank apply` on a long CSV: memory, and rows a second beside bare reading and writing.

A curved table, n x 20, a tenth of the cells missing. The model is fitted to 2000 other rows.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write(path: Path, n: int, seed: int) -> None:
    rng, weights = np.random.default_rng(seed), np.random.default_rng(0).normal(size=(5, 20))
    with open(path, "w") as file:
        file.write(",".join(["id", *(f"x{j}" for j in range(20))]) + "\n")
        for begin in range(0, n, 10_000):
            rows = min(10_000, n - begin)
            t = rng.uniform(-1, 1, (rows, 2))
            X = np.column_stack([t, t**2, t[:, 0] * t[:, 1]]) @ weights
            X += 0.05 * rng.normal(size=X.shape)
            incomplete = rng.random(X.shape) < 0.1
            for i, (row, missing) in enumerate(zip(X.tolist(), incomplete.tolist(), strict=True)):
                cells = ["" if m else f"{x:.5f}" for x, m in zip(row, missing, strict=True)]
                file.write(f"r{begin + i}," + ",".join(cells) + "\n")


def bare(source: Path, target: Path) -> float:
    """Seconds that the csv module takes to read all rows and write them again."""
    began = time.perf_counter()
    with open(source, newline="") as old, open(target, "w", newline="") as new:
        csv.writer(new, lineterminator="\n").writerows(csv.reader(old))
    return time.perf_counter() - began


def run(*arguments: object) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a command."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "hirank", *map(str, arguments)])
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"hirank {arguments[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rows-to-learn", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "learn.csv", options.rows_to_learn, 1)
        write(folder / "new.csv", options.rows, 2)
        size = (folder / "new.csv").stat().st_size / 1e6
        print(f"{options.rows} rows x 20 columns, {size:.0f} MB")
        seconds, memory = run("fit", folder / "learn.csv", "-m", folder / "m.hirank", "-q")
        print(f"fit       {seconds:8.1f} s {memory:8.0f} MB")
        plain = min(bare(folder / "new.csv", folder / "copy.csv") for _ in range(2))
        print(f"csv only  {plain:8.1f} s          {options.rows / plain:8.0f} rows/s")
        seconds, memory = run(
            "apply", folder / "new.csv", "-m", folder / "m.hirank", "-o", folder / "f.csv"
        )
        print(
            f"apply     {seconds:8.1f} s {memory:8.0f} MB {options.rows / seconds:8.0f} rows/s, "
            f"{seconds / plain:.0f} times the csv module"
        )
        with open(folder / "f.csv") as file:
            lines = sum(1 for _ in file)
        assert lines == options.rows + 1
