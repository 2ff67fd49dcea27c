"""What the tests of ``hirank stream`` share: a small model, rows for it, and the program."""

import math
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from hirank import OnlineKFMC

PROGRAM = [sys.executable, "-m", "hirank", "stream"]
OPTIONS = {
    "source": None,
    "output": "-",
    "follow": False,
    "form": "auto",
    "columns": None,
    "missing": None,
    "ids": None,
    "delimiter": None,
    "decimal": ".",
    "on_error": "skip",
    "frozen": False,
    "save_every": 1000,
    "hold": False,
    "restart": False,
    "digits": None,
    "force": False,
    "as_json": False,
    "quiet": False,
}
"""What the command gives to run if nothing is said."""
NAMES = ("a", "b", "c", "d")
LONGEST = 120
"""Seconds that a program may be at work."""


def table(n: int, seed: int = 0) -> np.ndarray:
    """Rows of a curve, n x 4, with holes; every row has an observed entry."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    X[np.arange(n), rng.integers(4, size=n)] = np.nan
    return np.round(X, 6)


def small() -> OnlineKFMC:
    return OnlineKFMC(window=60, n_start=40, batch_size=15, max_iter=10, random_state=0)


def warm(path: Path) -> OnlineKFMC:
    """A model that has started, in a file."""
    model = small().partial_fit(table(50, seed=9))
    model.feature_names_in_ = np.array(NAMES, dtype=object)
    model.save(path)
    return model


def csv(X: np.ndarray, *, header: bool = True, first: int = 0) -> str:
    """Lines with an id before and a note after the numbers, columns in another order."""
    lines = ["id,d,c,b,a,note"] if header else []
    for i, row in enumerate(X, first):
        cells = ["" if math.isnan(x) else f"{x:.6f}" for x in row[::-1]]
        lines.append(f'r{i:04},{",".join(cells)},"say ""{i}"", please"')
    return "\n".join(lines) + "\n"


@contextmanager
def running(*arguments: object, **options: object) -> Iterator[subprocess.Popen]:
    """The program at work; it does not outlive the block."""
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
    # What hangs must not hang the tests.
    limit = threading.Timer(LONGEST, process.kill)
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
