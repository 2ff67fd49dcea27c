"""Latency of a row: from writing it to ``hirank stream`` to reading the imputed row.

The real process is started with a model that has learned from some rows of a curved stream, 20
columns, 30 % missing. Rows are sent one by one at a steady rate, without waiting for answers.
Until its window is full (600 rows), a model is refitted now and then, which takes a second or two.

    python benchmarks/streaming/latency.py --warm 300 --rates 10 50 --rows 400
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from hirank import OnlineImputer
from hirank.datasets import polynomial_stream, uniform_missing

PROGRAM = [sys.executable, "-m", "hirank", "stream"]


def lines(n: int, columns: int, seed: int) -> tuple[np.ndarray, list[bytes]]:
    """Return a stream with missing values, n x columns, as an array and as lines of CSV."""
    X = polynomial_stream(columns, latent=2, random_state=seed).take(n)
    observed = uniform_missing(X.shape, 0.3, random_state=seed + 1)
    X[~observed] = np.nan
    text = [",".join("" if np.isnan(x) else f"{x:.6f}" for x in row) + "\n" for row in X]
    return X, [line.encode() for line in text]


def measure(model: Path, rows: list[bytes], rate: float, *options: str) -> np.ndarray:
    """Seconds from row to answer, at so many rows a second."""
    command = [*PROGRAM, "-m", str(model), "-q", *options]
    columns = rows[0].count(b",") + 1
    header = (",".join(f"c{j}" for j in range(columns)) + "\n").encode()
    sent, got = [], []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        process.stdin.write(header + rows[0])
        process.stdout.readline()  # the header: all is imported, the model loaded
        reader = open(process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115
        reader.readline()

        def read() -> None:
            for _ in rows[1:]:
                reader.readline()
                got.append(time.perf_counter())

        thread = threading.Thread(target=read)
        thread.start()
        began = time.perf_counter()
        for i, row in enumerate(rows[1:]):
            time.sleep(max(0, began + i / rate - time.perf_counter()))
            sent.append(time.perf_counter())
            process.stdin.write(row)
        thread.join()
        process.stdin.close()
    return np.array(got) - np.array(sent)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--warm", type=int, default=300)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--rates", type=float, nargs="+", default=[10.0, 50.0])
    args = parser.parse_args(argv)
    X, text = lines(args.warm + args.rows, args.columns, seed=0)
    model = OnlineImputer(random_state=0).partial_fit(X[: args.warm])
    model.feature_names_in_ = np.array([f"c{j}" for j in range(args.columns)], dtype=object)
    print(f"{args.columns} columns, {args.rows} rows after {args.warm}; milliseconds to the answer")
    print("| rows a second | | median | 90 % | 95 % | longest |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hirank"
        for rate in args.rates:
            for name, options in (("learning", ()), ("frozen", ("--frozen",))):
                path.unlink(missing_ok=True)
                model.save(path)
                seconds = 1000 * measure(path, text[args.warm :], rate, *options)
                middle, late, later = np.percentile(seconds, [50, 90, 95])
                print(
                    f"| {rate:g} | {name} | {middle:.0f} | {late:.0f} | {later:.0f} | "
                    f"{seconds.max():.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
