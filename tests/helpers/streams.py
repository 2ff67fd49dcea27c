"""A small model of a stream, rows for it, and the program ``hirank stream``."""

import math
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from helpers.estimators import fast_online
from hirank import OnlineImputer

PROGRAM = [sys.executable, "-m", "hirank", "stream"]
NAMES = ("a", "b", "c", "d")
MAX_SECONDS = 120
"""Seconds after which a program is killed."""


def table(n: int, seed: int = 0) -> np.ndarray:
    """Return rows of a curve, n x 4, with one missing value each."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    X[np.arange(n), rng.integers(4, size=n)] = np.nan
    return np.round(X, 6)


def small() -> OnlineImputer:
    return fast_online(OnlineImputer, batch_size=15)


def save_fitted(path: Path) -> None:
    """Save a model that has seen 50 rows."""
    model = small().partial_fit(table(50, seed=9))
    model.feature_names_in_ = np.array(NAMES, dtype=object)
    model.save(path)


def csv(X: np.ndarray, *, header: bool = True, first: int = 0) -> str:
    """Return lines with an id, the numbers in another order of columns, and a note."""
    lines = ["id,d,c,b,a,note"] if header else []
    for i, row in enumerate(X, first):
        cells = ["" if math.isnan(x) else f"{x:.6f}" for x in row[::-1]]
        lines.append(f'r{i:04},{",".join(cells)},"say ""{i}"", please"')
    return "\n".join(lines) + "\n"


@contextmanager
def running(*arguments: object, **options: object) -> Iterator[subprocess.Popen]:
    """Run the program, which is killed at the end of the block."""
    first = options.pop("preexec_fn", None)

    def prepared() -> None:
        # Where tests run in the background SIGINT is ignored, and so it would be here.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if first is not None:
            first()

    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=prepared,
        **options,
    )
    limit = threading.Timer(MAX_SECONDS, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        for pipe in (process.stdout, process.stderr):
            pipe.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()


def finish(*arguments: object, text: str = "") -> subprocess.CompletedProcess:
    """Run the program to its end."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], input=text.encode(), capture_output=True, timeout=60
    )
